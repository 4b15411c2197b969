package fleet

import (
	"cmp"
	"fmt"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/healthscope/healthscope/controllers/observe"
)

// Times of liveness. With the default timeout of 10 seconds, an API server that does not answer any more shows after 17
// seconds, and one that is restarted within 10 seconds does not show.
const (
	// probeEvery is the pause between two probes of an API server that answers.
	probeEvery = 5 * time.Second
	// slack is how much longer than the timeout a probe is waited for.
	slack = 2 * time.Second
	// firstReadTime is how long the bundles of a cluster may take to be read for the first time.
	firstReadTime = time.Minute
	// minStaleTime is how long a Lease may go without renewal at least, and staleSlack how much longer than it lasts.
	minStaleTime, staleSlack = 40 * time.Second, 25 * time.Second
)

// What is tolerated of the watches of bundles and of the monitor's Lease: what is known of a cluster is not current
// meanwhile, although its API server may answer.
var (
	bundleRules = observe.Rules{Grace: 20 * time.Second, Settle: 500 * time.Millisecond}
	leaseRules  = observe.Rules{Grace: minStaleTime, Settle: 500 * time.Millisecond}
)

// unwatchedMessage says for people that a cluster is Connected, and what that is worth.
const unwatchedMessage = "its bundles are filled by another monitor than HealthScope's, and without HealthScope's nobody can see whether that one still lives: they are as it wrote them last"

// lease is what is known of the Lease of a cluster's monitor.
type lease struct {
	// present says whether there is one; and since is since when there is, or is not, as far as anybody has seen.
	present bool
	since   time.Time
	// mark changes with each renewal. The times in a Lease are those of another clock, and are not compared with this one's.
	mark string
	// duration is how long the monitor says it lasts.
	duration time.Duration
	// renewed is when the hub saw it renewed last, or saw it first.
	renewed time.Time
}

// liveness decides from what a hub hears of a cluster whether it sees it. It has no clock and does no I/O.
type liveness struct {
	// off is true when nobody wants to know: a cluster that has been read once is Connected for ever.
	off bool
	// local is true for the hub's own cluster.
	local bool
	// timeout is how long an answer may take.
	timeout time.Duration
	// began is when the connection was begun.
	began time.Time
	// heard is when the API server answered last, in whatever way, and answering since when it does so without a gap.
	heard, answering time.Time
	// failed is when a request failed last without an answer, and cause why, as wording has it.
	failed  time.Time
	cause   string
	wording observe.Wording
	// rejected is since when every probe is refused because of the credentials; zero when they are accepted.
	rejected time.Time
	// own is true when there are bundles that a monitor of ours has filled, and foreign when there are some of another one.
	own     bool
	foreign bool
	// bundles and leases say whether what is held of them is current.
	bundles, leases observe.State
	lease           lease
	// verdict is what was said last.
	verdict verdict
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
		verdict: verdict{reach: Connecting, message: "it has not been read yet"},
	}
}

// answered notes that the API server has answered, and reports whether it does so again after a gap.
func (l *liveness) answered(now time.Time) bool {
	back := l.answering.IsZero() || l.silent(now)
	if back {
		l.answering = now
	}
	l.heard = later(l.heard, now)
	return back
}

// unanswered notes that a request failed without an answer. The cause stays the first one until another one has been the case for a while.
func (l *liveness) unanswered(now time.Time, cause string) {
	if l.causeOfSilence() == "" || l.wording.Changes(l.cause, cause, now) {
		l.cause, l.wording = cause, observe.Wording{}
	}
	l.failed = later(l.failed, now)
}

