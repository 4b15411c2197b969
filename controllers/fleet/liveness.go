package fleet

import (
	"cmp"
	"fmt"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/healthscope/healthscope/controllers/observe"
)

// Times of liveness. With the default timeout of 10 seconds, an API server that does not answer any more shows within 18
// seconds, and one that is restarted within 10 seconds does not show.
const (
	// probeInterval is the pause between two probes of an API server that answers.
	probeInterval = 5 * time.Second
	// probeGrace is how much longer than the timeout a probe may take.
	probeGrace = 2 * time.Second
	// firstSyncTimeout is how long the initial list of a cluster's bundles may take.
	firstSyncTimeout = time.Minute
	// minLeaseTimeout is the minimum time after which a Lease without renewal counts as expired, and leaseGrace is added to the duration of a Lease.
	minLeaseTimeout, leaseGrace = 40 * time.Second, 25 * time.Second
)

// The rules say how long the watches of bundles and of the monitor's Lease may fail. What is known of a cluster is not
// current meanwhile, although its API server may answer.
var (
	bundleRules = observe.Rules{Grace: 20 * time.Second, CatchUp: 500 * time.Millisecond}
	leaseRules  = observe.Rules{Grace: minLeaseTimeout, CatchUp: 500 * time.Millisecond}
)

// unwatchedMessage is the message of a Connected cluster that has no HealthScope monitor.
const unwatchedMessage = "its bundles are filled by another monitor than HealthScope's, and without HealthScope's it is not known whether that one still runs: they are as it wrote them last"

// lease is what is known of the Lease of a cluster's monitor.
type lease struct {
	// present is true while the Lease exists, and since is when the hub first saw that it does, or does not.
	present bool
	since   time.Time
	// fingerprint changes with each renewal. The times in a Lease come from another clock, and are not compared with the hub's.
	fingerprint string
	// duration is the duration of the Lease, which the monitor sets.
	duration time.Duration
	// renewed is when the hub last saw a renewal, or first saw the Lease.
	renewed time.Time
}

// liveness decides whether what a hub shows of a cluster is current. It has no clock and does no I/O.
type liveness struct {
	// local is true for the hub's own cluster.
	local bool
	// timeout is the timeout of an answer; zero without Options.Liveness.
	timeout time.Duration
	// started is when the connection was started.
	started time.Time
	// lastContact is when the API server last answered any request, and answeringSince since when it has answered without an outage.
	lastContact, answeringSince time.Time
	// lastFailure is when a request last failed without an answer, and cause is why. debouncer keeps cause from alternating between texts.
	lastFailure time.Time
	cause       string
	debouncer   observe.MessageDebouncer
	// rejectedSince is since when the API server has rejected the credentials of every probe; zero while it accepts them.
	rejectedSince time.Time
	// own is true while HealthScope's monitor fills some of the bundles, and foreign while another monitor does.
	own     bool
	foreign bool
	// synced is true once all bundles have been stored in the view. Which monitors fill them is not known before.
	synced bool
	// bundles and leases are the states of the watches of bundles and of the Lease.
	bundles, leases observe.State
	lease           lease
	// assessment is the last one.
	assessment assessment
}

// assessment is the result of liveness.
type assessment struct {
	reachability Reachability
	message      string
	// unreadable is true when bundles cannot be read, though the API server answers.
	unreadable bool
	// unwatched is true when another monitor fills the bundles, and HealthScope's monitor does not run there, so that nothing checks whether that one runs.
	unwatched bool
	// lastSeen is when what is shown of the cluster was last known to be current.
	lastSeen time.Time
	// outage is that of the hub's own API server.
	outage outage
}

// newLiveness returns the liveness of a new connection.
func newLiveness(local bool, timeout time.Duration, now time.Time) *liveness {
	return &liveness{
		local: local, timeout: timeout, started: now,
		assessment: assessment{reachability: Connecting, message: "it has not been read yet"},
	}
}

// disabled reports whether liveness is not checked: a cluster that has been read once stays Connected.
func (l *liveness) disabled() bool { return l.timeout == 0 }

// answered notes that the API server has answered, and reports whether this is its first answer, or the first one after an outage.
func (l *liveness) answered(now time.Time) bool {
	recovered := l.answeringSince.IsZero() || l.inOutage(now)
	if recovered {
		l.answeringSince = now
	}
	l.lastContact = later(l.lastContact, now)
	return recovered
}

// unanswered notes that a request failed without an answer. The cause stays the first one until another one has persisted for a while.
func (l *liveness) unanswered(now time.Time, cause string) {
	if l.outageCause() == "" || l.debouncer.Changes(l.cause, cause, now) {
		l.cause, l.debouncer = cause, observe.MessageDebouncer{}
	}
	l.lastFailure = later(l.lastFailure, now)
}

// probed notes the result of a probe, and reports what answered does.
func (l *liveness) probed(now time.Time, err error) bool {
	switch {
	case err == nil:
		l.rejectedSince = time.Time{}
	case errors.Is(err, errUnauthorized):
		if l.rejectedSince.IsZero() {
			l.rejectedSince = now
		}
	default:
		l.unanswered(now, shortened(err.Error()))
		return false
	}
	return l.answered(now)
}

