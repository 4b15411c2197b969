package probe

import (
	"math/bits"
	"time"
)

// window is how many probes the thresholds look at.
const window = 10

// maxConsecutive is the number of consecutive failures after which a Service fails when no threshold is set. It is also the
// number of consecutive probes without an answer of the API server after which the Service counts as Blocked.
const maxConsecutive = 3

// consecutive is the value of Thresholds.Failure that stands for maxConsecutive failures in a row instead of a share.
const consecutive = -1

// Thresholds are those between a Service that passes and one that fails.
type Thresholds struct {
	// Failure is the share of failures among the last probes above which a Service begins to fail, or consecutive.
	Failure float64
	// Healthy is the share of successes above which the Service passes again.
	Healthy float64
}

// Result is the overall result of the probes of a Service.
type Result int

// The results.
const (
	// Undecided means that there are too few probes to decide.
	Undecided Result = iota
	// Passing means that the Service is well.
	Passing
	// Failing means that the Service is not well.
	Failing
	// Blocked means that the Service cannot be probed.
	Blocked
)

// History holds the outcomes of the last probes of a Service. The zero value is the history of a Service without probes.
type History struct {
	// failures has a bit for each of the last probes, the newest in the lowest bit; a set bit is a failure. probes is the number of probes, window at most.
	failures uint16
	probes   int
	// decided is the result of the answers of the Service alone. cause says why its last failure was one.
	decided Result
	cause   string
	// lastSuccess is the time of the last success. lastSuccessBeforeFailure is the value of lastSuccess when the Service began to fail.
	lastSuccess, lastSuccessBeforeFailure time.Time
	// blocked says why the Service cannot be probed; empty when it can. consecutiveSilent counts consecutive probes without an answer of the API server.
	blocked           string
	consecutiveSilent int
}

// Add adds an outcome.
func (h *History) Add(o Outcome, t Thresholds, now time.Time) {
	switch o.Kind {
	case NotProxied:
		h.blocked, h.consecutiveSilent = o.Cause, 0
		return
	case Silent:
		if h.consecutiveSilent++; h.consecutiveSilent >= maxConsecutive {
			h.blocked = o.Cause
		}
		return
	case Success:
		h.push(0)
		h.lastSuccess = now
		if exceeds(h.probes-h.failureCount(), h.probes, t.Healthy) {
			h.decided = Passing
		}
	case Failure:
		h.push(1)
		h.cause = o.Cause
		if h.decided != Failing && h.exceedsFailureThreshold(t) {
			h.decided, h.lastSuccessBeforeFailure = Failing, h.lastSuccess
		}
	}
	h.blocked, h.consecutiveSilent = "", 0
}

// push adds a bit to the window.
func (h *History) push(failure uint16) {
	h.failures = (h.failures<<1 | failure) & (1<<window - 1)
	h.probes = min(h.probes+1, window)
}

// failureCount returns how many of the last probes have failed.
func (h *History) failureCount() int { return bits.OnesCount16(h.failures) }

// exceedsFailureThreshold reports whether enough of the last probes have failed. A probe that has not been made yet does not count as failed.
func (h *History) exceedsFailureThreshold(t Thresholds) bool {
	if t.Failure == consecutive {
		return bits.TrailingZeros16(^h.failures) >= maxConsecutive
	}
	return exceeds(h.failureCount(), window, t.Failure)
}

// exceeds reports whether part is a larger share of total than threshold. A part that equals total always exceeds it.
func exceeds(part, total int, threshold float64) bool {
	return part == total || float64(part) > threshold*float64(total)
}

// Finding is the published summary of a History. It is comparable.
type Finding struct {
	Result Result
	// Cause says why Result is not Passing. It is empty when Result is Passing, and as long as nothing has failed.
	Cause string
	// Made is true once the Service has answered, or could not be probed.
	Made bool
	// LastSuccess is the time of the last success before the Service began to fail; zero when there was none.
	LastSuccess time.Time
}

// Finding returns the published summary of the history.
func (h *History) Finding() Finding {
	f := Finding{Result: h.decided, Cause: h.cause, Made: h.probes > 0 || h.blocked != "", LastSuccess: h.lastSuccessBeforeFailure}
	switch {
	case h.blocked != "":
		f.Result, f.Cause = Blocked, h.blocked
	case h.decided == Passing:
		f.Cause = ""
	}
	return f
}
