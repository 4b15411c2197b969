package appcontext

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// pageSize is how many keys one request reads when it lists contexts.
	pageSize = 1024
	// maxAttempts is how often a read is tried when etcd compacts its revision meanwhile.
	maxAttempts = 3
)

// View is the state of a subject at one revision of etcd. Its contents are shared and must not be changed.
type View struct {
	// Revision is the revision of etcd that the view shows.
	Revision int64
	// AsOf is when etcd was last asked, and had nothing newer. The member of etcd that answers a watch may itself be behind the
	// others, until it notices that it has no leader.
	AsOf time.Time
	// Info is the history of the subject.
	Info StateInfo
	// Contexts are the ids of the subject's contexts, the oldest first.
	Contexts []string
	// ContextID is the id of the requested context; empty when the subject has none yet.
	ContextID string
	// Context is that context, which says what is to be where; nil when it has been deleted.
	Context *Snapshot
	// StatusContext is the context under which bundles and states are kept: the same as Context unless the group was
	// updated or rolled back; nil when it has been deleted.
	StatusContext *Snapshot
	// observations says when the bundles were seen that are saved in StatusContext.
	observations map[Handle]observation
}

// Snapshot reads a context as it is at one revision: everything in it, or only what is at some levels below it. It fails with
// ErrNotFound when etcd holds nothing of it or, with levels, when the context itself is not there.
func (s *Store) Snapshot(ctx context.Context, id string, levels ...string) (*Snapshot, error) {
	if err := checkName("context id", id); err != nil {
		return nil, err
	}
	var snapshot *Snapshot
	var err error
	if len(levels) > 0 {
		snapshot, err = s.snapshotOfLevels(ctx, id, levels)
	} else {
		snapshot, err = s.snapshotAt(ctx, id, 0)
	}
	if err == nil && len(snapshot.values) == 0 {
		err = keyError(ErrNotFound, string(ContextHandle(id)))
	}
	if err != nil {
		return nil, wrap(fmt.Sprintf("%s %q", opSnapshot, id), err)
	}
	return snapshot, nil
}

// snapshotOfLevels reads levels below a context, and the context itself. The snapshot is empty when the context does not exist.
func (s *Store) snapshotOfLevels(ctx context.Context, id string, levels []string) (*Snapshot, error) {
	h := ContextHandle(id)
	reads := []clientv3.Op{clientv3.OpGet(string(h))}
	for _, level := range levels {
		reads = append(reads, clientv3.OpGet(string(h.Level(level))))
	}
	results, err := s.readEach(ctx, reads)
	if err != nil {
		return nil, err
	}
	var values []*mvccpb.KeyValue
	for _, r := range results {
		if len(results[0].Kvs) > 0 {
			values = append(values, r.Kvs...)
		}
	}
	return snapshotOf(id, results[0].Header.GetRevision(), values), nil
}

// snapshotAt reads a context at a revision; 0 means the current one. The snapshot is empty when nothing is there.
func (s *Store) snapshotAt(ctx context.Context, id string, revision int64) (*Snapshot, error) {
	values, now, err := s.read(ctx, string(ContextHandle(id)), clientv3.WithPrefix(), clientv3.WithRev(revision))
	if err != nil {
		return nil, err
	}
	return snapshotOf(id, cmp.Or(revision, now), values), nil
}

// snapshotOf makes a snapshot from a response of etcd. It does not copy the values.
func snapshotOf(id string, revision int64, values []*mvccpb.KeyValue) *Snapshot {
	s := &Snapshot{id: id, revision: revision, values: make([]keyValue, 0, len(values))}
	for _, kv := range values {
		if key := string(kv.Key); isKey(key) {
			s.values = append(s.values, keyValue{key, kv.Value, kv.ModRevision})
		}
	}
	slices.SortFunc(s.values, func(a, b keyValue) int { return strings.Compare(a.key, b.key) })
	return s
}

// View reads what is known of a subject: its history, then the context with the id instance, or when that is empty the
// one that is in force, and the context that keeps its status, all at one revision. It fails with ErrNotFound when instance is none of
// the subject's contexts. A subject of which neither history nor index is kept, because another program made its contexts,
// has those whose meta data name it; they are looked for among all contexts.
func (s *Store) View(ctx context.Context, subject DeploymentRef, instance string) (View, error) {
	err := error(errCompacted)
	var view View
	for i := 0; i < maxAttempts && errors.Is(err, errCompacted); i++ {
		view, err = s.view(ctx, subject, instance)
	}
	return view, wrap(fmt.Sprintf("cannot read status of %q", subject), err)
}

