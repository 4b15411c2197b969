package fleet

import (
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/healthscope/healthscope/healthscope"
)

// healthTracker holds the liveness of one connection, to which several goroutines report. It is safe for concurrent use.
type healthTracker struct {
	clock clock.PassiveClock
	// wake is called when something may have changed. It does not block.
	wake func()
	// readStates sets in the liveness whether bundles and Leases are current; nil in tests that set it themselves.
	readStates func(*liveness)

	mu       sync.Mutex
	liveness *liveness
}

func newHealthTracker(local bool, timeout time.Duration, c clock.PassiveClock, beat func()) *healthTracker {
	return &healthTracker{clock: c, wake: beat, liveness: newLiveness(local, timeout, c.Now())}
}

// update changes the liveness.
func (p *healthTracker) update(note func(l *liveness, now time.Time)) {
	p.mu.Lock()
	note(p.liveness, p.clock.Now())
	p.mu.Unlock()
	p.wake()
}

// read reads the liveness.
func (p *healthTracker) read(question func(l *liveness, now time.Time)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.readStates != nil {
		p.readStates(p.liveness)
	}
	question(p.liveness, p.clock.Now())
}

// timeout is how long an answer may take, and probes reports whether the API server is to be probed.
func (p *healthTracker) timeout() time.Duration { return p.liveness.timeout }
func (p *healthTracker) probes() bool           { return !p.liveness.off }

// idleFor returns how long the next probe can wait: of the hub's own API server, as long as it answers other requests.
func (p *healthTracker) idleFor() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.liveness.local {
		return 0
	}
	return p.liveness.lastContact.Add(probeEvery).Sub(p.clock.Now())
}

// shortened bounds the text of an error.
func shortened(text string) string { return healthscope.Shorten(text, maxErrorText) }
