package monitor

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

var sink = types.NamespacedName{Namespace: "ns", Name: "1-sink"}

func bundleAt(version string) *k8spluginv1alpha1.ResourceBundleState {
	return &k8spluginv1alpha1.ResourceBundleState{
		ObjectMeta: metav1.ObjectMeta{Namespace: sink.Namespace, Name: sink.Name, UID: "1", ResourceVersion: version},
	}
}

func TestWriteStatesNewest(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason          string
		written, cached string
		want            string
	}{
		"NothingWritten":  {"Without a write of our own the cache is all there is.", "", "7", "7"},
		"CacheLagsBehind": {"What we wrote is newer than a cache that does not have it yet.", "9", "7", "9"},
		"OneDigitMore":    {"Versions are numbers, not words.", "10", "9", "10"},
		"CacheCaughtUp":   {"The cache has our write.", "9", "9", "9"},
		"OthersWrote":     {"The cache has more than our write.", "9", "12", "12"},
		"NoNumber":        {"Versions that cannot be compared leave the cache as the truth.", "nine", "7", "7"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newWriteStates().of(bundleAt("1"))
			if tc.written != "" {
				e.wrote(bundleAt(tc.written), 0, time.Time{})
			}
			got, sent := e.newest(bundleAt(tc.cached))
			if got.ResourceVersion != tc.want {
				t.Errorf("%s newest(%q) = %q, want %q", tc.reason, tc.cached, got.ResourceVersion, tc.want)
			}
			if arrived := sent != nil; arrived != (tc.written == tc.cached) {
				t.Errorf("%s newest(%q) says %t of whether this is what was sent", tc.reason, tc.cached, arrived)
			}
			if held := e.written != nil; held != (tc.want != tc.cached) {
				t.Errorf("%s the written bundle is held: %t", tc.reason, held)
			}
		})
	}
}

func TestWriteStatesSettled(t *testing.T) {
	t.Parallel()
	l := newWriteStates()
	e := l.of(bundleAt("1"))
	if e.isSettled(bundleAt("1"), 0) {
		t.Error("a bundle that was never looked at is settled")
	}
	e.settle(bundleAt("1"), e.changes.Load())
	if !e.isSettled(bundleAt("1"), e.changes.Load()) {
		t.Error("a bundle that was found right is not settled")
	}
	if e.isSettled(bundleAt("2"), e.changes.Load()) {
		t.Error("a bundle that others changed is settled")
	}
	l.touch(sink)
	if e.isSettled(bundleAt("1"), e.changes.Load()) {
		t.Error("a bundle with a changed object is settled")
	}
	seen := e.changes.Load()
	l.touch(sink) // While the bundle is being built.
	e.wrote(bundleAt("2"), seen, time.Time{})
	if e.isSettled(bundleAt("2"), e.changes.Load()) {
		t.Error("a change during the write is lost")
	}
	l.forget(sink)
	if l.of(bundleAt("2")).isSettled(bundleAt("2"), seen) {
		t.Error("a bundle that was forgotten is settled")
	}
}

func TestWriteStatesBackOffAfterFailures(t *testing.T) {
	t.Parallel()
	e, start := newWriteStates().of(bundleAt("1")), time.Unix(1000, 0)
	var got []time.Duration
	for range 10 {
		e.failed(start)
		got = append(got, e.due(start))
	}
	want := []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second,
		16 * time.Second, 30 * time.Second, 30 * time.Second, 30 * time.Second, 30 * time.Second}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pauses after failures in a row differ (-want +got):\n%s", diff)
	}
	e.wrote(bundleAt("2"), 0, start)
	if due := e.due(start.Add(writeInterval)); due > 0 {
		t.Errorf("%s after a success the next write waits %s, want none", writeInterval, due)
	}
}