func (s *Store) view(ctx context.Context, subject DeploymentRef, instance string) (View, error) {
	if err := subject.check(); err != nil {
		return View{}, err
	}
	asOf := time.Now()
	values, revision, err := s.read(ctx, subject.key(), clientv3.WithPrefix())
	if err != nil {
		return View{}, err
	}
	found := newContents(revision, asOf, values)
	record, err := found.record(subject)
	switch {
	case err != nil:
	case record.isEmpty():
		err = s.discover(ctx, found.known, revision)
	case len(record.contexts) > 1 && record.info.lastContextID() == "": // The states of the contexts show which is in force.
		err = s.readContextInfo(ctx, found.known, record.contexts, revision)
	}
	if err != nil {
		return View{}, err
	}
	view, err := found.view(subject, instance, func(id string) (*Snapshot, error) { return s.snapshotAt(ctx, id, revision) })
	if err == nil && view.StatusContext != nil {
		view.observations, err = s.readObservations(ctx, view.StatusContext.ID(), revision)
	}
	return view, err
}

// readObservations returns when the saved bundles of a context were seen, at a revision.
func (s *Store) readObservations(ctx context.Context, id string, revision int64) (map[Handle]observation, error) {
	values, _, err := s.read(ctx, sidecarPrefix(ContextHandle(id)), clientv3.WithPrefix(), clientv3.WithRev(revision))
	return newContents(revision, time.Time{}, values).observations[id], err
}

// resolveContexts gets the context that is requested, or that of latest without an instance, and the context that keeps its status.
func (v *View) resolveContexts(latest, instance string, get func(id string) (*Snapshot, error)) error {
	v.ContextID = cmp.Or(instance, latest)
	isOne := func(a Action) bool { return a.ContextID == instance }
	switch {
	case v.ContextID == "":
		return nil
	case instance != "" && !slices.Contains(v.Contexts, instance) && !slices.ContainsFunc(v.Info.Actions, isOne):
		return fmt.Errorf("No state information for %s: %w", instance, ErrNotFound) //nolint:staticcheck // EMCO's words.
	}
	var err error
	if v.Context, err = nilIfEmpty(get(v.ContextID)); err != nil || v.Context == nil {
		return err
	}
	id, err := v.Context.StatusContextID()
	if err != nil || id == v.ContextID {
		v.StatusContext = v.Context
		return err
	}
	v.StatusContext, err = nilIfEmpty(get(id))
	return err
}

// nilIfEmpty turns a snapshot without keys into nil.
func nilIfEmpty(s *Snapshot, err error) (*Snapshot, error) {
	if err != nil || len(s.values) == 0 {
		return nil, err
	}
	return s, nil
}

// knownContexts is what is known of all contexts, by their id.
type knownContexts map[string]*contextInfo

// contextInfo is what keys, meta data and state say of a context.
type contextInfo struct {
	// created is the revision at which the context was created; 0 when the context was deleted and other keys are left.
	created int64
	// state is the state that rsync has written, and changed the revision of that write; empty and 0 before rsync begins.
	state   State
	changed int64
	// meta is the group that the meta data name, if any. clusters are those whose network intents the context holds.
	meta     DeploymentRef
	clusters map[DeploymentRef]bool
}

// discover adds to known, at one revision, which contexts there are, their subjects and their states. It reads keys, meta data and
// states, but no other values, so that large contexts cost no more.
func (s *Store) discover(ctx context.Context, known knownContexts, revision int64) error {
	ids, err := s.listContexts(ctx, known, revision)
	if err != nil {
		return wrap(opFindAll, err)
	}
	return s.readContextInfo(ctx, known, ids, revision)
}

// readContextInfo adds to known, at one revision, the subjects and states of contexts.
func (s *Store) readContextInfo(ctx context.Context, known knownContexts, ids []string, revision int64) error {
	var reads []clientv3.Op
	for _, id := range ids {
		h := ContextHandle(id)
		reads = append(reads,
			clientv3.OpGet(string(h.Level(partMeta)), clientv3.WithRev(revision)),
			clientv3.OpGet(string(h.Level(partStatus)), clientv3.WithRev(revision)),
			clientv3.OpGet(string(h.Level(partApp).Level(NetworkIntents).Level(partCluster)), clientv3.WithPrefix(), clientv3.WithKeysOnly(), clientv3.WithRev(revision)))
	}
	results, err := s.readEach(ctx, reads)
	if err != nil {
		return wrap(opFindAll, err)
	}
	for _, r := range results {
		for _, kv := range r.Kvs {
			known.update(string(kv.Key), kv)
		}
	}
	return nil
}

// ContextIDs returns the ids of all contexts.
func (s *Store) ContextIDs(ctx context.Context) ([]string, error) {
	ids, err := s.listContexts(ctx, knownContexts{}, 0)
	return ids, wrap(opFindAll, err)
}

