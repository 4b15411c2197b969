package monitor

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

func TestPace(t *testing.T) {
	t.Parallel()
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

// TestPausesAfterConflictsAndFailures checks how long a bundle waits after so many of either in a row.
func TestPausesAfterConflictsAndFailures(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		size, failures, conflicts int
		want                      time.Duration
	}{
		"one failure":            {failures: 1, want: 500 * time.Millisecond},
		"many failures":          {failures: 1000, want: 30 * time.Second},
		"one conflict":           {conflicts: 1, want: 500 * time.Millisecond},
		"many conflicts":         {conflicts: 1000, size: 1 << 20, want: 10 * time.Minute},
		"conflicts and failures": {conflicts: 2, failures: 3, want: 2 * time.Second},
	}
	for name, tc := range cases {
		e, now := newWriteStates().of(bundleAt("1")), time.Unix(1_000_000, 0)
		e.size, e.failures = tc.size, max(tc.failures-1, 0)
		if tc.conflicts > 0 {
			e.settle(bundleAt("0"), 0)
			e.conflicts, e.lastConflict = tc.conflicts-1, now
			e.conflict(bundleAt("1"), 0, now)
		}
		if tc.failures > 0 {
			e.failed(now)
		} else {
			e.attempted(now)
		}
		if got := e.due(now); got != tc.want {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
}

func TestSizeOfAStatus(t *testing.T) {
	t.Parallel()
	status := &k8spluginv1alpha1.ResourceBundleStateStatus{
		PodStatuses: make(k8spluginv1alpha1.RawList, 1000), ResourceStatuses: make(k8spluginv1alpha1.RawList, 500),
		Resources: make([]k8spluginv1alpha1.ResourceHealth, 10),
	}
	if got, want := sizeOf(status), 1500+10*entrySize; got != want {
		t.Errorf("size is %d, want %d", got, want)
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
