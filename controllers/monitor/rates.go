package monitor

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

const (
	// writeInterval is the time after which a small bundle may be written once more.
	writeInterval = 250 * time.Millisecond
	// writeBurst is how many writes of a small bundle may follow each other at
	// once: what one event leads to (a pod changes, then its ReplicaSet, then its
	// Deployment, each some milliseconds later) waits for nothing.
	writeBurst = 3
	// smallStatus is up to how many bytes of status a bundle is small, and the
	// size for which a large one waits another writeInterval.
	smallStatus = 128 << 10
	// maxSizeInterval bounds the interval that a size leads to.
	maxSizeInterval = 4 * time.Second
	// maxFailureInterval bounds the pause between writes that fail.
	maxFailureInterval = 30 * time.Second
	// maxConflictInterval bounds the interval of a bundle that another client writes too.
	maxConflictInterval = 10 * time.Minute
	// entrySize is about how many bytes an entry of status.resources takes.
	entrySize = 400
)

// allowance is how often a bundle may be written: burst times at once, and
// once more after each interval.
type allowance struct {
	interval time.Duration
	burst    int
}

// allowanceOf is the one place that decides how often a bundle may be written
// whose status takes so many bytes. Failures in a row make the interval longer,
// because a write that cannot succeed must not be tried in a loop, and so do
// conflicts, which are writes that another client has undone.
func allowanceOf(size, failures, conflicts int) allowance {
	a := allowance{interval: writeInterval, burst: writeBurst}
	if size > smallStatus {
		pieces := (size + smallStatus - 1) / smallStatus
		a = allowance{interval: min(time.Duration(pieces)*writeInterval, maxSizeInterval), burst: 1}
	}
	if failures > 0 {
		a = allowance{interval: doubled(a.interval, failures, maxFailureInterval), burst: 1}
	}
	if conflicts > 0 {
		a = allowance{interval: doubled(a.interval, conflicts, maxConflictInterval), burst: 1}
	}
	return a
}

// limiter returns a limiter of these writes, with all of the burst left.
func (a allowance) limiter() *rate.Limiter {
	return rate.NewLimiter(rate.Every(a.interval), a.burst)
}

// doubled is d, doubled so many times, at most limit.
func doubled(d time.Duration, times int, limit time.Duration) time.Duration {
	for range times {
		if d >= limit/2 {
			return limit
		}
		d *= 2
	}
	return d
}

const (
	// coalesceTime is how long a bundle coalesces changes in a burst, at least and at most.
	coalesceTime, maxCoalesceTime = 250 * time.Millisecond, 500 * time.Millisecond
	// coalescedWrites is how many writes of the present duration coalescing takes, when they are slow.
	coalescedWrites = 8
	// burstSize is how many bundles may come to differ at once before it is a burst.
	burstSize = 5
	// burstInterval is the time between two bundles that come to differ from which on it is no burst.
	burstInterval = 20 * time.Millisecond
)

// coalescer tells a lone change, which is written at once, from one of many: when
// a node fails, a hundred bundles change, and most of them again a moment later.
// To write each of them for its first change would keep the API server from
// reporting the second. In a burst a bundle coalesces changes for a while before
// it is written, and for longer when the API server is slow, so that a monitor
// takes load off an API server that has too much of it.
type coalescer struct {
	mu sync.Mutex
	// lone admits the changes that are no burst.
	lone *rate.Limiter
	// took is how long a write of a small bundle takes, smoothed.
	took time.Duration
}

func newCoalescer() coalescer {
	return coalescer{lone: rate.NewLimiter(rate.Every(burstInterval), burstSize)}
}

// delay notes that one more bundle has come to differ, and returns for how long
// it coalesces changes. It is a burst when bundles come to differ faster than one
// each burstInterval, or each time that a write takes, when that is longer: an
// API server that is slow can be asked for less.
func (c *coalescer) delay(now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lone.SetLimitAt(now, rate.Every(min(max(c.took, burstInterval), coalesceTime)))
	if c.lone.AllowN(now, 1) {
		return 0
	}
	// Take what is left of a token: the burst ends when bundles come to differ less often, not while it lasts.
	c.lone.SetBurstAt(now, 0)
	c.lone.SetBurstAt(now, burstSize)
	return min(max(coalescedWrites*c.took, coalesceTime), maxCoalesceTime)
}

// wrote notes how long a write of a small bundle took.
func (c *coalescer) wrote(took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.took += (min(max(took, 0), writeTimeout) - c.took) / 8
}

// sizeOf is about how many bytes a status takes.
func sizeOf(status *k8spluginv1alpha1.ResourceBundleStateStatus) int {
	size := len(status.Resources) * entrySize
	for _, list := range status.Lists() {
		size += len(*list)
	}
	return size
}
