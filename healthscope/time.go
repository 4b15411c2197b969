package healthscope

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Until returns how long it is from now to a judgement's next check, at least a
// millisecond, so that a moment that has just passed is not taken for never. It is zero when there is none.
func Until(nextCheck, now time.Time) time.Duration {
	if nextCheck.IsZero() {
		return 0
	}
	return max(nextCheck.Sub(now), time.Millisecond)
}

// settle adds time to what a rule says of an object: no status is excused while
// the object is young, Failed while the failure is; Pending that lasts longer than
// limit is Failed. A limit of zero is none. Nothing is late whose since is not known.
func (j *judging) settle(m *Member, limit time.Duration) {
	if m.Since.IsZero() {
		return
	}
	m.StoppedServing = j.stoppedServing(m)
	j.progress(m)
	switch {
	case m.Reason == ReasonNoStatus && j.policy.NoStatusGrace > 0 && !j.late(m.Since, j.policy.NoStatusGrace):
		m.State, m.Reason, m.Message = Pending, ReasonNotObserved, "the object has no status yet"
		return
	case m.State == Failed && j.policy.FailureGrace > 0 && j.history(m).State != Failed && !j.late(m.Since, j.policy.FailureGrace):
		m.State = Pending
		if j.history(m).State == Ready {
			m.State, m.Warning, m.Since = Ready, true, j.history(m).Since
		}
		return
	}
	j.resume(m)
	begin := later(m.Since, m.StoppedServing)
	if m.Progress != nil {
		begin = later(begin, m.Progress.At)
	}
	if m.State == Pending && !m.Serving && limit > 0 && j.late(begin, limit) {
		m.Message = line(fmt.Sprintf("Pending for more than %s: %s", limit, cmp.Or(withReason(&m.Result), noReason)))
		m.State, m.Reason, m.Since = Failed, ReasonPendingTimeout, begin.Add(limit)
	}
}

// stoppedServing returns when an object that served, but was not Ready, stopped to, as
// far as that is remembered. Since does not say it: it is since when the object is Pending.
func (j *judging) stoppedServing(m *Member) time.Time {
	history := m.History
	if history == nil || m.Serving || m.State != Pending && m.State != Failed {
		return time.Time{}
	}
	if history.Serving && history.State != Ready { // What was Ready is Pending since then.
		return j.now
	}
	return history.StoppedServing
}

// progress notes whether an object that is Pending has got further than it is remembered to have been. Who keeps a bundle
// has noted that before; for what is read elsewhere it is known as far as the caller remembers.
func (j *judging) progress(m *Member) {
	history := m.History
	if m.Progress == nil || history == nil || history.Progress == nil || history.State == Ready || m.State != Pending || m.Serving {
		return
	}
	m.Progress = new(m.Progress.Following(*history.Progress, j.now))
}

// later returns the later of two moments.
func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// noReason stands where a result has nothing to say for itself.
const noReason = "no reason given"

// held is what the message of a failure begins with while its end is not certain.
const held = "over for less than "

// hold keeps an object Failed until it has been in a better state for long enough.
func (j *judging) hold(m *Member) {
	history := j.history(m)
	back := (m.State == Ready || m.State == Pending) && history.State == Failed
	if !back || j.policy.RecoveryHold == 0 || j.late(m.Since, j.policy.RecoveryHold) {
		j.resume(m)
		return
	}
	m.State, m.Reason, m.Message, m.Since = Failed, history.Reason, history.Message, history.Since
	if !strings.HasPrefix(m.Message, held) {
		m.Message = line(fmt.Sprintf("%s%s: %s", held, j.policy.RecoveryHold, cmp.Or(withReason(&m.Result), noReason)))
	}
}

// history returns what was last said of an object as far as damping goes by it; the zero value when that is not known, or nothing is damped.
func (j *judging) history(m *Member) History {
	if m.History == nil || !j.policy.hasHysteresis() {
		return History{}
	}
	return *m.History
}

// resume makes an object that is in the same state as before be in it for as
// long, even if it was something else in between that was not reported.
func (j *judging) resume(m *Member) {
	if history := j.history(m); history.State == m.State && !history.Since.IsZero() && history.Since.Before(m.Since) {
		m.Since = history.Since
	}
}

// late reports whether something that began at since has lasted for a limit, and
// remembers to look again when it has not.
//
// A since that is still to come, by another machine's clock or by one that was
// set back, counts as now: nothing is late that has not begun, and the next look
// is not further away than the limit, by when the clocks may agree again.
func (j *judging) late(since time.Time, limit time.Duration) bool {
	if limit > 0 && since.After(j.now) {
		since = j.now
	}
	at := since.Add(limit)
	if !at.After(j.now) {
		return true
	}
	if j.next.IsZero() || at.Before(j.next) {
		j.next = at
	}
	return false
}

// countsAs returns the state a member counts as.
func (j *judging) countsAs(m *Member) State {
	switch m.State {
	case Ready, Pending, Failed:
		return m.State
	case Terminating:
		return Pending
	case NotPresent:
		if m.Since.IsZero() || !j.late(m.Since, j.policy.NotPresentGrace) {
			return Pending
		}
		return Failed
	case Unknown:
	}
	return Unknown
}
