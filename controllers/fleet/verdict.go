package fleet

import (
	"cmp"
	"fmt"
	"time"
)

// judge returns what is to be said of the cluster, by what is known of it.
func (l *liveness) judge(now time.Time) verdict {
	switch denied := l.forbidden(now); {
	case l.off && !l.bundles.current:
		return l.wait("its bundles are being read")
	case l.off:
		return verdict{reach: Connected}
	case l.silent(now):
		return verdict{reach: Unreachable, message: "the API server does not answer" + because(l.causeOfSilence())}
	case denied != "":
		return verdict{reach: Forbidden, message: denied}
	case lasts(l.bundles.missing, now):
		return verdict{reach: MonitorMissing, message: l.bundles.problem, blind: true}
	case !l.bundles.current:
		return l.judgeUnread(now)
	}
	return l.judgeWriter(now)
}

// judgeUnread decides about a cluster whose bundles are not read at present.
func (l *liveness) judgeUnread(now time.Time) verdict {
	unread := now.Sub(l.bundles.since)
	switch {
	case unread >= unreadableTime && (l.bundles.problem != "" || l.verdict.reach == Connected):
		return verdict{reach: Unreachable, message: cmp.Or(l.bundles.problem, "its bundles cannot be read")}
	case unread >= listTimeout && l.verdict.reach == Connecting:
		return verdict{reach: Unreachable, message: fmt.Sprintf("not all of its bundles have been read within %s", listTimeout)}
	case l.verdict.reach != Connected || !l.own:
		return l.wait("its bundles are being read")
	}
	return l.judgeWriter(now)
}

// judgeWriter decides about a cluster whose bundles are read, or were a moment ago, by who writes them.
func (l *liveness) judgeWriter(now time.Time) verdict {
	if l.own {
		return l.judgeMonitor(now)
	}
	return l.judgeForeign(now)
}

// forbidden says why the cluster lets nobody in; it is empty when it does. Bundles and the Lease are read with the same
// credentials: a watch of bundles that was opened before these were rejected goes on for minutes, and does not tell.
func (l *liveness) forbidden(now time.Time) string {
	switch {
	case lasts(l.bundles.refused, now):
		return l.bundles.problem
	case l.leases.rejected && lasts(l.leases.refused, now):
		return l.leases.problem
	}
	return ""
}

// judgeMonitor decides about a cluster that has bundles of a monitor of ours, and whose bundles are read, or were a moment ago.
func (l *liveness) judgeMonitor(now time.Time) verdict {
	switch {
	case lasts(l.leases.refused, now) || l.lease.since.IsZero():
		return l.judgeUnseenLease(now)
	case !l.lease.present && lasts(l.lease.since, now):
		return verdict{reach: MonitorMissing, message: "the monitor that filled its bundles has no Lease any more"}
	case !l.lease.present:
		return l.wait("its monitor has no Lease yet")
	case now.Sub(l.lease.renewed) >= l.staleAfter() && !now.Before(l.suspected()):
		return l.wait("the monitor's Lease is still to be renewed") // It may be the API server that is silent: a probe tells.
	case now.Sub(l.lease.renewed) >= l.staleAfter():
		return verdict{reach: MonitorStale, message: fmt.Sprintf("the monitor has not renewed its Lease for %s", l.staleAfter())}
	case l.lease.awaited || !l.leases.current && l.verdict.reach != Connected:
		return l.wait("the monitor's Lease is still to be renewed")
	}
	return verdict{reach: Connected}
}

// judgeUnseenLease decides about a cluster whose monitor's Lease is refused, or has not been seen yet.
func (l *liveness) judgeUnseenLease(now time.Time) verdict {
	switch {
	case lasts(l.leases.refused, now) && !l.bundles.refused.IsZero():
		return l.wait("its bundles and its monitor's Lease are refused") // Which is graver, and is believed in a moment.
	case lasts(l.leases.refused, now):
		return verdict{reach: MonitorMissing, message: l.leases.problem + ", so that nobody knows whether its monitor lives"}
	case !l.leases.current && now.Sub(l.leases.since) >= minStaleTime:
		return verdict{reach: MonitorMissing, message: cmp.Or(l.leases.problem, "the monitor's Lease cannot be read")}
	}
	return l.wait("the monitor's Lease is being read")
}

// wait keeps what was said last, because nothing else is certain yet.
func (l *liveness) wait(what string) verdict {
	if l.verdict.reach == Connecting {
		return verdict{reach: Connecting, message: cmp.Or(l.bundles.problem, l.causeOfSilence(), what)}
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
