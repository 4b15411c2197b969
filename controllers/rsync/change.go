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

// edit says what becomes of the lifecycle of a context.
type edit struct {
	id   string
	next func(deploy.Lifecycle) (deploy.Lifecycle, error)
}

// commit changes the lifecycles once. It fails with ErrConflict when one of them was changed meanwhile.
func (c lifecycleChange) commit(ctx context.Context, store *appcontext.Store) error {
	condition := appcontext.Condition{Lock: c.lock, Levels: deploy.LifecycleLevels()}
	var writes []appcontext.Write
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
	return store.WriteLevels(ctx, c.edits[0].id, slices.Concat(c.writes, writes), condition, c.records...)
}
