package probe

import "time"

// Gap is the least time between two probes in one namespace of one cluster.
const Gap = time.Second

// jitter is by which part of its interval a probe may come earlier, so that probes do not keep coming together. None comes later.
const jitter = 0.1

// Pace holds when the last probe of a namespace in a cluster is, or will be. The zero value is one of the past.
type Pace struct{ last time.Time }

// Slot returns the next moment for a probe, and takes it.
func (p *Pace) Slot(now time.Time) time.Time {
	if next := p.last.Add(Gap); next.After(now) {
		now = next
	}
	p.last = now
	return now
}

// Idle reports whether a probe could be made now.
func (p *Pace) Idle(now time.Time) bool { return !p.last.Add(Gap).After(now) }

// Next returns when a Service is to be probed again that was probed at a time. random is from 0 to 1.
func Next(started time.Time, interval time.Duration, random float64) time.Time {
	return started.Add(interval - time.Duration(jitter*random*float64(interval)))
}
