package rsync

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

// maxConflicts is how often an event is added again when others change the queue at the same time.
const maxConflicts = 10

// Enqueue adds an event to the queue of a context. When it returns nil the event is in etcd. It refuses a context that
// cannot be deployed and an event that cannot begin.
func Enqueue(ctx context.Context, store *appcontext.Store, id string, event deploy.Event) error {
	err := enqueue(ctx, store, id, event)
	return errors.Wrapf(err, "cannot add event %q to context %q", event, id)
}

func enqueue(ctx context.Context, store *appcontext.Store, id string, event deploy.Event) error {
	snapshot, err := store.Snapshot(ctx, id)
	if err != nil {
		return err
	}
	if _, err := deploy.NewPlan(snapshot); err != nil {
		return err
	}
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
			return refused
		}
		if !errors.Is(err, appcontext.ErrConflict) {
			return err
		}
	}
	return err
}
