package rsync

import (
	"context"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

// maxConflicts is how often a change is retried when others change the same lifecycles at the same time.
const maxConflicts = 10

// actions maps events to the actions in the history of a deployment intent group. An EventRead is not recorded.
var actions = map[deploy.Event]appcontext.ActionState{
	deploy.EventInstantiate: appcontext.ActionInstantiated,
	deploy.EventTerminate:   appcontext.ActionTerminated,
	deploy.EventUpdate:      appcontext.ActionUpdated,
}

// Enqueue adds an event to the queue of a context, and records the action of the user in the history of its deployment intent
// group. When it returns nil, both are in etcd. It rejects a context that cannot be deployed, and an event that cannot begin.
//
// For an EventUpdate, id is the new context, and from is the context that it replaces. A rollback is an EventUpdate, too. For other
// events, from is empty. EventUpdateDelete is rejected, because rsync itself adds it after an EventUpdate.
//
// If a context was to replace another one, and that update has not succeeded, an EventTerminate terminates the other one too,
// because the clusters may have resources of both.
func Enqueue(ctx context.Context, store *appcontext.Store, id string, event deploy.Event, from string, now time.Time) error {
	_, err := enqueue(ctx, store, id, event, from, now)
	return err
}

// enqueue does the work of Enqueue, and returns the action for the history.
func enqueue(ctx context.Context, store *appcontext.Store, id string, event deploy.Event, from string, now time.Time) (appcontext.Action, error) {
	r := request{store: store, action: appcontext.Action{State: actions[event], ContextID: id, Time: now}}
	err := r.prepare(ctx, id, event, from)
	if err == nil {
		err = r.commit(ctx)
	}
	return r.action, errors.Wrapf(err, "cannot add event %q to context %q", event, id)
}

// Stop ends the work on a context until the next event is added. An event in progress ends within a second, and refused steps are
// not retried.
func Stop(ctx context.Context, store *appcontext.Store, id string, now time.Time) error {
	r := request{store: store, action: appcontext.Action{State: appcontext.ActionInstantiateStopped, ContextID: id, Time: now}}
	err := r.prepareStop(ctx, id)
	if err == nil {
		err = r.commit(ctx)
	}
	return errors.Wrapf(err, "cannot stop context %q", id)
}

// request is a change of lifecycles that a user requests.
type request struct {
	lifecycleChange

	store  *appcontext.Store
	action appcontext.Action
	// acted is the context of an event, and before is the context that an update replaces. statusID is the id of the context that
	// keeps their states.
	acted, before *appcontext.Snapshot
	statusID      string
}

// prepare collects the changes of an event, and rejects a context that cannot be deployed.
func (r *request) prepare(ctx context.Context, id string, event deploy.Event, from string) error {
	if _, known := actions[event]; !known && event != deploy.EventRead {
		return errors.Errorf("event %q cannot be added", event)
	}
	if (event == deploy.EventUpdate) != (from != "") {
		return errors.Errorf("the context before is %q: event %q must have one, and no other event may", from, deploy.EventUpdate)
	}
	var err error
	if r.acted, err = r.store.Snapshot(ctx, id); err != nil {
		return err
	}
	plan, err := deploy.NewPlan(r.acted)
	if err != nil {
		return err
	}
	r.statusID = plan.StatusID
	r.edits = []edit{{id, func(l deploy.Lifecycle) (deploy.Lifecycle, error) { return l.Enqueue(event, from) }}}
	if event == deploy.EventTerminate {
		if err := r.terminateReplaced(ctx); err != nil {
			return err
		}
	}
	if from != "" {
		if err := r.inheritStatusContext(ctx, from); err != nil {
			return err
		}
	}
	if r.statusID != id {
		r.writes = append(r.writes, appcontext.Write{Handle: deploy.MembersHandle(r.statusID).Level(id), Sidecar: true, Value: id})
	}
	return r.addRecord(ctx)
}

// terminateReplaced adds the termination of the contexts that a context was to replace, as far as these updates have not succeeded.
func (r *request) terminateReplaced(ctx context.Context) error {
	l, err := deploy.ReadLifecycle(r.acted)
	if err != nil {
		return err
	}
	seen := map[string]bool{r.acted.ID(): true}
	for other := l.UnfinishedUpdateFrom(); other != "" && !seen[other]; other = l.UnfinishedUpdateFrom() {
		seen[other] = true
		if l, _, err = readLifecycle(ctx, r.store, other); errors.Is(err, appcontext.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		r.edits = append(r.edits, edit{other, func(l deploy.Lifecycle) (deploy.Lifecycle, error) {
			next, err := l.Enqueue(deploy.EventTerminate, "")
			if notAllowed := (*deploy.NotAllowedError)(nil); errors.As(err, &notAllowed) {
				return l, nil // It is not deployed.
			}
			return next, err
		}})
	}
	return nil
}

// prepareStop collects the changes of a stop.
func (r *request) prepareStop(ctx context.Context, id string) error {
	var err error
	if r.acted, err = r.store.Snapshot(ctx, id); err != nil {
		return err
	}
	r.edits = []edit{{id, func(l deploy.Lifecycle) (deploy.Lifecycle, error) { return l.Stopped(), nil }}}
	l, err := deploy.ReadLifecycle(r.acted)
	if err != nil {
		return err
	}
	if l.Desired == appcontext.StateTerminated {
		r.action.State = appcontext.ActionTerminateStopped
	}
	if r.statusID, err = r.acted.StatusContextID(); err != nil {
		return err
	}
	return r.addRecord(ctx)
}

// inheritStatusContext makes the status context that of the context that is replaced, and adds the write that sets it in the new
// context. It fails if the new context belongs to another deployment.
func (r *request) inheritStatusContext(ctx context.Context, from string) error {
	id, have := r.acted.ID(), r.statusID
	if from == id {
		return errors.New("a context cannot be updated to itself")
	}
	var err error
	if r.before, err = r.store.Snapshot(ctx, from); err != nil {
		return err
	}
	if r.statusID, err = r.before.StatusContextID(); err != nil || have == r.statusID {
		return err
	}
	l, err := deploy.ReadLifecycle(r.acted)
	if err != nil {
		return err
	}
	if have != id || l.Current != "" {
		return errors.Errorf("context %q keeps its states in context %q, and %q keeps them in %q: they are not of one deployment", from, r.statusID, id, have)
	}
	r.writes = append(r.writes, appcontext.Write{Handle: r.acted.Handle().Level("statusappctxid"), Value: r.statusID})
	return nil
}

// addRecord adds the action to the history of the deployment intent group of the context. A context that names no group has no
// history, and an EventRead is not an action.
func (r *request) addRecord(ctx context.Context) error {
	meta, err := r.acted.Meta()
	if err != nil {
		return err
	}
	subject, ok := meta.DeploymentRef()
	if !ok || r.action.State == "" {
		return nil
	}
	info, err := r.store.GetStateInfo(ctx, subject)
	if err != nil {
		return err
	}
	for _, a := range info.Actions {
		r.action.Revision = max(r.action.Revision, a.Revision)
	}
	if r.action.State == appcontext.ActionUpdated || r.action.State == appcontext.ActionInstantiated && r.action.Revision == 0 {
		r.action.Revision++
	}
	r.records = []appcontext.Record{{Subject: subject, Action: r.action, StatusContextID: r.statusID}}
	return nil
}

// commit stores the change together with its record. It retries after a conflict.
func (r *request) commit(ctx context.Context) error {
	for range maxConflicts {
		if err := r.lifecycleChange.commit(ctx, r.store); !errors.Is(err, appcontext.ErrConflict) {
			return err
		}
	}
	return r.lifecycleChange.commit(ctx, r.store)
}

// lifecycleChange changes the lifecycles of contexts in one transaction.
type lifecycleChange struct {
	// lock, if set, must be held.
	lock  *appcontext.Lock
	edits []edit
	// writes and records are stored with the change.
	writes  []appcontext.Write
	records []appcontext.Record
}

// edit is a change of the lifecycle of one context.
type edit struct {
	id   string
	next func(deploy.Lifecycle) (deploy.Lifecycle, error)
}

// commit tries once to change the lifecycles. It fails with ErrConflict if one of them has changed since it was read, or if the
// lock is lost.
func (c lifecycleChange) commit(ctx context.Context, store *appcontext.Store) error {
	condition := appcontext.Condition{Lock: c.lock, Levels: deploy.LifecycleLevels()}
	writes := slices.Clone(c.writes)
	for _, e := range c.edits {
		before, base, err := readLifecycle(ctx, store, e.id)
		if err != nil {
			return err
		}
		after, err := e.next(before)
		if err != nil {
			return err
		}
		condition.Unchanged = append(condition.Unchanged, base)
		writes = append(writes, deploy.Changes(e.id, before, after)...)
	}
	return store.WriteLevels(ctx, c.edits[0].id, writes, condition, c.records...)
}

// readLifecycle reads the lifecycle of a context, and returns what it has read too.
func readLifecycle(ctx context.Context, store *appcontext.Store, id string) (l deploy.Lifecycle, read *appcontext.Snapshot, err error) {
	if read, err = store.Snapshot(ctx, id, deploy.LifecycleLevels()...); err == nil {
		l, err = deploy.ReadLifecycle(read)
	}
	return l, read, err
}
