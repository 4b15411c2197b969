package pruning

import (
	"fmt"
	"maps"
	"slices"
)

// SetConflict records the other controller that writes the status of an object. manager is its field manager; empty means that the object has no conflict.
func (g *Guard) SetConflict(object, manager string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if manager == "" {
		delete(g.conflicts, object)
		return
	}
	if g.conflicts == nil {
		g.conflicts = map[string]string{}
	}
	g.conflicts[object] = manager
}

// conflict returns an error that names one of the conflicts; nil when there is none. The caller holds mu.
func (g *Guard) conflict() error {
	if len(g.conflicts) == 0 {
		return nil
	}
	first := slices.Min(slices.Collect(maps.Keys(g.conflicts)))
	return fmt.Errorf("the status of %d %s is also written by another controller, such as %q by %q: turn that controller off", len(g.conflicts), g.subject, first, g.conflicts[first])
}
