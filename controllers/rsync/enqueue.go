package rsync

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

// maxConflicts is how often an event is added again when others change the queue at the same time.
const maxConflicts = 10

// actions are what the history of a deployment intent group says of events.
var actions = map[deploy.Event]appcontext.ActionState{
	deploy.EventInstantiate: appcontext.ActionInstantiated,
	deploy.EventTerminate:   appcontext.ActionTerminated,
}

// Enqueue adds an event to the queue of a context, and records in the history of its deployment intent group what the user
// did. When it returns nil the event is in etcd. It refuses a context that cannot be deployed and an event that cannot begin.
func Enqueue(ctx context.Context, store *appcontext.Store, id string, event deploy.Event, now time.Time) error {
	subject, named, err := enqueue(ctx, store, id, event)
	if err != nil {
		return errors.Wrapf(err, "cannot add event %q to context %q", event, id)
	}
	if !named {
		return nil
	}
	action := appcontext.Action{State: actions[event], ContextID: id, Time: now}
	err = store.RecordAction(ctx, appcontext.Record{Subject: subject, Action: action, StatusContextID: id})
	return errors.Wrapf(err, "event %q of context %q is added, and not in the history", event, id)
}

// enqueue adds an event to the queue, and returns what the context was made for, and whether it says so.
func enqueue(ctx context.Context, store *appcontext.Store, id string, event deploy.Event) (subject appcontext.Subject, named bool, err error) {
	snapshot, err := store.Snapshot(ctx, id)
	if err != nil {
		return subject, false, err
	}
	if _, err := deploy.NewPlan(snapshot); err != nil {
		return subject, false, err
	}
	meta, _ := snapshot.Meta() // The plan has read it.
	subject, named = meta.Subject()
	for range maxConflicts {
		var refused error
		err = changeLifecycle(ctx, store, id, nil, func(l deploy.Lifecycle) deploy.Lifecycle {
			next, err := l.Enqueue(event)
			if refused = err; err != nil {
				return l
			}
			return next
		})
		if refused != nil {
			return subject, false, refused
		}
		if !errors.Is(err, appcontext.ErrConflict) {
			break
		}
	}
	return subject, named, err
}
