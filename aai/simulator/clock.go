package simulator

import (
	"sync"
	"time"
)

// clock is the time of a simulator: that of its source, moved by an offset, or standing still.
type clock struct {
	source func() time.Time

	mu     sync.Mutex // guards the rest
	offset time.Duration
	still  bool
	stands time.Time // where it stands still
}

// now returns the time and whether it stands still.
func (c *clock) now() (now time.Time, still bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.still {
		return c.stands, true
	}
	return c.source().Add(c.offset), false
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += d
	c.stands = c.stands.Add(d)
}

func (c *clock) stop(still bool) {
	now, _ := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.still, c.stands = still, now
}

// Now returns the simulator's time: Options.Clock as AdvanceClock and SameMillisecond have changed it.
func (s *Simulator) Now() time.Time {
	now, _ := s.clock.now()
	return now
}

// AdvanceClock moves the time on, or back when d is negative. resource-versions go on increasing even then, unless
// SameMillisecond is on.
func (s *Simulator) AdvanceClock(d time.Duration) { s.clock.advance(d) }

// SameMillisecond makes the time stand still, but for AdvanceClock, and resource-versions exactly its milliseconds, as
// A&AI has them: all writes until the next AdvanceClock give the same version, and a clock that is set back gives old
// ones again (ABA). Off, which is the default, versions increase from write to write.
func (s *Simulator) SameMillisecond(on bool) { s.clock.stop(on) }
