package pruning

import (
	"fmt"
	"maps"
	"slices"
)

// SetConflict records who else writes the status of an object, as managed fields name them, and undoes what is written; empty for none.
func (g *Guard) SetConflict(object, by string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if by == "" {
		delete(g.conflicts, object)
		return
	}
	if g.conflicts == nil {
		g.conflicts = map[string]string{}
	}
	g.conflicts[object] = by
}

// conflict returns an error for people while others write what is written here. The caller holds mu.
func (g *Guard) conflict() error {
	if len(g.conflicts) == 0 {
		return nil
	}
	first := slices.Min(slices.Collect(maps.Keys(g.conflicts)))
	return fmt.Errorf("the status of %d %s is also written by another controller, such as %q by %q: turn that controller off", len(g.conflicts), g.subject, first, g.conflicts[first])
}