// leaseObserved notes the current Lease; an empty fingerprint means that it does not exist.
func (l *liveness) leaseObserved(fingerprint string, duration time.Duration, now time.Time) {
	switch {
	case fingerprint == "":
		if l.lease.present || l.lease.since.IsZero() {
			l.lease = lease{since: now}
		}
	case fingerprint != l.lease.fingerprint:
		since := l.lease.since
		if !l.lease.present {
			since = now
		}
		l.lease = lease{present: true, since: since, fingerprint: fingerprint, duration: duration, renewed: now}
	}
}

// inOutage reports whether the API server counts as unreachable.
func (l *liveness) inOutage(now time.Time) bool {
	return now.Sub(later(l.lastContact, l.started)) >= probeInterval+l.timeout+probeGrace
}

// assess returns the current assessment, and stores it. The hub's own cluster is never Unreachable: it keeps its assessment, and has an outage.
func (l *liveness) assess(now time.Time) assessment {
	was, a, away := l.assessment, l.judge(now), outage{}
	if l.local && a.reachability == Unreachable {
		if !l.lastContact.IsZero() {
			away = outage{since: l.lastSeen(Unreachable), cause: a.message}
		}
		a = was
	}
	if a.reachability == Connected && !l.synced {
		if a = was; was.reachability == Connected || was.reachability == Connecting {
			a = assessment{reachability: Connecting, message: "it is being read"}
		}
	}
	a.lastSeen, a.outage = l.lastSeen(a.reachability), away
	l.assessment = a
	return a
}

// judge returns the current assessment.
func (l *liveness) judge(now time.Time) assessment {
	switch denied := l.forbidden(now); {
	case l.disabled() && l.bundles.Status != observe.Ready:
		return l.keepAssessment()
	case l.disabled():
		return assessment{reachability: Connected}
	case l.inOutage(now):
		return assessment{reachability: Unreachable, message: "the API server does not answer" + causeSuffix(l.outageCause())}
	case denied != "":
		return assessment{reachability: Forbidden, message: denied}
	case l.bundles.Status != observe.Ready, !l.bundles.IsWatched() && l.wasStale():
		return l.judgeUnreadable(now)
	case l.own:
		return l.judgeMonitor(now)
	case l.foreign && l.unwatched(now):
		return assessment{reachability: Connected, message: unwatchedMessage, unwatched: true}
	}
	return assessment{reachability: Connected}
}

// judgeUnreadable returns the assessment of a cluster that answers, and whose bundles are not current.
func (l *liveness) judgeUnreadable(now time.Time) assessment {
	switch {
	case l.bundles.Reason == observe.NotServed:
		return assessment{reachability: MonitorMissing, message: l.bundles.Message, unreadable: true}
	case l.bundles.Reason == observe.NoAnswer && l.wasStale() && now.Sub(l.answeringSince) < bundleRules.Grace:
		return l.assessment // It answers again, and its bundles are about to be read.
	case l.bundles.Reason == observe.NoAnswer:
		return assessment{reachability: Unreachable, message: l.bundles.Message}
	case l.bundles.Status != observe.Ready && l.assessment.reachability == Connecting && now.Sub(l.started) >= firstSyncTimeout:
		return assessment{reachability: Unreachable, message: fmt.Sprintf("not all of its bundles have been read within %s", firstSyncTimeout)}
	}
	return l.keepAssessment()
}

// forbidden returns why the cluster refuses the hub; empty when it does not. All requests use the same credentials: a watch of
// bundles that was opened before these were rejected stays open for minutes, and does not show the rejection.
func (l *liveness) forbidden(now time.Time) string {
	switch {
	case confirmedSince(l.rejectedSince, now), l.leases.Reason == observe.Unauthorized && l.isConfirmed(l.leases, now):
		return errUnauthorized.Error()
	case refusesHub(l.bundles.Reason) && l.isConfirmed(l.bundles, now):
		return l.bundles.Message
	}
	return ""
}

// isConfirmed reports whether a refusal has lasted for long enough. An API server that starts may refuse requests for a moment.
func (l *liveness) isConfirmed(s observe.State, now time.Time) bool {
	return !s.AsOf.IsZero() || confirmedSince(s.Since, now)
}

// judgeMonitor returns the assessment of a cluster whose bundles are current, and of which HealthScope's monitor fills some.
func (l *liveness) judgeMonitor(now time.Time) assessment {
	expired := l.leaseExpired(now)
	switch {
	case l.leases.Status == observe.Problem:
		return l.judgeUnreadableLease(now)
	case l.leases.Status == observe.Pending, l.lease.since.IsZero(), !l.lease.present && !confirmedSince(l.lease.since, now):
		return l.keepAssessment() // The Lease is being read, or about to be made.
	case !l.lease.present:
		return assessment{reachability: MonitorMissing, message: "the monitor that filled its bundles has no Lease any more"}
	case expired && (l.isSilent(now) || !l.leases.IsWatched()):
		return l.keepAssessment() // A probe will show whether the API server is away. Without a watch, a renewal would not be seen.
	case expired:
		return assessment{reachability: MonitorStale, message: fmt.Sprintf("the monitor has not renewed its Lease for %s", l.leaseTimeout())}
	case l.lease.renewed.Before(l.watchedSince()) && l.wasStale():
		return l.keepAssessment() // The monitor may have died in the outage that is over now.
	}
	return assessment{reachability: Connected}
}

