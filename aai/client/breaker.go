package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/healthscope/healthscope/aai"
)

const (
	// firstPause is how long a breaker stays open after the first failure.
	firstPause = 200 * time.Millisecond
	// MaxPause is the longest time for which a breaker stays open in an outage, unless A&AI asked for more.
	MaxPause = 2 * time.Second
	// MaxMisconfiguredPause is the same while A&AI refuses the controller as such: a wrong password that is sent often may lock the account.
	MaxMisconfiguredPause = time.Minute
	// pauseJitter is the share by which pauses differ by chance, so that many clients do not come back together.
	pauseJitter = 0.2
)

// Breaker is a circuit breaker: it keeps requests away from an A&AI that can do
// nothing for any of them, because it is down, or refuses us as such. While the
// breaker is open, calls fail at once with the error that opened it. After a pause
// it is half-open and lets one request through: if that succeeds the breaker
// closes, else the next pause is twice as long. It also bounds how many requests
// go out in a second.
//
// All clients of one A&AI share a breaker. It is safe for concurrent use.
type Breaker struct {
	clock   func() time.Time
	limiter *rate.Limiter

	mu sync.Mutex // guards the rest
	// cause opened the breaker; nil while it is closed.
	cause *aai.Error
	// until is when the next request is let through, also when the one before has no answer yet.
	until time.Time
	// failures counts how often in a row a request has opened the breaker.
	failures int
	// outages counts how often a closed breaker was opened, and changes how often any was opened or closed.
	outages, changes uint64
}

// permit lets one request through a breaker.
type permit struct {
	// halfOpen is true when the breaker was not closed: the request finds out whether A&AI is back.
	halfOpen bool
	// changes is how often the breaker had been opened or closed.
	changes uint64
}

// NewBreaker returns a closed breaker that lets perSecond requests through in a second, and as many at once; zero or less is no limit. A nil clock is time.Now.
func NewBreaker(perSecond int, clock func() time.Time) *Breaker {
	if clock == nil {
		clock = time.Now
	}
	limit := rate.Inf
	if perSecond > 0 {
		limit = rate.Limit(perSecond)
	}
	return &Breaker{clock: clock, limiter: rate.NewLimiter(limit, max(perSecond, 1))}
}

// do sends a request if the breaker allows it, and takes its error into account.
func (b *Breaker) do(ctx context.Context, q query, send func() error) error {
	if b == nil {
		return send()
	}
	if err := b.wait(ctx, q); err != nil {
		return err
	}
	p, refusal := b.allow()
	if refusal != nil {
		refusal.Op, refusal.URI, refusal.TransactionID = q.op, q.path, ""
		return refusal
	}
	err := send()
	b.report(ctx, p, err)
	return err
}

// wait waits until there are not too many requests in a second.
func (b *Breaker) wait(ctx context.Context, q query) error {
	if b == nil {
		return nil
	}
	if err := b.limiter.Wait(ctx); err != nil {
		return &aai.Error{Op: q.op, URI: q.path, Kind: aai.Retry, NotSent: true, Message: "it would be too many requests in a second", Err: err}
	}
	return nil
}

// allow returns a permit for a request, or the error with which it is refused.
func (b *Breaker) allow() (permit, *aai.Error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := permit{halfOpen: b.cause != nil, changes: b.changes}
	if !p.halfOpen {
		return p, nil
	}
	if now := b.clock(); !now.Before(b.until) {
		b.until = now.Add(b.pause(b.cause))
		return p, nil
	}
	refusal := *b.cause
	refusal.NotSent, refusal.NotBefore = true, b.until
	return p, &refusal
}

// report opens or closes the breaker by the outcome of a request. One that the caller gave up, or that was not sent, says nothing. One that went out
// before the breaker was opened or closed only says for how long A&AI asks to be left alone.
func (b *Breaker) report(ctx context.Context, p permit, err error) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	e, ok := errors.AsType[*aai.Error](err)
	bad := ok && (e.Kind == aai.Misconfigured || e.Outage())
	open := b.cause != nil
	switch stale := open != p.halfOpen || p.changes != b.changes; {
	case ctx.Err() != nil, ok && e.NotSent:
	case stale:
		if bad && e.RetryAfter > max(0, b.until.Sub(b.clock())) {
			b.open(e, e.RetryAfter)
		}
	case bad:
		b.open(e, max(e.RetryAfter, b.pause(e)))
		b.failures++
	case open:
		b.cause, b.failures = nil, 0
		b.changes++
	}
	if bad && b.cause != nil {
		e.NotBefore = b.until
	}
}

// open opens the breaker for a while.
func (b *Breaker) open(cause *aai.Error, pause time.Duration) {
	copied := *cause
	b.changes++
	if b.cause == nil {
		b.outages++
	}
	b.cause, b.until = &copied, b.clock().Add(pause)
}

// Outages returns how often the client's breaker was opened so far: what is known of A&AI from before may not be true after.
func (c *Client) Outages() uint64 {
	b := c.options.Breaker
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.outages
}

// pause returns for how long an error keeps the breaker open.
func (b *Breaker) pause(cause *aai.Error) time.Duration {
	longest := MaxPause
	if cause.Kind == aai.Misconfigured {
		longest = MaxMisconfiguredPause
	}
	pause := min(firstPause<<min(b.failures, 10), longest)
	return pause - time.Duration(pauseJitter*rand.Float64()*float64(pause)) //nolint:gosec // Chance, not a secret.
}
