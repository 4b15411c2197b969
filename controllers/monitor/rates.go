package monitor

import (
	"time"

	"golang.org/x/time/rate"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

const (
	// writeInterval is the interval in which a small bundle gains one more write.
	writeInterval = 250 * time.Millisecond
	// writeBurst is the number of writes of a small bundle that may follow each other without a delay. One event leads to several
	// changes some milliseconds apart: of a pod, then of its ReplicaSet, then of its Deployment.
	writeBurst = 3
	// smallStatus is the maximum status size in bytes of a small bundle. The interval of a large one is a writeInterval per started smallStatus bytes.
	smallStatus = 128 << 10
	// maxSizeInterval bounds the interval of large bundles.
	maxSizeInterval = 4 * time.Second
	// maxFailureInterval bounds the interval after failed writes.
	maxFailureInterval = 30 * time.Second
	// maxDoublings is enough to reach each of these bounds from writeInterval.
	maxDoublings = 12
	// maxConflictInterval bounds the interval of a bundle that another client writes too.
	maxConflictInterval = 10 * time.Minute
	// entrySize is the approximate size in bytes of an entry of status.resources.
	entrySize = 400
)

// allowance is the rate at which a bundle may be written: burst times without a delay, and once more after each interval.
type allowance struct {
	interval time.Duration
	burst    int
}

// allowanceOf returns how often a bundle may be written whose status has the given size in bytes. Consecutive failures lengthen the
// interval, and so do conflicts, which are writes that another client has reverted.
func allowanceOf(size, failures, conflicts int) allowance {
	a := allowance{interval: writeInterval, burst: writeBurst}
	if size > smallStatus {
		pieces := (size + smallStatus - 1) / smallStatus
		a = allowance{interval: min(time.Duration(pieces)*writeInterval, maxSizeInterval), burst: 1}
	}
	if failures > 0 {
		a = allowance{interval: min(a.interval<<min(failures, maxDoublings), maxFailureInterval), burst: 1}
	}
	if conflicts > 0 {
		a = allowance{interval: min(a.interval<<min(conflicts, maxDoublings), maxConflictInterval), burst: 1}
	}
	return a
}

const (
	// coalesceTime is how long a bundle coalesces changes in a burst.
	coalesceTime = 250 * time.Millisecond
	// burstSize is how many bundles may begin to differ at once without being a burst, and burstInterval the minimum time between two
	// that begin to differ later without being one.
	burstSize     = 5
	burstInterval = 20 * time.Millisecond
)

// newLoneChanges returns a limiter that admits changes that are not part of a burst.
func newLoneChanges() *rate.Limiter { return rate.NewLimiter(rate.Every(burstInterval), burstSize) }

// coalescing records that one more bundle differs, and returns how long it coalesces changes: not at all for a lone change, which is
// written at once. In a burst, such as when a node fails, a hundred bundles change, and most of them again a moment later. Writing each
// first change would delay the API server's notifications of the second.
func coalescing(lone *rate.Limiter, now time.Time) time.Duration {
	if lone.AllowN(now, 1) {
		return 0
	}
	// Drop partial tokens: the burst ends only when bundles differ less often.
	lone.SetBurstAt(now, 0)
	lone.SetBurstAt(now, burstSize)
	return coalesceTime
}

// sizeOf returns the approximate size of a status in bytes.
func sizeOf(status *k8spluginv1alpha1.ResourceBundleStateStatus) int {
	size := len(status.Resources) * entrySize
	for _, list := range status.Lists() {
		size += len(*list)
	}
	return size
}
