package monitor

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"
)

// TestLaneCallsOneAtATime has many wait: each that leaves calls one, and no more are looked at for nothing.
func TestLaneCallsOneAtATime(t *testing.T) {
	t.Parallel()
	const bundles = 500
	l := newLane(largeAtATime)
	var queue, inside, passed []types.NamespacedName
	for i := range bundles {
		queue = append(queue, types.NamespacedName{Name: fmt.Sprint(i)})
	}
	looks := 0
	leave := func(name types.NamespacedName) {
		if next, ok := l.leave(name); ok {
			queue = append(queue, next)
		}
	}
	for len(queue) > 0 || len(inside) > 0 {
		if len(queue) == 0 {
			leave(inside[0])
			inside = inside[1:]
			continue
		}
		name := queue[0]
		queue = queue[1:]
		looks++
		if l.enter(name) {
			inside, passed = append(inside, name), append(passed, name)
		} else {
			leave(name)
		}
	}
	if len(passed) != bundles || looks > 2*bundles {
		t.Errorf("%d of %d bundles passed after %d looks, want all after two each at most", len(passed), bundles, looks)
	}
	if !slices.IsSortedFunc(passed, func(a, b types.NamespacedName) int { return len(a.Name) - len(b.Name) }) {
		t.Errorf("bundles passed in the order %v, want that in which they came", passed)
	}
}

// TestLaneForgetsNobody plays any order of events: bundles come, come again, no
// longer need to pass when they are called, and leave.
func TestLaneForgetsNobody(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(1, 3).Draw(t, "width")
		l := newLane(width)
		queued, inside, waiting := sets.New[types.NamespacedName](), sets.New[types.NamespacedName](), sets.New[types.NamespacedName]()
		pick := func(from sets.Set[types.NamespacedName]) types.NamespacedName {
			names := from.UnsortedList()
			slices.SortFunc(names, func(a, b types.NamespacedName) int { return len(a.Name) - len(b.Name) })
			return rapid.SampledFrom(names).Draw(t, "bundle")
		}
		leave := func(name types.NamespacedName) {
			inside.Delete(name)
			if next, ok := l.leave(name); ok {
				queued.Insert(next)
			}
		}
		look := func(name types.NamespacedName, needed bool) {
			queued.Delete(name)
			waiting.Delete(name)
			switch {
			case !needed:
				leave(name)
			case l.enter(name):
				inside.Insert(name)
			default:
				waiting.Insert(name)
				leave(name)
			}
			if inside.Len() > width {
				t.Fatalf("%d bundles pass at a time, want %d", inside.Len(), width)
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			ready := queued.Difference(inside) // A queue gives no bundle to two workers.
			switch step := rapid.IntRange(0, 3).Draw(t, "step"); {
			case step == 0:
				queued.Insert(types.NamespacedName{Name: fmt.Sprintf("%0*d", rapid.IntRange(1, 9).Draw(t, "name"), 0)})
			case step == 1 && inside.Len() > 0:
				leave(pick(inside))
			case ready.Len() > 0:
				look(pick(ready), step != 2 || rapid.Bool().Draw(t, "needed"))
			}
		}
		for queued.Len() > 0 || inside.Len() > 0 {
			if inside.Len() > 0 {
				leave(pick(inside))
				continue
			}
			look(pick(queued), true)
		}
		if waiting.Len() > 0 {
			t.Fatalf("%v wait for ever", waiting.UnsortedList())
		}
	})
}

// TestLaneCallsAnotherInPlaceOfOneThatNeedNotPass has a bundle be right by the time it is called.
func TestLaneCallsAnotherInPlaceOfOneThatNeedNotPass(t *testing.T) {
	t.Parallel()
	l := newLane(1)
	a, b, c := types.NamespacedName{Name: "a"}, types.NamespacedName{Name: "b"}, types.NamespacedName{Name: "c"}
	if !l.enter(a) || l.enter(b) || l.enter(c) {
		t.Fatal("a lane for one lets others than the first one pass")
	}
	if next, _ := l.leave(a); next != b {
		t.Fatalf("called %q, want %q", next, b)
	}
	if next, _ := l.leave(b); next != c {
		t.Errorf("called %q in place of one that need not pass, want %q", next, c)
	}
}
