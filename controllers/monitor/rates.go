package monitor

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

const (
	// writeInterval is the interval in which a small bundle gains one more write.
	writeInterval = 250 * time.Millisecond
	// writeBurst is the number of writes of a small bundle that may follow each other
	// without a delay. One event leads to several changes some milliseconds apart: of a
	// pod, then of its ReplicaSet, then of its Deployment.
	writeBurst = 3
	// smallStatus is the maximum status size in bytes of a small bundle. The interval of
	// a large bundle is one writeInterval per started smallStatus bytes.
	smallStatus = 128 << 10
	// maxSizeInterval bounds the interval of large bundles.
	maxSizeInterval = 4 * time.Second
	// maxFailureInterval bounds the interval after failed writes.
	maxFailureInterval = 30 * time.Second
	// maxConflictInterval bounds the interval of a bundle that another client writes too.
	maxConflictInterval = 10 * time.Minute
	// entrySize is the approximate size in bytes of an entry of status.resources.
	entrySize = 400
)

// allowance is the rate at which a bundle may be written: burst times without a
// delay, and once more after each interval.
type allowance struct {
	interval time.Duration
	burst    int
}

// allowanceOf returns how often a bundle may be written whose status has the given
// size in bytes. Nothing else decides this. Consecutive failures lengthen the interval, so that a write that
// cannot succeed is not retried in a loop. So do conflicts, which are writes that
// another client has reverted.
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

// limiter returns a limiter for the allowance, with the full burst available.
func (a allowance) limiter() *rate.Limiter {
	return rate.NewLimiter(rate.Every(a.interval), a.burst)
}

// doubled returns d, doubled the given number of times, at most limit.
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
	// coalesceTime and maxCoalesceTime bound how long a bundle coalesces changes in a burst.
	coalesceTime, maxCoalesceTime = 250 * time.Millisecond, 500 * time.Millisecond
	// coalescedWrites is the duration of coalescing as a multiple of the write duration, if writes are slow.
	coalescedWrites = 8
	// burstSize is how many bundles may begin to differ at once without being a burst.
	burstSize = 5
	// burstInterval is the minimum time between two bundles that begin to differ without being a burst.
	burstInterval = 20 * time.Millisecond
)

// coalescer distinguishes a lone change, which is written at once, from a burst. When
// a node fails, a hundred bundles change, and most of them again a moment later.
// Writing each first change would delay the API server's notifications of the second.
// In a burst, a bundle coalesces changes for a while before it is written, and for
// longer if the API server is slow, so that the monitor reduces the load of an
// overloaded API server.
type coalescer struct {
	mu sync.Mutex
	// lone admits the changes that are not part of a burst.
	lone *rate.Limiter
	// took is the smoothed duration of a write of a small bundle.
	took time.Duration
}

func newCoalescer() coalescer {
	return coalescer{lone: rate.NewLimiter(rate.Every(burstInterval), burstSize)}
}

// delay records that one more bundle differs, and returns how long it coalesces
// changes. It is a burst if bundles begin to differ faster than one per
// burstInterval or, if that is longer, one per duration of a write, because a slow
// API server handles fewer writes.
func (c *coalescer) delay(now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lone.SetLimitAt(now, rate.Every(min(max(c.took, burstInterval), coalesceTime)))
	if c.lone.AllowN(now, 1) {
		return 0
	}
	// Drop partial tokens: the burst ends only when bundles differ less often.
	c.lone.SetBurstAt(now, 0)
	c.lone.SetBurstAt(now, burstSize)
	return min(max(coalescedWrites*c.took, coalesceTime), maxCoalesceTime)
}

// wrote records the duration of a write of a small bundle.
func (c *coalescer) wrote(took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.took += (min(max(took, 0), writeTimeout) - c.took) / 8
}

// sizeOf returns the approximate size of a status in bytes.
func sizeOf(status *k8spluginv1alpha1.ResourceBundleStateStatus) int {
	size := len(status.Resources) * entrySize
	for _, list := range status.Lists() {
		size += len(*list)
	}
	return size
}
