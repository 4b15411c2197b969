package rsync

import (
	"context"
	"slices"

	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

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
		base, err := store.Snapshot(ctx, e.id, condition.Levels...)
		if err != nil {
			return err
		}
		before, err := deploy.ReadLifecycle(base)
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
