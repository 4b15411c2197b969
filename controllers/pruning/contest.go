package pruning

import (
	"fmt"
	"maps"
	"slices"
)

// Contested reports who else writes the status of an object, as managed fields name them, and undoes what is written; empty for none.
func (g *Guard) Contested(object, by string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if by == "" {
		delete(g.contested, object)
		return
	}
	if g.contested == nil {
		g.contested = map[string]string{}
	}
	g.contested[object] = by
}

// contest returns an error for people while others write what is written here. The caller holds mu.
func (g *Guard) contest() error {
	if len(g.contested) == 0 {
		return nil
	}
	first := slices.Min(slices.Collect(maps.Keys(g.contested)))
	return fmt.Errorf("the status of %d %s is also written by another controller, such as %q by %q: turn that controller off", len(g.contested), g.subject, first, g.contested[first])
}