// TestWriteStatesConflict distinguishes a client that keeps writing a status from other changes of a bundle.
func TestWriteStatesConflict(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		change func(b *k8spluginv1alpha1.ResourceBundleState)
		want   int
	}{
		"Status": {"Nothing but the status differs.", func(*k8spluginv1alpha1.ResourceBundleState) {}, 1},
		"Spec":   {"Another selector makes another status.", func(b *k8spluginv1alpha1.ResourceBundleState) { b.Generation++ }, 0},
		"Bundle": {"A bundle that was made again has no status.", func(b *k8spluginv1alpha1.ResourceBundleState) { b.UID += "1" }, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, now, reported := newWriteStates(), time.Unix(1000, 0), 0
			current := bundleAt("0")
			for i := range 20 {
				b := current.DeepCopy()
				b.ResourceVersion = fmt.Sprint(2*i + 1)
				tc.change(b)
				e := l.of(b)
				b, _ = e.newest(b)
				if e.conflict(b, e.changes.Load(), now) {
					reported++
				}
				current = b.DeepCopy()
				current.ResourceVersion = fmt.Sprint(2*i + 2)
				e.wrote(current.DeepCopy(), e.changes.Load(), now)
				now = now.Add(20 * time.Second)
			}
			if reported != tc.want {
				t.Errorf("%s %d conflicts are reported, want %d", tc.reason, reported, tc.want)
			}
		})
	}
}

func TestWriteStatesDropsStateOfRecreatedBundle(t *testing.T) {
	t.Parallel()
	l, now := newWriteStates(), time.Unix(1000, 0)
	for range 10 {
		l.of(bundleAt("1")).failed(now)
	}
	again := bundleAt("2")
	again.UID = "2"
	if due := l.of(again).due(now); due > 0 {
		t.Errorf("a bundle that was made again waits %s for what happened to the one before", due)
	}
}

// TestWriteStatesDistinguishLoneChangeFromBurst changes bundles one after the other, and then many at once.
func TestWriteStatesDistinguishLoneChangeFromBurst(t *testing.T) {
	t.Parallel()
	bundleOf := func(i int) *k8spluginv1alpha1.ResourceBundleState {
		b := bundleAt(fmt.Sprint(i))
		b.Name = fmt.Sprint("1-app-", i)
		return b
	}
	l, now := newWriteStates(), time.Unix(1000, 0)
	for i := range 200 { // Forty changes a second, each in another bundle.
		if wait := l.of(bundleOf(i)).due(now); wait > 0 {
			t.Fatalf("lone change %d waits %s", i, wait)
		}
		l.of(bundleOf(i)).wrote(bundleOf(i), 0, now)
		now = now.Add(25 * time.Millisecond)
	}
	now = now.Add(time.Second)
	waiting := 0
	for i := range 100 {
		switch wait := l.of(bundleOf(i)).due(now); {
		case wait > coalesceTime:
			t.Fatalf("in a burst a bundle waits %s, want at most %s", wait, coalesceTime)
		case wait > 0:
			waiting++
		}
	}
	if waiting < 90 {
		t.Errorf("%d of 100 bundles that change at once coalesce changes, want nearly all", waiting)
	}
	for i := range 100 {
		if wait := l.of(bundleOf(i)).due(now.Add(coalesceTime)); wait > 0 {
			t.Errorf("bundle %d has coalesced changes and waits another %s", i, wait)
		}
	}
	if wait := l.of(bundleOf(0)).due(now.Add(-time.Hour)); wait > coalesceTime {
		t.Errorf("after the clock was set back a bundle waits %s", wait)
	}
}

// TestSteadyRateOfChangesIsABurst changes bundles at a steady rate.
func TestSteadyRateOfChangesIsABurst(t *testing.T) {
	t.Parallel()
	for every, want := range map[time.Duration]bool{25 * time.Millisecond: false, time.Millisecond: true} {
		lone, now, coalesced := newWriteStates().lone, time.Unix(1000, 0), 0
		for range 200 {
			if coalescing(lone, now) > 0 {
				coalesced++
			}
			now = now.Add(every)
		}
		if got := coalesced > 150; got != want || coalesced > 0 && !want {
			t.Errorf("one each %s: %d of 200 changes were coalesced, want most: %t", every, coalesced, want)
		}
	}
}