// probed notes how a probe has ended.
func (l *liveness) probed(now time.Time, err error) bool {
	switch {
	case err == nil:
		l.rejected = time.Time{}
	case errors.Is(err, errUnauthorized):
		l.rejected = first(l.rejected, now)
	default:
		l.unanswered(now, shortened(err.Error()))
		return false
	}
	return l.answered(now)
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

// silentFrom returns when the API server counts as one that does not answer, unless it does before.
func (l *liveness) silentFrom() time.Time {
	return later(l.heard, l.began).Add(probeEvery + l.timeout + slack)
}

// silent says whether the API server counts as one that does not answer.
func (l *liveness) silent(now time.Time) bool { return !now.Before(l.silentFrom()) }

// assess returns what the cluster's reachability is now.
func (l *liveness) assess(now time.Time) verdict {
	v := l.judge(now)
	if l.local && v.reach == Unreachable {
		v = l.verdict
	}
	l.verdict = v
	return v
}

// judge returns what is to be said of the cluster, by what is known of it.
func (l *liveness) judge(now time.Time) verdict {
	switch denied := l.forbidden(now); {
	case l.off && l.bundles.Status != observe.Ready:
		return l.wait("its bundles are being read")
	case l.off:
		return verdict{reach: Connected}
	case l.silent(now):
		return verdict{reach: Unreachable, message: "the API server does not answer" + because(l.causeOfSilence())}
	case denied != "":
		return verdict{reach: Forbidden, message: denied}
	case l.bundles.Status != observe.Ready, !l.bundles.IsWatched() && l.wasLost():
		return l.judgeUnread(now)
	case l.own:
		return l.judgeMonitor(now)
	case l.foreign && l.unwatched(now):
		return verdict{reach: Connected, message: unwatchedMessage, unwatched: true}
	}
	return verdict{reach: Connected}
}

// judgeUnread decides about a cluster that answers, and of which what is held of bundles is not current, or not yet again.
func (l *liveness) judgeUnread(now time.Time) verdict {
	switch {
	case l.bundles.Reason == observe.NotServed:
		return verdict{reach: MonitorMissing, message: l.bundles.Message, blind: true}
	case l.bundles.Reason == observe.NoAnswer && l.wasLost() && now.Sub(l.answering) < bundleRules.Grace:
		return l.verdict // It answers again, and its bundles are about to be read.
	case l.bundles.Reason == observe.NoAnswer:
		return verdict{reach: Unreachable, message: l.bundles.Message}
	case l.bundles.Status != observe.Ready && l.verdict.reach == Connecting && now.Sub(l.began) >= firstReadTime:
		return verdict{reach: Unreachable, message: fmt.Sprintf("not all of its bundles have been read within %s", firstReadTime)}
	}
	return l.wait("its bundles are being read")
}

// forbidden says why the cluster lets nobody in; it is empty when it does. Everything is read with the same credentials: a
// watch of bundles that was opened before these were rejected goes on for minutes, and does not tell.
func (l *liveness) forbidden(now time.Time) string {
	switch {
	case lasts(l.rejected, now), l.leases.Reason == observe.Unauthorized && l.isConfirmed(l.leases, now):
		return errUnauthorized.Error()
	case (l.bundles.Reason == observe.Unauthorized || l.bundles.Reason == observe.Forbidden) && l.isConfirmed(l.bundles, now):
		return l.bundles.Message
	}
	return ""
}

// isConfirmed reports whether a refusal has lasted for long enough. The first one may be that of an API server that starts.
func (l *liveness) isConfirmed(s observe.State, now time.Time) bool {
	return !s.AsOf.IsZero() || lasts(s.Since, now)
}

// judgeMonitor decides about a cluster that has bundles of a monitor of ours, which are read.
func (l *liveness) judgeMonitor(now time.Time) verdict {
	switch {
	case l.leases.Status == observe.Problem:
		return l.judgeHiddenMonitor(now)
	case l.leases.Status == observe.Pending || l.lease.since.IsZero():
		return l.wait("the monitor's Lease is being read")
	case !l.lease.present && lasts(l.lease.since, now):
		return verdict{reach: MonitorMissing, message: "the monitor that filled its bundles has no Lease any more"}
	case !l.lease.present:
		return l.wait("its monitor has no Lease yet")
	case l.stale(now) && now.Sub(l.heard) > probeEvery+slack:
		return l.wait("the monitor's Lease is still to be renewed") // It may be the API server that is silent: a probe tells.
	case l.stale(now):
		return verdict{reach: MonitorStale, message: fmt.Sprintf("the monitor has not renewed its Lease for %s", l.staleAfter())}
	case l.lease.renewed.Before(l.watchedSince()) && l.wasLost():
		return l.wait("the monitor's Lease is still to be renewed") // The monitor may not have outlived what is over now.
	}
	return verdict{reach: Connected}
}

// judgeHiddenMonitor decides about a cluster whose monitor's Lease cannot be read.
func (l *liveness) judgeHiddenMonitor(now time.Time) verdict {
	switch {
	case !l.leaseRefused():
		return verdict{reach: MonitorMissing, message: cmp.Or(l.leases.Message, "the monitor's Lease cannot be read")}
	case !l.isConfirmed(l.leases, now):
		return l.wait("the monitor's Lease is being read")
	case !l.bundles.ConfirmBy().IsZero():
		return l.wait("its bundles and its monitor's Lease are refused") // Which is graver, and is confirmed in a moment.
	}
	return verdict{reach: MonitorMissing, message: l.leases.Message + ", so that nobody knows whether its monitor lives"}
}

// leaseRefused reports whether the hub may not see the Lease.
func (l *liveness) leaseRefused() bool {
	return l.leases.Reason == observe.Forbidden || l.leases.Reason == observe.Unauthorized
}

// wasLost reports whether the cluster was not seen when it was looked at last, although it was before.
func (l *liveness) wasLost() bool {
	return l.verdict.reach != Connected && l.verdict.reach != Connecting
}

// watchedSince returns since when a renewal of the Lease would be seen.
func (l *liveness) watchedSince() time.Time { return later(l.answering, l.leases.Since) }

// staleAfter is how long the Lease may go without renewal.
func (l *liveness) staleAfter() time.Duration { return max(minStaleTime, l.lease.duration+staleSlack) }

// staleFrom returns when the Lease counts as one that is not renewed, unless it is before.
func (l *liveness) staleFrom() time.Time {
	return later(l.lease.renewed, l.watchedSince()).Add(l.staleAfter())
}

// stale says whether the Lease counts as one that is not renewed.
func (l *liveness) stale(now time.Time) bool { return l.lease.present && !now.Before(l.staleFrom()) }

// unwatched says whether it is certain that no monitor of ours lives.
func (l *liveness) unwatched(now time.Time) bool {
	switch {
	case l.leaseRefused():
		return l.isConfirmed(l.leases, now)
	case l.lease.since.IsZero():
		return false // Nobody looks, or nobody has looked yet.
	case l.verdict.unwatched || l.leases.IsWatched(): // Else it may have come, and nobody saw it.
		return !l.lease.present && lasts(l.lease.since, now) || l.stale(now)
	}
	return false
}

// wait keeps what was said last, because nothing else is certain yet.
func (l *liveness) wait(what string) verdict {
	if l.verdict.reach == Connecting {
		return verdict{reach: Connecting, message: cmp.Or(l.bundles.Message, l.causeOfSilence(), what)}
	}
	return l.verdict
}

// reading takes back that a cluster is Connected, and returns what is said of it instead: what was said of it last, or
// that it is being read if that was no trouble.
func (l *liveness) reading(was verdict) verdict {
	if was.reach == Connected || was.reach == Connecting {
		was = verdict{reach: Connecting, message: "its bundles are being read"}
	}
	l.verdict = was
	return was
}

// causeOfSilence says why the last request got no answer; it is empty if there was an answer since.
func (l *liveness) causeOfSilence() string {
	if l.failed.IsZero() || l.heard.After(l.failed) {
		return ""
	}
	return l.cause
}

// next returns when the answer of assess may change if nothing else happens; it is after now. The zero value means never.
func (l *liveness) next(now time.Time) time.Time {
	var next time.Time
	if l.off {
		return next
	}
	for _, at := range []time.Time{
		l.silentFrom(), l.rejected.Add(observe.Doubt), l.bundles.Since.Add(observe.Doubt), l.leases.Since.Add(observe.Doubt),
		l.began.Add(firstReadTime), l.answering.Add(bundleRules.Grace), l.lease.since.Add(observe.Doubt), l.staleFrom(),
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
	case reach == MonitorMissing && !l.lease.since.IsZero() && l.bundles.Status == observe.Ready:
		return l.lease.since
	case reach == Forbidden && l.bundles.Status == observe.Ready:
		return cmp.Or(l.rejected, l.leases.AsOf, l.heard)
	case reach != Connected && !l.bundles.AsOf.IsZero() && l.bundles.AsOf.Before(l.heard):
		return l.bundles.AsOf
	}
	return l.heard
}

// silence returns since when the API server does not answer, although it did before, and why.
func (l *liveness) silence(now time.Time) (s silence) {
	if v := l.judge(now); v.reach == Unreachable && !l.heard.IsZero() {
		s.since, s.why = l.lastSeen(Unreachable), v.message
	}
	return s
}

// inherit makes a new connection to a cluster go on where the old one ends: that its Lease was seen is no renewal.
func (l *liveness) inherit(from *liveness) {
	l.verdict, l.own = from.verdict, from.own
	if l.lease.since.IsZero() || l.lease.mark == from.lease.mark {
		l.lease = from.lease
	}
}

// lasts says whether something bad has lasted for long enough to be confirmed; the zero time is of what is not so.
func lasts(since, now time.Time) bool { return !since.IsZero() && now.Sub(since) >= observe.Doubt }

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
