package suite

import (
	"time"

	"k8s.io/utils/clock"
)

// FastClock is a clock that runs several times as fast as real time, for specs of behavior that takes minutes.
type FastClock struct {
	clock.RealClock

	begin  time.Time
	factor int
}

// NewFastClock returns a clock that runs factor times as fast as real time.
func NewFastClock(factor int) *FastClock { return &FastClock{begin: time.Now(), factor: factor} }

// Now implements clock.PassiveClock.
func (c *FastClock) Now() time.Time {
	return c.begin.Add(time.Since(c.begin) * time.Duration(c.factor))
}

// Since implements clock.PassiveClock.
func (c *FastClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// After implements clock.Clock.
func (c *FastClock) After(d time.Duration) <-chan time.Time {
	return time.After(d / time.Duration(c.factor))
}

// NewTimer implements clock.Clock.
func (c *FastClock) NewTimer(d time.Duration) clock.Timer {
	return c.RealClock.NewTimer(d / time.Duration(c.factor))
}

// AfterFunc implements clock.WithDelayedExecution.
func (c *FastClock) AfterFunc(d time.Duration, f func()) clock.Timer {
	return c.RealClock.AfterFunc(d/time.Duration(c.factor), f)
}
