package monitor

import (
	"time"

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
	// maxContestInterval bounds the interval of a bundle that somebody else writes too.
	maxContestInterval = 10 * time.Minute
	// entrySize is about how many bytes an entry of status.resources takes.
	entrySize = 400
)

// allowance says how often a bundle may be written: burst times at once, and
// once more after each interval.
type allowance struct {
	interval time.Duration
	burst    int
}

// allowanceOf is the one place that decides how often a bundle may be written
// whose status takes so many bytes. Failures in a row make the interval longer,
// because a write that cannot succeed must not be tried in a loop, and so do
// contests, which are writes that somebody else has undone.
func allowanceOf(size, failures, contests int) allowance {
	a := allowance{interval: writeInterval, burst: writeBurst}
	if size > smallStatus {
		pieces := (size + smallStatus - 1) / smallStatus
		a = allowance{interval: min(time.Duration(pieces)*writeInterval, maxSizeInterval), burst: 1}
	}
	if failures > 0 {
		a = allowance{interval: doubled(a.interval, failures, maxFailureInterval), burst: 1}
	}
	if contests > 0 {
		a = allowance{interval: doubled(a.interval, contests, maxContestInterval), burst: 1}
	}
	return a
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

// conflictPause is how long to wait after so many conflicts in a row. It is a
// part of the interval only, because a conflict costs little and says that
// somebody else was faster, not that the write cannot succeed.
func conflictPause(a allowance, conflicts int) time.Duration {
	return doubled(a.interval/8, conflicts-1, 4*a.interval)
}

const (
	// gatherTime is how long a bundle gathers changes in a rush, at least and at most.
	gatherTime, maxGatherTime = 250 * time.Millisecond, 500 * time.Millisecond
	// writesAGathering is how many writes of the present duration a gathering takes, when they are slow.
	writesAGathering = 8
)

// rush tells a lone change, which is written at once, from one of many: when a
// node fails, a hundred bundles change, and most of them again a moment later.
// To write each of them for its first change would keep the API server from
// telling of the second. In a rush a bundle gathers changes for a while before it
// is written, and for longer when the API server is slow, so that a monitor
// takes load off an API server that has too much of it.
type rush struct {
	pace pace
	// took is how long a write of a small bundle takes, smoothed.
	took time.Duration
}

// allowance is how many bundles may come to differ before it is a rush: five
// at once, and fifty a second, or one in the time that a write takes, when that is
// longer: what an API server that is slow can be asked for is less.
func (r *rush) allowance() allowance {
	return allowance{interval: min(max(r.took, 20*time.Millisecond), gatherTime), burst: 5}
}

// wait notes that one more bundle has come to differ, and returns for how long it shall gather changes.
func (r *rush) wait(now time.Time) time.Duration {
	a := r.allowance()
	many := r.pace.bounded(now, a).wait(now, a) > 0
	r.pace = r.pace.spent(now, a)
	if !many {
		return 0
	}
	return min(max(writesAGathering*r.took, gatherTime), maxGatherTime)
}

// wrote notes how long a write of a small bundle took.
func (r *rush) wrote(took time.Duration) {
	r.took += (min(max(took, 0), writeTimeout) - r.took) / 8
}

// pace is what is left of an allowance: when it will be whole again.
type pace struct{ whole time.Time }

// bounded is the pace at this time: no more can be used up than there is, unless the clock was set back, which must not make anybody wait.
func (p pace) bounded(now time.Time, a allowance) pace {
	if limit := now.Add(time.Duration(a.burst) * a.interval); p.whole.After(limit) {
		return pace{whole: limit}
	}
	return p
}

// wait is how long to wait until a write is allowed; not more than zero means now.
func (p pace) wait(now time.Time, a allowance) time.Duration {
	return max(0, p.whole.Sub(now)) - time.Duration(a.burst-1)*a.interval
}

// spent is the pace after a write.
func (p pace) spent(now time.Time, a allowance) pace {
	used := max(0, p.bounded(now, a).whole.Sub(now))
	return pace{whole: now.Add(used + a.interval)}.bounded(now, a)
}

// sizeOf is about how many bytes a status takes.
func sizeOf(status *k8spluginv1alpha1.ResourceBundleStateStatus) int {
	size := len(status.Resources) * entrySize
	for _, list := range status.Lists() {
		size += len(*list)
	}
	return size
}
