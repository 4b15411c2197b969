package fleet

import (
	"time"

	"github.com/healthscope/healthscope/controllers/observe"
)

// unwatchedMessage says for people that a cluster is Connected, and what that is worth.
const unwatchedMessage = "its bundles are filled by another monitor than HealthScope's, and without HealthScope's nobody can see whether that one still lives: they are as it wrote them last"

// unwatched says whether it is certain that no monitor of ours lives.
func (l *liveness) unwatched(now time.Time) bool {
	switch {
	case lasts(l.leases.refused, now):
		return true
	case l.lease.since.IsZero():
		return false // Nobody looks, or nobody has looked yet.
	case !l.lease.present:
		return lasts(l.lease.since, now)
	default:
		return now.Sub(l.lease.renewed) >= l.staleAfter() && (l.verdict.unwatched || now.Before(l.suspected())) // Else it may be the API server that is silent.
	}
}

// judgeForeign decides about a cluster without bundles of a monitor of ours, and whose bundles are read.
func (l *liveness) judgeForeign(now time.Time) verdict {
	if l.foreign && l.unwatched(now) {
		return verdict{reach: Connected, message: unwatchedMessage, unwatched: true}
	}
	return verdict{reach: Connected}
}

// lasts says whether something bad has lasted for long enough to be believed; the zero time is of what is not so.
func lasts(since, now time.Time) bool {
	return !since.IsZero() && now.Sub(since) >= observe.Doubt
}
