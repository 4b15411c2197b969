package probe

import (
	"math/bits"
	"time"
)

// window is how many probes the thresholds look at.
const window = 10

// run is how many failures in a row are enough without a threshold, and how often in a row the API server may be silent.
const run = 3

// inARow is the value of Thresholds.Failure that means a run of failures.
const inARow = -1

// Thresholds are those between a Service that passes and one that fails.
type Thresholds struct {
	// Failure is the share of failures among the last probes above which a Service fails that does not yet, or inARow.
	Failure float64
	// Healthy is the share of successes above which it passes again.
	Healthy float64
}

// Result is what the probes of a Service come to.
type Result int

// The results.
const (
	// Undecided means that too little has been seen to decide.
	Undecided Result = iota
	// Passing means that the Service is well.
	Passing
	// Failing means that it is not.
	Failing
	// Blocked means that it cannot be probed.
	Blocked
)

// History is what the last probes of a Service have come to. The zero value is that of one without probes.
type History struct {
	// failures has a bit for each of the last probes, the newest first, and made is how many there were.
	failures uint16
	made     int
	// answered is the result of the answers alone, and cause why the last of them was a failure.
	answered Result
	cause    string
	// lastSuccess is when the last success was, and before when it was as the Service began to fail.
	lastSuccess, before time.Time
	// blocked is why it cannot be probed; empty when it can. silent is how often in a row the API server was silent.
	blocked string
	silent  int
}

// Add adds an outcome.
func (h *History) Add(o Outcome, t Thresholds, now time.Time) {
	switch o.Kind {
	case NoWay:
		h.blocked, h.silent = o.Cause, 0
		return
	case Silent:
		if h.silent++; h.silent >= run {
			h.blocked = o.Cause
		}
		return
	case Success:
		h.push(0)
		h.lastSuccess = now
		if exceeds(h.made-h.failed(), h.made, t.Healthy) {
			h.answered = Passing
		}
	case Failure:
		h.push(1)
		h.cause = o.Cause
		if h.answered != Failing && h.fails(t) {
			h.answered, h.before = Failing, h.lastSuccess
		}
	}
	h.blocked, h.silent = "", 0
}

// push adds a bit to the window.
func (h *History) push(failure uint16) {
	h.failures = (h.failures<<1 | failure) & (1<<window - 1)
	h.made = min(h.made+1, window)
}

// failed returns how many of the last probes have failed.
func (h *History) failed() int { return bits.OnesCount16(h.failures) }

// fails reports whether enough of the last probes have failed. One that has not been made yet has not failed.
func (h *History) fails(t Thresholds) bool {
	if t.Failure == inARow {
		return bits.TrailingZeros16(^h.failures) >= run
	}
	return exceeds(h.failed(), window, t.Failure)
}

// exceeds reports whether some of all are a larger share than a threshold. All of them are, for any threshold.
func exceeds(some, all int, threshold float64) bool {
	return some == all || float64(some) > threshold*float64(all)
}

// Finding is what others see of a history. Two can be compared.
type Finding struct {
	Result Result
	// Cause says why it is not Passing; empty when it is, or nothing has failed yet.
	Cause string
	// Made is true once the Service has answered, or could not be probed.
	Made bool
	// LastSuccess is when a Service that fails was last well before it did; zero when it was not.
	LastSuccess time.Time
}

// Finding returns what others see.
func (h *History) Finding() Finding {
	s := Finding{Result: h.answered, Cause: h.cause, Made: h.made > 0 || h.blocked != "", LastSuccess: h.before}
	switch {
	case h.blocked != "":
		s.Result, s.Cause = Blocked, h.blocked
	case h.answered == Passing:
		s.Cause = ""
	}
	return s
}
