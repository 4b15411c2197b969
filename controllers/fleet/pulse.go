package fleet

import (
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// pulse is the liveness of one connection, told of by many. It is safe for concurrent use.
type pulse struct {
	clock clock.PassiveClock
	// beat is called when something may have changed. It does not block.
	beat func()
	// look sets in the liveness what is known of bundles and Leases now; nil where somebody else does.
	look func(*liveness)

	mu   sync.Mutex
	life *liveness
}

func newPulse(local bool, timeout time.Duration, c clock.PassiveClock, beat func()) *pulse {
	return &pulse{clock: c, beat: beat, life: newLiveness(local, timeout, c.Now())}
}

// tell notes something.
func (p *pulse) tell(note func(l *liveness, now time.Time)) {
	p.mu.Lock()
	note(p.life, p.clock.Now())
	p.mu.Unlock()
	p.beat()
}

// ask reads something.
func (p *pulse) ask(question func(l *liveness, now time.Time)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.look != nil {
		p.look(p.life)
	}
	question(p.life, p.clock.Now())
}

// timeout is how long an answer may take, and probes reports whether anybody wants to know.
func (p *pulse) timeout() time.Duration { return p.life.timeout }
func (p *pulse) probes() bool           { return !p.life.off }

// idleFor returns how long the next probe can wait: of the hub's own API server, as long as something else is heard.
func (p *pulse) idleFor() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.life.local {
		return 0
	}
	return p.life.heard.Add(probeEvery).Sub(p.clock.Now())
}

// shortened bounds the text of an error.
func shortened(text string) string { return cut(text, maxErrorText) }

// cut bounds a text to so many bytes.
func cut(text string, most int) string {
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most-3], "") + "..."
	}
	return text
}
