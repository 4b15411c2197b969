package monitor

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// lane lets only so many bundles pass at a time. Large bundles, which take long
// to make and to write, go through one: they must not keep all workers, so that
// small bundles wait for nobody.
type lane struct {
	mu     sync.Mutex
	free   int
	inside sets.Set[types.NamespacedName]
	// waiting are those that found no room, in the order in which they came, and
	// called those of them that have been named since and have not been looked at yet.
	waiting []types.NamespacedName
	called  sets.Set[types.NamespacedName]
}

func newLane(width int) *lane {
	return &lane{free: width, inside: sets.New[types.NamespacedName](), called: sets.New[types.NamespacedName]()}
}

// enter says whether the bundle may pass. One that may not waits until leave names it.
func (l *lane) enter(name types.NamespacedName) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.called.Delete(name)
	at := slices.Index(l.waiting, name)
	if l.free == 0 {
		if at < 0 {
			l.waiting = append(l.waiting, name)
		}
		return false
	}
	if at >= 0 {
		l.waiting = slices.Delete(l.waiting, at, at+1)
	}
	l.free--
	l.inside.Insert(name)
	return true
}

// leave says that a bundle has been looked at, whether or not it had to pass.
// It returns the next one to look at, if the room that it leaves, or had no need of, is wanted.
func (l *lane) leave(name types.NamespacedName) (next types.NamespacedName, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.inside.Has(name):
		l.inside.Delete(name)
		l.free++
	case l.called.Has(name):
		l.called.Delete(name)
	default:
		return types.NamespacedName{}, false
	}
	if l.free == 0 || len(l.waiting) == 0 {
		return types.NamespacedName{}, false
	}
	next, l.waiting = l.waiting[0], l.waiting[1:]
	l.called.Insert(next)
	return next, true
}
