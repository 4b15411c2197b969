package observe

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Tracker holds the State of one place. It is safe for concurrent use.
type Tracker struct {
	rules Rules
	clock clock.PassiveClock
	wake  func()

	mu    sync.Mutex
	state State
}

// NewTracker returns the Tracker of a place that has not been read. wake is called after each event; it may be nil, and must not block.
func NewTracker(r Rules, c clock.PassiveClock, wake func()) *Tracker {
	return &Tracker{rules: r, clock: c, wake: wake, state: State{Since: c.Now()}}
}

// State returns the state as of now, and when it may change if nothing is reported before. The zero time means never.
func (t *Tracker) State() (State, time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var next time.Time
	t.state, next = Track(t.state, Event{Kind: Tick}, t.clock.Now(), t.rules)
	return t.state, next
}

// Report applies an event to the state.
func (t *Tracker) Report(e Event) {
	t.mu.Lock()
	t.state, _ = Track(t.state, e, t.clock.Now(), t.rules)
	t.mu.Unlock()
	if t.wake != nil {
		t.wake()
	}
}
