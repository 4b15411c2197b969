package fleet

import (
	"context"
	"time"

	"github.com/healthscope/healthscope/controllers/observe"
)

// line is a connection in use, or one that is to replace it.
type line struct {
	*connection

	// wish is what it was begun for. By now its token may be another one.
	wish   wish
	cancel context.CancelFunc
	// known is true once the cluster has been read through the connection, and attached once objects are.
	known, attached bool
	// told is true once it has been told that the connection does not work.
	told bool
}

// dial begins a connection, on the member's behalf.
func (m *member) dial(ctx context.Context, w wish) (*line, error) {
	config, err := m.hub.configOf(w)
	if err != nil {
		return nil, err
	}
	p := newPulse(m.local, m.hub.timeout(), m.hub.clock, m.wake)
	o := m.hub.connect
	o.clock = m.hub.clock
	c, err := newConnection(m.name, config, w.namespaces, p, m.quota.newMeter(), m.changed, o)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	m.running.Go(func() { c.serve(ctx) })
	return &line{connection: c, wish: w, cancel: cancel}, nil
}

// hangUp ends a connection.
func (m *member) hangUp(l *line) {
	if l != nil {
		l.cancel()
	}
}

// isRead reports whether all bundles have been read over the connection, and are current.
func (l *line) isRead() (read bool) {
	l.pulse.ask(func(life *liveness, _ time.Time) { read = life.bundles.Status == observe.Ready })
	return read
}

// soonest returns the earlier of two times, of which zero means never.
func soonest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
