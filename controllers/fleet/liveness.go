package fleet

import (
	"time"

	"github.com/healthscope/healthscope/controllers/observe"
)

// Times of liveness. With the default timeout of 10 seconds, an API server that is
// killed shows after 12 seconds, one that falls silent after 22 to 27, and one
// that is restarted within 10 seconds does not show.
const (
	// quietTime is how long a cluster whose Lease is watched may be silent before it is asked whether it is there. The Lease is renewed every 3 seconds.
	quietTime = 10 * time.Second
	// idleTime is the same for a cluster without such a Lease: nothing else may come from there for hours.
	idleTime = 15 * time.Second
	// patience is how long the first answer of all may take on top of the timeout: connections have to be made first.
	patience = 10 * time.Second
	// slack is how much longer than the timeout is waited for an answer that is to end a suspicion.
	slack = 2 * time.Second
	// breather is how long a watch that has ended may take to be resumed before the API server is suspected: watches end all the time.
	breather = time.Second
	// unreadableTime is how long an API server that answers may fail to serve bundles: what is known of them is not current meanwhile.
	unreadableTime = 20 * time.Second
	// minStaleTime is how long a Lease may go without renewal at least, and staleSlack how much longer than it lasts.
	minStaleTime, staleSlack = 40 * time.Second, 25 * time.Second
)

// readState is how it stands with something that is read from a cluster by watching it.
type readState struct {
	// current is true while what is known is current.
	current bool
	// since is since when it is or is not.
	since time.Time
	// refused is since when every attempt to read is refused, and missing since when it is not served; zero when that is not so.
	refused, missing time.Time
	// rejected is true when it is the credentials that were refused last.
	rejected bool
	// problem says what is in the way; empty when nothing is.
	problem string
}

// problemKind is of what kind a failure to read is.
type problemKind int

const (
	// outage is any failure but the following.
	outage problemKind = iota
	// refusal is a failure for want of a right.
	refusal
	// disbelief is a failure for want of credentials that are accepted: nothing of the cluster can be read with them.
	disbelief
	// absence is that what is to be read is not served.
	absence
)

// lease is what is known of the Lease of a cluster's monitor.
type lease struct {
	// present says whether there is one; in since is since when there is, or is not.
	present bool
	since   time.Time
	// mark changes with each renewal. The times in a Lease are those of another clock, and are not compared with this one's.
	mark string
	// duration is how long the monitor says it lasts.
	duration time.Duration
	// renewed is when the hub saw it renewed last; or when it saw it first, or until when it could not see it in an outage.
	renewed time.Time
	// awaited is true after an outage, until it is seen renewed: the monitor may not have outlived it.
	awaited bool
	// excused is true after an outage, until the Lease is read: that it was not seen renewed says nothing.
	excused bool
}

// liveness decides from what a hub hears of a cluster whether it sees it. It
// has no clock and does no I/O: it is told what happened when, and can be asked at any time.
type liveness struct {
	// off is true when nobody wants to know: a cluster that has been read once is Connected for ever.
	off bool
	// local is true for the hub's own cluster.
	local bool
	// timeout is how long an answer may take.
	timeout time.Duration
	// began is when the connection was begun.
	began time.Time
	// heard is when the API server answered last, in whatever way.
	heard time.Time
	// failed is when an attempt to ask it failed last without an answer, and why.
	failed time.Time
	cause  string
	// broken is when a connection ended from which something was still to come.
	broken time.Time
	// own is true when there are bundles that a monitor of ours has filled, and foreign when there are some of another one.
	own     bool
	foreign bool
	bundles readState
	leases  readState
	lease   lease
	// verdict is what was said last, and wording decides whether the same is said in other words.
	verdict verdict
	wording observe.Wording
}

// verdict is what liveness comes to.
type verdict struct {
	reach   Reachability
	message string
	// blind is true when bundles cannot be read, though the API server answers.
	blind bool
	// unwatched is true when bundles are another monitor's, and none of ours is there to see whether that one lives.
	unwatched bool
}

// newLiveness returns the liveness of a connection that begins. With no timeout it is off.
func newLiveness(local bool, timeout time.Duration, now time.Time) *liveness {
	return &liveness{
		off: timeout == 0, local: local, timeout: timeout, began: now,
		bundles: readState{since: now}, leases: readState{since: now},
		verdict: verdict{reach: Connecting, message: "it has not been read yet"},
	}
}

// answered notes that the API server has answered.
func (l *liveness) answered(now time.Time) { l.heard = later(l.heard, now) }

// unanswered notes that a request failed without an answer.
func (l *liveness) unanswered(now time.Time, cause string) {
	l.failed, l.cause = later(l.failed, now), cause
}

// resumed notes that something is current.
func (l *liveness) resumed(s *readState, now time.Time) {
	l.answered(now)
	if l.lease.excused && !l.leases.current {
		l.lease.renewed = later(l.lease.renewed, now) // The monitor has had no chance to renew it either, or nobody could see it.
		l.leases.refused = time.Time{}                // Bundles may be let in again before the Lease is asked for.
	}
	if s == &l.leases {
		l.lease.excused = false // Once for an outage: watches may end again and again, and the monitor not be there.
	}
	*s = readState{current: true, since: now}
}

// interrupted notes that a watch has ended.
func (l *liveness) interrupted(s *readState, now time.Time) {
	if s.current {
		*s = readState{since: now}
		l.broken = later(l.broken, now)
	}
}