// listContexts returns the ids of all contexts, and adds those that exist to known. It skips the keys below a context.
func (s *Store) listContexts(ctx context.Context, known knownContexts, revision int64) (ids []string, err error) {
	end := clientv3.GetPrefixRangeEnd(contextPrefix)
	for from := contextPrefix; ; {
		page, _, err := s.read(ctx, from, clientv3.WithRange(end), clientv3.WithKeysOnly(), clientv3.WithLimit(pageSize), clientv3.WithRev(revision))
		if err != nil {
			return nil, err
		}
		for _, kv := range page {
			id, parts, ok := splitKey(string(kv.Key))
			if ok && len(parts) == 0 {
				known.update(string(kv.Key), kv)
			}
			if ok && (len(ids) == 0 || ids[len(ids)-1] != id) {
				ids = append(ids, id)
			}
		}
		if len(page) < pageSize {
			return ids, nil
		}
		last, _, _ := strings.Cut(string(page[pageSize-1].Key[len(contextPrefix):]), "/")
		from = contextPrefix + last + "0" // The first key after those of the last context seen.
	}
}

// update applies a key with its value, or the deletion of the key when kv is nil. It reports whether the result of bySubject
// may change.
func (c knownContexts) update(key string, kv *mvccpb.KeyValue) bool {
	id, parts, ok := splitKey(key)
	if !ok {
		return false
	}
	e := c[id]
	if e == nil {
		e = &contextInfo{clusters: map[DeploymentRef]bool{}}
	}
	affectsSubjects := true
	switch {
	case len(parts) == 0:
		e.created = 0
		if kv != nil {
			e.created = kv.CreateRevision
		}
	case len(parts) == 1 && parts[0] == partMeta:
		e.setMeta(kv)
	case len(parts) == 1 && parts[0] == partStatus:
		e.setState(kv)
		affectsSubjects = false
	case kindOfParts(parts) == kindCluster && parts[1] == NetworkIntents:
		e.setCluster(parts[3], kv != nil)
	default:
		return false
	}
	c[id] = e
	if e.created == 0 && e.meta == (DeploymentRef{}) && len(e.clusters) == 0 && e.changed == 0 {
		delete(c, id)
	}
	return affectsSubjects
}

func (e *contextInfo) setMeta(kv *mvccpb.KeyValue) {
	e.meta = DeploymentRef{}
	var meta CompositeAppMeta
	if kv != nil && decode(string(kv.Key), kv.Value, &meta) == nil {
		if s, ok := meta.DeploymentRef(); ok {
			e.meta = s
		}
	}
}

// setState sets the state that rsync has written. A state that cannot be decoded counts too: rsync has begun.
func (e *contextInfo) setState(kv *mvccpb.KeyValue) {
	e.state, e.changed = "", 0
	if kv == nil {
		return
	}
	var value statusValue
	_ = decode(string(kv.Key), kv.Value, &value)
	e.state, e.changed = State(value.Status), kv.ModRevision
}

// rank returns the precedence of a context among those of one subject: 0 for a context that rsync has not begun (no state, or
// Created), 1 for one that an update has replaced, and 2 for all others.
func (e *contextInfo) rank() int {
	switch {
	case e.changed == 0 || e.state == StateCreated:
		return 0
	case e.state == StateUpdating || e.state == StateUpdated || e.state == StateUpdateFailed:
		return 1
	default:
		return 2
	}
}

func (e *contextInfo) setCluster(name string, exists bool) {
	if s, ok := subjectOfCluster(NetworkIntents, name); ok && exists {
		e.clusters[s] = true
	} else {
		delete(e.clusters, s)
	}
}

// bySubject returns the ids of the contexts that exist, by subject, the oldest first.
func (c knownContexts) bySubject() map[DeploymentRef][]string {
	contexts := map[DeploymentRef][]string{}
	for id, e := range c {
		if e.created == 0 {
			continue
		}
		if e.meta != (DeploymentRef{}) {
			contexts[e.meta] = append(contexts[e.meta], id)
		}
		for s := range e.clusters {
			contexts[s] = append(contexts[s], id)
		}
	}
	for _, ids := range contexts {
		slices.SortFunc(ids, func(a, b string) int {
			return cmp.Or(cmp.Compare(c[a].created, c[b].created), strings.Compare(a, b))
		})
	}
	return contexts
}

// inForce returns which of a subject's contexts, given oldest first, is in force; empty when there is none. It is not always
// the newest, because a rollback uses an older one again: it is the one with the highest rank and, among equals, the one
// whose state rsync wrote last.
func (c knownContexts) inForce(ids []string) string {
	best, bestInfo := "", &contextInfo{}
	for _, id := range ids {
		e := cmp.Or(c[id], &contextInfo{})
		if cmp.Or(cmp.Compare(e.rank(), bestInfo.rank()), cmp.Compare(e.changed, bestInfo.changed)) >= 0 {
			best, bestInfo = id, e
		}
	}
	return best
}
