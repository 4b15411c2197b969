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
	// backoffReset is how long a watch must stay open, or how much time must pass without an attempt, before the next pause starts at
	// minPause again.
	backoffReset = time.Minute
)

// backoff decides when the next attempt to read a place may begin. Only one goroutine waits at a time.
type backoff struct {
	clock clock.Clock
	// maxRefused bounds the pause after a refusal.
	maxRefused time.Duration

	mu sync.Mutex
	// pause is the pause before the next attempt, and notBefore is when that attempt may begin.
	pause     time.Duration
	notBefore time.Time
	// kicked signals that notBefore has changed. It buffers one signal.
	kicked chan struct{}
}

func newBackoff(c clock.Clock, maxRefused time.Duration) *backoff {
	return &backoff{clock: c, maxRefused: maxRefused, kicked: make(chan struct{}, 1)}
}

// wait waits until the next attempt may begin, and returns an error when ctx ends.
func (b *backoff) wait(ctx context.Context) error {
	for ctx.Err() == nil {
		b.mu.Lock()
		remaining := b.notBefore.Sub(b.clock.Now())
		b.mu.Unlock()
		if remaining <= 0 {
			return nil
		}
		timer := b.clock.NewTimer(remaining)
		select {
		case <-timer.C():
		case <-b.kicked:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	return ctx.Err()
}

// failed records that an attempt failed, or that the watch that was opened at opened has ended. confirmBy is when the next attempt is due to
// confirm a refusal; it is zero when there was no refusal, or when the refusal is confirmed.
func (b *backoff) failed(opened time.Time, refused bool, confirmBy time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.Now()
	limit := maxPause
	if refused {
		limit = b.maxRefused
	}
	if !opened.IsZero() && now.Sub(opened) >= backoffReset {
		b.pause, b.notBefore = 0, now
		return
	}
	if now.Sub(b.notBefore) >= backoffReset {
		b.pause = 0
	}
	b.pause = min(max(2*b.pause, minPause), limit)
	b.notBefore = now.Add(b.pause/2 + rand.N(b.pause/2)) //nolint:gosec // The jitter needs no secure randomness.
	if confirmBy.After(now) && confirmBy.Before(b.notBefore) {
		b.notBefore = confirmBy
	}
}

// kick lets the next attempt begin at once.
func (b *backoff) kick() {
	b.mu.Lock()
	if now := b.clock.Now(); b.notBefore.After(now) {
		b.notBefore = now
	}
	b.mu.Unlock()
	select {
	case b.kicked <- struct{}{}:
	default: // A signal is pending already.
	}
}
