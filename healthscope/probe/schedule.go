package probe

import "time"

// Gap is the least time between two probes in one namespace of one cluster.
const Gap = time.Second

// jitter is the share of its interval by which a probe may come earlier, so that probes spread out. No probe comes later.
const jitter = 0.1

// Pace limits the rate of probes of a namespace in a cluster. It holds the time of the latest probe, which may be in the future. The zero value has no probe.
type Pace struct{ last time.Time }

// Slot returns the next time for a probe, and reserves it.
func (p *Pace) Slot(now time.Time) time.Time {
	if next := p.last.Add(Gap); next.After(now) {
		now = next
	}
	p.last = now
	return now
}

// Idle reports whether a probe could be made now.
func (p *Pace) Idle(now time.Time) bool { return !p.last.Add(Gap).After(now) }

// Next returns the time of the next probe of a Service whose last probe began at started. random is from 0 to 1.
func Next(started time.Time, interval time.Duration, random float64) time.Time {
	return started.Add(interval - time.Duration(jitter*random*float64(interval)))
}
