package monitor

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestWatchDoubtsARefusalOfWhatItHasRead has an API server that starts deny for a moment what it allows.
func TestWatchDoubtsARefusalOfWhatItHasRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{}
		w := f.start(t)
		var calls atomic.Int32
		after(time.Minute)
		w.readable = func() { calls.Add(1) }
		for _, moment := range []time.Duration{100 * time.Millisecond, 2 * time.Second, doubtTime - 2*time.Second} {
			f.fail(nil, errForbidden, nil)
			f.breakOff()
			after(moment)
			f.fail(nil, nil, nil)
			after(time.Hour)
			if got := w.unreadable(); got != "" || calls.Load() != 0 || holds(w) != 1 {
				t.Fatalf("after a refusal of %s: unreadable %q, %d calls, %d objects; want none, 0, 1", moment, got, calls.Load(), holds(w))
			}
		}
		asked := len(f.opens)
		f.fail(nil, errForbidden, nil)
		f.breakOff()
		after(2 * doubtTime)
		if got := w.unreadable(); got != unreadForbidden || calls.Load() != 1 {
			t.Errorf("unreadable: %q after %d calls, want %q after one: the refusal lasts", got, calls.Load(), unreadForbidden)
		}
		if got := len(f.opens) - asked; got < 4 {
			t.Errorf("asked %d times while the refusal was young, want soon and often: it is the first one for hours", got)
		}
	})
}

// TestAKindThatIsNotServedForAMomentKeepsItsObjects has a CRD go from one version to another, while neither is served.
func TestAKindThatIsNotServedForAMomentKeepsItsObjects(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{}
		w := f.start(t)
		after(time.Minute)
		for range 3 {
			f.fail(errNotServed, apierrors.NewNotFound(schema.GroupResource{}, ""), nil)
			f.breakOff()
			after(doubtTime / 2)
			if holds(w) != 1 || w.unreadable() != "" || !w.shows() {
				t.Errorf("%d objects, unreadable %q, shown %t, of a kind that has been away for a moment", holds(w), w.unreadable(), w.shows())
			}
			f.fail(nil, nil, nil)
			w.retry()
			after(time.Minute)
		}
		f.fail(errNotServed, apierrors.NewNotFound(schema.GroupResource{}, ""), nil)
		f.breakOff()
		after(2 * doubtTime)
		if holds(w) != 0 || w.unreadable() != "" || w.shows() {
			t.Errorf("%d objects, unreadable %q, shown %t, of a kind that is gone", holds(w), w.unreadable(), w.shows())
		}
	})
}

// TestARefusalIsNoDoubtThatAKindIsServed has a right missing for a while, and then the kind not served for a moment.
func TestARefusalIsNoDoubtThatAKindIsServed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{}
		w := f.start(t)
		after(time.Minute)
		f.fail(nil, errForbidden, nil)
		f.breakOff()
		after(time.Hour)
		f.fail(errNotServed, nil, nil)
		w.retry()
		after(time.Millisecond)
		if holds(w) != 1 {
			t.Errorf("%d objects after one answer that the kind is not served, want 1", holds(w))
		}
		after(time.Minute)
		if holds(w) != 0 {
			t.Errorf("%d objects of a kind that has not been served for a minute, want none", holds(w))
		}
	})
}

// TestAKindThatIsNotServedAtTheStartIsDoubted starts a monitor together with an API server that does not serve a kind yet.
func TestAKindThatIsNotServedAtTheStartIsDoubted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{}
		f.fail(errNotServed, nil, nil)
		w := f.start(t)
		if !settled(w) {
			t.Error("a kind that is not served holds the monitor up")
		}
		after(doubtTime / 2)
		if got := w.unreadable(); got != unreadNoAnswer {
			t.Errorf("unreadable %q, want %q: it may be served in a moment", got, unreadNoAnswer)
		}
		f.fail(nil, nil, nil)
		after(doubtTime)
		if w.unreadable() != "" || holds(w) != 1 {
			t.Errorf("unreadable %q and %d objects of a kind that is served, want 1", w.unreadable(), holds(w))
		}
		f.fail(errNotServed, nil, nil)
		missing := f.start(t)
		after(doubtTime + time.Second)
		if got := missing.unreadable(); got != "" {
			t.Errorf("unreadable %q after %s, want none: there is no such kind", got, doubtTime+time.Second)
		}
	})
}

// TestOneRefusalOfAKindThatIsGoneProvesNothing has an API server that starts deny for a moment that a kind may be looked for.
func TestOneRefusalOfAKindThatIsGoneProvesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{}
		f.fail(errNotServed, nil, nil)
		w := f.start(t)
		after(time.Minute)
		for range 3 {
			f.fail(errForbidden, nil, nil)
			w.retry()
			after(time.Millisecond)
			if w.unreadable() != "" {
				t.Errorf("a kind that is gone is unreadable (%q) after one refusal", w.unreadable())
			}
			f.fail(errNotServed, nil, nil)
			w.retry()
			after(doubtTime)
		}
	})
}