// judgeUnreadableLease returns the assessment of a cluster whose monitor's Lease cannot be read.
func (l *liveness) judgeUnreadableLease(now time.Time) assessment {
	switch refused := refusesHub(l.leases.Reason); {
	case !refused && (l.isSilent(now) || l.wasStale() && now.Sub(l.answeringSince) < bundleRules.Grace):
		return l.keepAssessment() // A probe will show whether the API server is away. If it has come back, the Lease is about to be read.
	case !refused:
		return assessment{reachability: MonitorMissing, message: l.leases.Message}
	case !l.isConfirmed(l.leases, now), !l.bundles.ConfirmBy().IsZero():
		return l.keepAssessment() // A refusal of bundles is graver, and about to be confirmed.
	}
	return assessment{reachability: MonitorMissing, message: l.leases.Message + ", so that it is not known whether its monitor lives"}
}

// isSilent reports whether a probe is due whose answer would show whether the API server is away.
func (l *liveness) isSilent(now time.Time) bool {
	return now.Sub(l.lastContact) > probeInterval+probeGrace
}

// refusesHub reports whether a reason means that the API server refuses the hub. It may refuse it one resource and not another.
func refusesHub(reason observe.Reason) bool {
	switch reason {
	case observe.Forbidden, observe.Unauthorized:
		return true
	case observe.NotServed, observe.NoAnswer:
	}
	return false
}

// wasStale reports whether the cluster was stale at the last assessment.
func (l *liveness) wasStale() bool {
	return l.assessment.reachability != Connected && l.assessment.reachability != Connecting
}

// watchedSince returns since when the hub would notice a renewal of the Lease.
func (l *liveness) watchedSince() time.Time { return later(l.answeringSince, l.leases.Since) }

// leaseTimeout returns how long the Lease may go without renewal.
func (l *liveness) leaseTimeout() time.Duration {
	return max(minLeaseTimeout, l.lease.duration+leaseGrace)
}

// leaseExpired reports whether the Lease counts as expired.
func (l *liveness) leaseExpired(now time.Time) bool {
	return l.lease.present && now.Sub(later(l.lease.renewed, l.watchedSince())) >= l.leaseTimeout()
}

// unwatched reports whether it is certain that no HealthScope monitor runs.
func (l *liveness) unwatched(now time.Time) bool {
	switch {
	case refusesHub(l.leases.Reason):
		return l.isConfirmed(l.leases, now)
	case l.lease.since.IsZero():
		return false // The Lease is not read, or has not been read yet.
	case l.assessment.unwatched || l.leases.IsWatched(): // Without a watch, a Lease that was made since would not be seen.
		return !l.lease.present && confirmedSince(l.lease.since, now) || l.leaseExpired(now)
	}
	return false
}

// keepAssessment returns the last assessment, because no other one is certain yet.
func (l *liveness) keepAssessment() assessment {
	if l.assessment.reachability == Connecting {
		return assessment{reachability: Connecting, message: cmp.Or(l.bundles.Message, l.outageCause(), "it is being read")}
	}
	return l.assessment
}

// outageCause returns why the last request got no answer; empty if the API server has answered since.
func (l *liveness) outageCause() string {
	if l.lastFailure.IsZero() || l.lastContact.After(l.lastFailure) {
		return ""
	}
	return l.cause
}

// lastSeen returns when what is shown of the cluster was last known to be current. reachability is the current state.
func (l *liveness) lastSeen(reachability Reachability) time.Time {
	switch {
	case reachability == MonitorStale:
		return l.lease.renewed
	case reachability == MonitorMissing && !l.lease.since.IsZero() && l.bundles.Status == observe.Ready:
		return l.lease.since
	case reachability == Forbidden && l.bundles.Status == observe.Ready:
		return cmp.Or(l.rejectedSince, l.leases.AsOf, l.lastContact)
	case reachability != Connected && !l.bundles.AsOf.IsZero() && l.bundles.AsOf.Before(l.lastContact):
		return l.bundles.AsOf
	}
	return l.lastContact
}

// continueFrom copies what the old connection knew to a new one, because the first read of the Lease is no renewal.
func (l *liveness) continueFrom(from *liveness) {
	l.assessment, l.own = from.assessment, from.own
	if l.lease.since.IsZero() || l.lease.fingerprint == from.lease.fingerprint {
		l.lease = from.lease
	}
}

// confirmedSince reports whether a problem that began at a time has lasted for long enough to be confirmed; the zero time means that there is none.
func confirmedSince(since, now time.Time) bool {
	return !since.IsZero() && now.Sub(since) >= observe.ConfirmAfter
}
