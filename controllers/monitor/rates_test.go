package monitor

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

func TestAllowance(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		size, failures, conflicts int
		want                      allowance
	}{
		"small":                  {size: 50 << 10, want: allowance{250 * time.Millisecond, 3}},
		"nothing written yet":    {want: allowance{250 * time.Millisecond, 3}},
		"the largest small one":  {size: 128 << 10, want: allowance{250 * time.Millisecond, 3}},
		"the smallest large one": {size: 128<<10 + 1, want: allowance{500 * time.Millisecond, 1}},
		"a megabyte":             {size: 1 << 20, want: allowance{2 * time.Second, 1}},
		"larger than can be":     {size: 100 << 20, want: allowance{4 * time.Second, 1}},
		"one failure":            {failures: 1, want: allowance{500 * time.Millisecond, 1}},
		"many failures":          {failures: 1000, want: allowance{30 * time.Second, 1}},
		"one conflict":           {conflicts: 1, want: allowance{500 * time.Millisecond, 1}},
		"many conflicts":         {conflicts: 1000, size: 1 << 20, want: allowance{10 * time.Minute, 1}},
		"conflicts and failures": {conflicts: 2, failures: 2, want: allowance{4 * time.Second, 1}},
	}
	for name, tc := range cases {
		if got := allowanceOf(tc.size, tc.failures, tc.conflicts); got != tc.want {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
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
		a := allowanceOf(sizeOf(&b.Status), 0, 0)
		longest := max(a.interval, coalesceTime)
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
				elapsed += time.Duration(rapid.Int64Range(0, int64(2*a.interval)).Draw(t, "time"))
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
		if allowed := a.burst*(1+jumps) + int(elapsed/a.interval) + jumps; writes > allowed {
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
		a := allowanceOf(size, 0, 0)
		for range 20 {
			if wait := l.due(now); wait > 0 {
				t.Errorf("size %d: a lone change waits %s, want none", size, wait)
			}
			l.wrote(b, 0, now)
			now = now.Add(time.Duration(a.burst) * a.interval)
		}
	}
}
