package observe

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Pauses between attempts to read a place.
const (
	minPause = 200 * time.Millisecond
	maxPause = 5 * time.Second
	// steady is how long a watch must have gone on, or how long ago the last attempt must be, for the next pause to be the shortest again.
	steady = time.Minute
)

// pace decides when a place may be asked for again. One goroutine waits at a time.
type pace struct {
	clock clock.Clock
	// maxRefused bounds the pause after a refusal.
	maxRefused time.Duration

	mu sync.Mutex
	// pause is that before the next attempt, and after is when that may begin.
	pause time.Duration
	after time.Time
	// kicked has room for one notice that after has changed.
	kicked chan struct{}
}

func newPace(c clock.Clock, maxRefused time.Duration) *pace {
	return &pace{clock: c, maxRefused: maxRefused, kicked: make(chan struct{}, 1)}
}

// wait waits until the next attempt may begin, and returns an error when ctx ends.
func (p *pace) wait(ctx context.Context) error {
	for ctx.Err() == nil {
		p.mu.Lock()
		left := p.after.Sub(p.clock.Now())
		p.mu.Unlock()
		if left <= 0 {
			return nil
		}
		timer := p.clock.NewTimer(left)
		select {
		case <-timer.C():
		case <-p.kicked:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	return ctx.Err()
}

// failed notes that an attempt has failed, or that a watch that was opened at a time has ended. confirmBy is when an attempt is due to
// confirm a refusal; zero when it was none, or is confirmed.
func (p *pace) failed(opened time.Time, refused bool, confirmBy time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	most := maxPause
	if refused {
		most = p.maxRefused
	}
	if !opened.IsZero() && now.Sub(opened) >= steady {
		p.pause, p.after = 0, now
		return
	}
	if now.Sub(p.after) >= steady {
		p.pause = 0
	}
	p.pause = min(max(2*p.pause, minPause), most)
	p.after = now.Add(p.pause/2 + rand.N(p.pause/2)) //nolint:gosec // It is no secret when it is tried again.
	if confirmBy.After(now) && confirmBy.Before(p.after) {
		p.after = confirmBy
	}
}

// kick lets the next attempt begin at once.
func (p *pace) kick() {
	p.mu.Lock()
	if now := p.clock.Now(); p.after.After(now) {
		p.after = now
	}
	p.mu.Unlock()
	select {
	case p.kicked <- struct{}{}:
	default: // It is going to.
	}
}