// unread notes that an attempt to read failed with an answer.
func (l *liveness) unread(s *readState, kind problemKind, problem string, now time.Time) {
	l.answered(now)
	l.interrupted(s, now)
	s.problem, s.rejected = problem, kind == disbelief
	switch kind {
	case refusal, disbelief:
		s.refused, s.missing = first(s.refused, now), time.Time{}
	case absence:
		s.refused, s.missing = time.Time{}, first(s.missing, now)
	case outage:
		s.refused, s.missing = time.Time{}, time.Time{}
	}
}

// observed notes what the Lease is like; an empty mark means that there is none.
func (l *liveness) observed(mark string, duration time.Duration, now time.Time) {
	switch {
	case mark == "":
		if l.lease.present || l.lease.since.IsZero() {
			l.lease = lease{since: now}
		}
	case mark != l.lease.mark:
		since := l.lease.since
		if !l.lease.present {
			since = now
		}
		l.lease = lease{present: true, since: since, mark: mark, duration: duration, renewed: now}
	}
}

// suspected returns since when there is reason to believe that the API server does not answer any more, which may be in the future.
func (l *liveness) suspected() time.Time {
	if l.heard.IsZero() {
		return l.began.Add(patience)
	}
	quiet := idleTime
	if l.lease.present && l.leases.current {
		quiet = quietTime
	}
	at := l.heard.Add(quiet)
	if l.broken.After(l.heard) && l.broken.Add(breather).Before(at) {
		at = l.broken.Add(breather)
	}
	if l.failed.After(l.heard) && l.failed.Before(at) {
		at = l.failed
	}
	return at
}

// trial returns how long a suspicion lasts before it is believed.
func (l *liveness) trial() time.Duration { return l.timeout + slack }

// silent says whether that the API server does not answer is believed.
func (l *liveness) silent(now time.Time) bool { return !now.Before(l.suspected().Add(l.trial())) }

// wantsProbe says whether the API server is to be asked whether it is there.
func (l *liveness) wantsProbe(now time.Time) bool {
	return !l.off && (l.heard.IsZero() || !now.Before(l.suspected()))
}

// open says whether it makes sense to ask the API server for anything: after a
// failure without an answer, it does not before a probe has got one.
func (l *liveness) open() bool { return l.off || l.failed.IsZero() || l.heard.After(l.failed) }

// staleAfter is how long the Lease may go without renewal.
func (l *liveness) staleAfter() time.Duration { return max(minStaleTime, l.lease.duration+staleSlack) }

// assess returns what the cluster's reachability is now.
func (l *liveness) assess(now time.Time) verdict {
	v := l.judge(now)
	if v.reach == Unreachable || v.reach == Forbidden {
		l.lease.awaited, l.lease.excused = l.lease.present, l.lease.present
	}
	if l.lease.awaited && l.silent(now) {
		l.lease.renewed = later(l.lease.renewed, now) // Watches may outlive the silence, and bring the Lease in a moment.
	}
	if l.local && v.reach == Unreachable {
		v = l.verdict
	}
	switch {
	case v.reach != l.verdict.reach || v.blind != l.verdict.blind || v.unwatched != l.verdict.unwatched || v.reach == Connecting:
		l.wording = observe.Wording{}
	case !l.wording.Changes(l.verdict.message, v.message, now):
		v = l.verdict
	}
	l.verdict = v
	return v
}

// causeOfSilence says why the last attempt got no answer; it is empty if there was an answer since.
func (l *liveness) causeOfSilence() string {
	if l.open() {
		return ""
	}
	return l.cause
}

// next returns when the answer of assess or wantsProbe may change if nothing else happens; it is after now. The zero value means never.
func (l *liveness) next(now time.Time) time.Time {
	suspected := l.suspected()
	var next time.Time
	if l.off {
		return next
	}
	for _, at := range []time.Time{
		suspected, suspected.Add(l.trial()), after(l.bundles.refused, observe.Doubt), after(l.bundles.missing, observe.Doubt), after(l.leases.refused, observe.Doubt),
		after(l.bundles.since, unreadableTime), after(l.bundles.since, listTimeout), after(l.leases.since, minStaleTime), after(l.lease.since, observe.Doubt), after(l.lease.renewed, l.staleAfter()),
	} {
		if at.After(now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next
}

// lastSeen returns when the cluster was known last to be as it was shown, now that it is not any more for that reason.
func (l *liveness) lastSeen(reach Reachability) time.Time {
	switch {
	case reach == MonitorStale:
		return l.lease.renewed
	case reach == MonitorMissing && !l.lease.since.IsZero() && l.bundles.current:
		return l.lease.since
	case reach == Forbidden && l.bundles.current:
		return l.leases.since
	case reach != Connected && !l.bundles.current && l.bundles.since.Before(l.heard):
		return l.bundles.since
	}
	return l.heard
}

// inherit makes a new connection to a cluster go on where the old one ends.
func (l *liveness) inherit(from *liveness, now time.Time) {
	l.verdict, l.own = from.verdict, from.own
	if !l.lease.since.IsZero() {
		return
	}
	if l.lease = from.lease; l.lease.awaited {
		l.lease.renewed = later(l.lease.renewed, now) // The old connection could not see it renewed.
	}
}

func after(at time.Time, d time.Duration) time.Time {
	if at.IsZero() {
		return at
	}
	return at.Add(d)
}

// first returns the time that is set, or now.
func first(at, now time.Time) time.Time {
	if at.IsZero() {
		return now
	}
	return at
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func because(cause string) string {
	if cause == "" {
		return ""
	}
	return ": " + cause
}
