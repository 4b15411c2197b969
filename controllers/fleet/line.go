package fleet

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// line is a connection in use, or one that is to replace it.
type line struct {
	*connection

	// wish is what it was begun for. By now its token may be another one.
	wish   wish
	cancel context.CancelFunc
	// probing is true while a probe is under way, and notBefore when the next one may begin.
	probing   bool
	notBefore time.Time
	pauses    pauses
	// known is true once the cluster has been read through the connection, and attached once objects are.
	known, attached bool
	// told is true once it has been told that the connection does not work.
	told bool
}

// dial begins a connection, on the member's behalf. It is engaged as soon as all bundles have been read, however long that takes.
func (m *member) dial(ctx context.Context, w wish) (*line, error) {
	config, err := m.hub.configOf(w)
	if err != nil {
		return nil, err
	}
	p := newPulse(m.local, m.hub.timeout(), m.hub.clock, m.wake)
	c, err := newConnection(m.name, config, w.namespaces, p, m.quota.newMeter(), m.hub.connect)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	if err := c.watchBundles(func(name types.NamespacedName) { m.changed(name) }); err != nil {
		cancel()
		return nil, err
	}
	m.running.Go(func() { c.serve(ctx, func() { m.synced(ctx, c) }) })
	return &line{connection: c, wish: w, cancel: cancel}, nil
}

// hangUp ends a connection.
func (m *member) hangUp(l *line) {
	if l != nil {
		l.cancel()
	}
}

// synced has the bundles of a connection used, which have been read.
func (m *member) synced(ctx context.Context, c *connection) {
	if namespace := m.hub.connect.leaseNamespace; namespace != "" {
		if err := c.watchLease(ctx, namespace); err != nil {
			c.pulse.tell(func(l *liveness, now time.Time) { l.unanswered(now, shortened(err.Error())) })
			return
		}
	}
	c.pulse.gainAll()
	select {
	case m.engaged <- c:
	case <-ctx.Done():
	}
}

// tend probes a connection when there is reason to, and returns when to look at it again; zero means when it is heard of.
func (m *member) tend(ctx context.Context, l *line) time.Time {
	var next, now time.Time
	var wants bool
	var reach Reachability
	l.pulse.ask(func(life *liveness, at time.Time) {
		next, now, wants, reach = life.next(at), at, life.wantsProbe(at), life.verdict.reach
	})
	if l.probing || !wants {
		return next
	}
	if now.Before(l.notBefore) {
		return soonest(next, l.notBefore)
	}
	l.probing = true
	m.running.Go(func() {
		deadline, cancel := context.WithTimeout(ctx, m.hub.timeout()+slack)
		defer cancel()
		err := probe(deadline, l.config, l.http, "")
		if ctx.Err() != nil {
			return
		}
		l.pulse.tell(func(life *liveness, now time.Time) {
			if err == nil {
				life.answered(now)
			} else {
				life.unanswered(now, shortened(err.Error()))
			}
		})
		select {
		case m.probed <- probeResult{line: l, failed: err != nil, reach: reach}:
		case <-ctx.Done():
		}
	})
	return next
}

// probeResult is how a probe has ended.
type probeResult struct {
	line   *line
	failed bool
	// reach is what the cluster was when it began.
	reach Reachability
}

// settle notes how a probe has ended.
func (l *line) settle(r probeResult, now time.Time) {
	l.probing, l.notBefore = false, time.Time{}
	if r.failed {
		l.notBefore = now.Add(l.pauses.next(r.reach, l.known))
	} else {
		l.pauses = pauses{}
	}
}

// soonest returns the earlier of two times, of which zero means never.
func soonest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
