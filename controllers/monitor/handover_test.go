package monitor

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	clocktesting "k8s.io/utils/clock/testing"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/controllers/observe"
)

// fakeClock sets a fake clock for the watches.
func fakeClock(all *watches) *clocktesting.FakeClock {
	c := clocktesting.NewFakeClock(time.Unix(1_000_000, 0))
	all.clock = c
	return c
}

// reportReady makes the watch ready.
func (w *watch) reportReady(c *clocktesting.FakeClock) {
	for _, kind := range []observe.EventKind{observe.Listed, observe.Watching} {
		w.informer.Tracker.Report(observe.Event{Kind: kind})
	}
	c.Step(watchRules.CatchUp)
}

// reportFailure makes the attempts of the watch fail. With long, they fail until the failure is confirmed.
func (w *watch) reportFailure(c *clocktesting.FakeClock, err error, long bool) {
	kind, reason := observe.Classify(err)
	e := observe.Event{Kind: kind, Reason: reason, Message: err.Error()}
	w.informer.Tracker.Report(e)
	if long {
		c.Step(observe.ConfirmAfter)
		w.informer.Tracker.Report(e)
	}
	w.changed(w.informer.State())
}

// addReadWatch adds a ready watch of a version of a kind, which has one object.
func addReadWatch(t *testing.T, all *watches, c *clocktesting.FakeClock, version string) *watch {
	t.Helper()
	w := all.add(place{kind: schema.GroupVersionKind{Group: "example.io", Version: version, Kind: "Widget"}, key: testKey})
	w.store.changed = func(sets.Set[selectorKey]) {}
	o := object("ns", "a", "one", "5")
	o.SetUID("1")
	o.SetAPIVersion("example.io/" + version)
	if err := w.store.Replace([]any{o}, "5"); err != nil {
		t.Fatal(err)
	}
	w.reportReady(c)
	return w
}

// stopIdleWatch stops a watch that does not run.
func stopIdleWatch(t *testing.T, all *watches, w *watch) {
	t.Helper()
	w.cancel = func() {}
	all.stopWatch(t.Context(), w)
}

// lookWhile calls look repeatedly until change returns or the test has failed.
func lookWhile(t *testing.T, change, look func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		change()
	}()
	for !t.Failed() {
		look()
		select {
		case <-done:
			return
		default:
		}
	}
	<-done
}

// TestGatherPrefersHealthyWatch has watches of two versions of a kind, of which the first one fails.
func TestGatherPrefersHealthyWatch(t *testing.T) {
	t.Parallel()
	all := watchesOf(nil, nil)
	c := fakeClock(all)
	b := bundleAt("1")
	b.Name = "one"
	dead := addReadWatch(t, all, c, "v1")
	addReadWatch(t, all, c, "v2")
	for _, want := range []string{"example.io/v1", "example.io/v2"} {
		objects, _, err := all.gather(b)
		if err != nil || len(objects) != 1 || objects[0].GetAPIVersion() != want {
			t.Errorf("objects %v (error %v), want one of %s", objects, err, want)
		}
		dead.reportFailure(c, errPassing, false)
	}
}

// TestGatherDuringWatchHandover has two watches that replace each other. One of them cannot be read.
func TestGatherDuringWatchHandover(t *testing.T) {
	t.Parallel()
	all := watchesOf(nil, nil)
	c := fakeClock(all)
	b := bundleAt("1")
	b.Name = "one"
	first := addReadWatch(t, all, c, "v1")
	lookWhile(t, func() {
		for range 300 {
			unread := all.add(place{kind: schema.GroupVersionKind{Group: "example.io", Version: "v2", Kind: "Widget"}, key: testKey})
			unread.store.changed = func(sets.Set[selectorKey]) {}
			stopIdleWatch(t, all, first)
			first = addReadWatch(t, all, c, "v1")
			stopIdleWatch(t, all, unread)
		}
	}, func() {
		objects, unreadable, err := all.gather(b)
		if err != nil || len(objects)+len(unreadable) == 0 {
			t.Errorf("the bundle has no object, and none is missed (error %v)", err)
		}
	})
}

// TestGatherWhileVersionIsRemoved has a CRD that changes from one version to another one, which cannot be read yet. It reads the
// bundle while the watch of the first version detects that the version is removed.
func TestGatherWhileVersionIsRemoved(t *testing.T) {
	t.Parallel()
	all := watchesOf(nil, nil)
	c := fakeClock(all)
	b := bundleAt("1")
	b.Name = "one"
	former := addReadWatch(t, all, c, "v1")
	all.add(place{kind: schema.GroupVersionKind{Group: "example.io", Version: "v2", Kind: "Widget"}, key: testKey})
	look := func(when string) {
		objects, unreadable, err := all.gather(b)
		if err != nil || len(objects)+len(unreadable) == 0 {
			t.Errorf("%s the bundle has no object, and none is missed (error %v)", when, err)
		}
	}
	former.reportFailure(c, observe.ErrNotServed, false)
	look("before")
	former.wake = func() { look("while bundles are looked at again") }
	former.reportFailure(c, observe.ErrNotServed, true)
	look("after")

	former.wake = func() {}
	lookWhile(t, func() {
		for range 300 {
			if err := former.store.Replace([]any{object("ns", "a", "one", "5")}, "5"); err != nil {
				t.Error(err)
			}
			former.reportReady(c)
			former.reportFailure(c, observe.ErrNotServed, true)
		}
	}, func() { look("at any time") })
}

// TestGatherWhileGroupRecovers has a group that alternates between responding and not responding while a bundle is read.
func TestGatherWhileGroupRecovers(t *testing.T) {
	t.Parallel()
	all := watchesOf(nil, nil)
	all.setUncertain(t.Context(), sets.New(allGroups))
	b := bundleAt("1")
	b.Name, b.Status.Resources = "one", []k8spluginv1alpha1.ResourceHealth{entryOf("example.io", "Widget")}
	want := []schema.GroupKind{{Group: "example.io", Kind: "Widget"}}
	lookWhile(t, func() {
		for range 5000 {
			w := all.add(place{kind: schema.GroupVersionKind{Group: "example.io", Version: "v1", Kind: "Widget"}, key: testKey})
			w.store.changed = func(sets.Set[selectorKey]) {}
			all.setUncertain(t.Context(), nil)
			all.setUncertain(t.Context(), sets.New(allGroups))
			stopIdleWatch(t, all, w)
		}
	}, func() {
		if got := unreadableOf(t, all, b); !slices.Equal(got, want) {
			t.Errorf("unreadable: %v, want %v", got, want)
		}
	})
}
