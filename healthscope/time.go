package healthscope

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Until returns the time from now to the next check of a judgement, at least a
// millisecond, so that a time that has just passed is not taken for never. It is zero when there is no next check.
func Until(nextCheck, now time.Time) time.Duration {
	if nextCheck.IsZero() {
		return 0
	}
	return max(nextCheck.Sub(now), time.Millisecond)
}

// applyTimeLimits applies grace periods and the time limit to the result of a rule: an
// object without a status, or a failure, is Pending or keeps its state for its grace
// period; an object that is Pending for longer than limit is Failed. A limit of zero
// means none. A result without since is left unchanged.
func (j *judgeState) applyTimeLimits(m *Member, limit time.Duration) {
	if m.Since.IsZero() {
		return
	}
	m.StoppedServing = j.stoppedServing(m)
	j.updateProgress(m)
	switch {
	case m.Reason == ReasonNoStatus && j.policy.NoStatusGrace > 0 && !j.elapsed(m.Since, j.policy.NoStatusGrace):
		m.State, m.Reason, m.Message = Pending, ReasonNotObserved, "the object has no status yet"
		return
	case m.State == Failed && j.policy.FailureGrace > 0 && j.history(m).State != Failed && !j.elapsed(m.Since, j.policy.FailureGrace):
		m.State = Pending
		if j.history(m).State == Ready {
			m.State, m.Warning, m.Since = Ready, true, j.history(m).Since
		}
		return
	}
	j.keepSince(m)
	begin := later(m.Since, m.StoppedServing)
	if m.Progress != nil {
		begin = later(begin, m.Progress.At)
	}
	if m.State == Pending && !m.Serving && limit > 0 && j.elapsed(begin, limit) {
		m.Message = oneLine(fmt.Sprintf("Pending for more than %s: %s", limit, cmp.Or(reasonAndMessage(&m.Result), noReason)))
		m.State, m.Reason, m.Since = Failed, ReasonPendingTimeout, begin.Add(limit)
	}
}

// stoppedServing returns when an object that served without being Ready stopped serving,
// as far as its history shows. Since does not tell that: it is when the object became Pending.
func (j *judgeState) stoppedServing(m *Member) time.Time {
	history := m.History
	if history == nil || m.Serving || m.State != Pending && m.State != Failed {
		return time.Time{}
	}
	if history.Serving && history.State != Ready { // An object that was Ready has become Pending now, which Since shows.
		return j.now
	}
	return history.StoppedServing
}

// updateProgress combines the progress of a Pending object with that in its history. A monitor has already done that for the
// objects of its bundle; for other objects it depends on the history that the caller keeps.
func (j *judgeState) updateProgress(m *Member) {
	history := m.History
	if m.Progress == nil || history == nil || history.Progress == nil || history.State == Ready || m.State != Pending || m.Serving {
		return
	}
	m.Progress = new(m.Progress.Merge(*history.Progress, j.now))
}

// later returns the later of two moments.
func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// noReason is used in messages when a result has neither reason nor message.
const noReason = "no reason given"

// recoveryHoldPrefix begins the message of a failure during Policy.RecoveryHold.
const recoveryHoldPrefix = "over for less than "

// applyRecoveryHold keeps an object Failed until it has been in a better state for long enough.
func (j *judgeState) applyRecoveryHold(m *Member) {
	history := j.history(m)
	recovering := (m.State == Ready || m.State == Pending) && history.State == Failed
	if !recovering || j.policy.RecoveryHold == 0 || j.elapsed(m.Since, j.policy.RecoveryHold) {
		j.keepSince(m)
		return
	}
	m.State, m.Reason, m.Message, m.Since = Failed, history.Reason, history.Message, history.Since
	if !strings.HasPrefix(m.Message, recoveryHoldPrefix) {
		m.Message = oneLine(fmt.Sprintf("%s%s: %s", recoveryHoldPrefix, j.policy.RecoveryHold, cmp.Or(reasonAndMessage(&m.Result), noReason)))
	}
}

// history returns an object in the previous judgement; the zero value when it is not known, or the policy has no hysteresis.
func (j *judgeState) history(m *Member) *Member {
	if m.History == nil || !j.policy.hasHysteresis() {
		return &Member{}
	}
	return m.History
}

// keepSince keeps the earlier since of an object that is in the same state as in its
// history, even if it was in another state in between that was not reported.
func (j *judgeState) keepSince(m *Member) {
	if history := j.history(m); history.State == m.State && !history.Since.IsZero() && history.Since.Before(m.Since) {
		m.Since = history.Since
	}
}

// elapsed reports whether limit has elapsed since the given time. If not, it schedules
// the next check for when it will have.
//
// A since in the future, from the clock of another machine or before a clock was set
// back, counts as now, so that the next check is at most limit away. The clocks may
// agree again by then.
func (j *judgeState) elapsed(since time.Time, limit time.Duration) bool {
	if limit > 0 && since.After(j.now) {
		since = j.now
	}
	at := since.Add(limit)
	if !at.After(j.now) {
		return true
	}
	if j.nextCheck.IsZero() || at.Before(j.nextCheck) {
		j.nextCheck = at
	}
	return false
}

// countsAs returns the state a member counts as.
func (j *judgeState) countsAs(m *Member) State {
	switch m.State {
	case Ready, Pending, Failed:
		return m.State
	case Terminating:
		return Pending
	case NotPresent:
		if m.Since.IsZero() || !j.elapsed(m.Since, j.policy.NotPresentGrace) {
			return Pending
		}
		return Failed
	case Unknown:
	}
	return Unknown
}
