package monitor

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

var sink = types.NamespacedName{Namespace: "ns", Name: "1-sink"}

func bundleAt(version string) *k8spluginv1alpha1.ResourceBundleState {
	return &k8spluginv1alpha1.ResourceBundleState{
		ObjectMeta: metav1.ObjectMeta{Namespace: sink.Namespace, Name: sink.Name, UID: "1", ResourceVersion: version},
	}
}

// TestWriteStatesNewest has the version that was written last and that which the cache has.
func TestWriteStatesNewest(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ written, cached, want string }{
		{"", "7", "7"}, {"9", "7", "9"}, {"10", "9", "10"}, {"9", "9", "9"}, {"9", "12", "12"}, {"nine", "7", "7"},
	} {
		e := newWriteStates().of(bundleAt("1"))
		if tc.written != "" {
			e.wrote(bundleAt(tc.written), 0, time.Time{})
		}
		got, sent := e.newest(bundleAt(tc.cached))
		if got.ResourceVersion != tc.want || (sent != nil) != (tc.written == tc.cached) || (e.written != nil) != (tc.want != tc.cached) {
			t.Errorf("newest(%q) after a write of %q = %q, which was sent: %t, and the write is kept: %t", tc.cached, tc.written, got.ResourceVersion, sent != nil, e.written != nil)
		}
	}
}

// TestWriteStatesBackOff has failed writes, or writes that another client reverts, one after the other at one moment.
func TestWriteStatesBackOff(t *testing.T) {
	t.Parallel()
	start, fail := time.Unix(1000, 0), func(e *writeState) { e.failed(time.Unix(1000, 0)) }
	revert := func(e *writeState) {
		e.settle(bundleAt("1"), 0)
		e.conflict(bundleAt("2"), 0, start)
		e.attempted(start)
	}
	for name, tc := range map[string]struct {
		happens func(*writeState)
		want    []time.Duration
	}{
		"failures": {fail, []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second,
			16 * time.Second, 30 * time.Second, 30 * time.Second, 30 * time.Second, 30 * time.Second}},
		"conflicts": {revert, []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second,
			16 * time.Second, 32 * time.Second, 64 * time.Second, 128 * time.Second, 256 * time.Second, 512 * time.Second, 10 * time.Minute, 10 * time.Minute}},
	} {
		e := newWriteStates().of(bundleAt("1"))
		var got []time.Duration
		for range tc.want {
			tc.happens(e)
			got = append(got, e.due(start))
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("pauses after %s in a row differ (-want +got):\n%s", name, diff)
		}
		e.wrote(bundleAt("2"), 0, start)
		if due := e.due(start.Add(writeInterval)); due > 0 {
			t.Errorf("%s after a success the next write waits %s, want none", writeInterval, due)
		}
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

	lone, waiting := newWriteStates().lone, 0
	for range 200 { // A thousand changes a second, for a while.
		if coalescing(lone, now) > 0 {
			waiting++
		}
		now = now.Add(time.Millisecond)
	}
	if waiting <= 150 {
		t.Errorf("%d of 200 changes at a steady rate are coalesced, want most", waiting)
	}
}

func TestPace(t *testing.T) {
	t.Parallel()
	status := &k8spluginv1alpha1.ResourceBundleStateStatus{
		PodStatuses: make(k8spluginv1alpha1.RawList, 1000), ResourceStatuses: make(k8spluginv1alpha1.RawList, 500),
		Resources: make([]k8spluginv1alpha1.ResourceHealth, 10),
	}
	if got, want := sizeOf(status), 1500+10*entrySize; got != want {
		t.Errorf("the size of a status is %d, want %d", got, want)
	}
	cases := map[string]struct {
		size     int
		interval time.Duration
		burst    int
	}{
		"nothing written yet":    {0, 250 * time.Millisecond, 3},
		"small":                  {50 << 10, 250 * time.Millisecond, 3},
		"the largest small one":  {128 << 10, 250 * time.Millisecond, 3},
		"the smallest large one": {128<<10 + 1, 500 * time.Millisecond, 1},
		"a megabyte":             {1 << 20, 2 * time.Second, 1},
		"larger than can be":     {100 << 20, 4 * time.Second, 1},
	}
	for name, tc := range cases {
		if interval, burst := paceOf(tc.size); interval != tc.interval || burst != tc.burst {
			t.Errorf("%s: %d writes and one more each %s, want %d and %s", name, burst, interval, tc.burst, tc.interval)
		}
	}
}

// TestWriteStatesNeverLosesTheLastChange applies random sequences of changes and clock jumps to one bundle, like a queue: each
// change is processed immediately, and again after the returned wait.
func TestWriteStatesNeverLosesTheLastChange(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := bundleAt("1")
		l := newWriteStates().of(b)
		b.Status.PodStatuses = make(k8spluginv1alpha1.RawList, rapid.IntRange(0, 2<<20).Draw(t, "size"))
		interval, burst := paceOf(sizeOf(&b.Status))
		longest := max(interval, coalesceTime)
		changes, written, writes := 0, 0, 0
		elapsed, offset := time.Duration(0), time.Duration(0)
		began := time.Unix(1_000_000, 0)
		now := func() time.Time { return began.Add(elapsed + offset) }
		look := func() {
			if written == changes {
				return
			}
			wait := l.due(now())
			if wait > longest {
				t.Fatalf("a change waits %s, want at most %s", wait, longest)
			}
			if wait > 0 {
				return
			}
			l.wrote(b, 0, now())
			written = changes
			writes++
		}
		jumps := 0
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"change", "change", "pass", "jump"}).Draw(t, "step") {
			case "change":
				changes++
			case "pass":
				elapsed += time.Duration(rapid.Int64Range(0, int64(2*interval)).Draw(t, "time"))
			case "jump":
				jumps++
				offset += time.Duration(rapid.Int64Range(int64(-time.Hour), int64(time.Hour)).Draw(t, "jump"))
			}
			look()
		}
		for range 2 { // If the clock was set back since a change got its wait, the change waits once more.
			elapsed += longest
			look()
		}
		if written != changes {
			t.Fatalf("%d of %d changes are written two intervals after the last one", written, changes)
		}
		// A clock that is set forward fills the bucket once.
		if allowed := burst*(1+jumps) + int(elapsed/interval) + jumps; writes > allowed {
			t.Fatalf("%d writes in %s with %d jumps, want at most %d", writes, elapsed, jumps, allowed)
		}
	})
}

func TestLoneChangeDoesNotWait(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1 << 20} {
		b, now := bundleAt("1"), time.Unix(1_000_000, 0)
		l := newWriteStates().of(b)
		b.Status.PodStatuses = make(k8spluginv1alpha1.RawList, size)
		interval, burst := paceOf(size)
		for range 20 {
			if wait := l.due(now); wait > 0 {
				t.Errorf("size %d: a lone change waits %s, want none", size, wait)
			}
			l.wrote(b, 0, now)
			now = now.Add(time.Duration(burst) * interval)
		}
	}
}
