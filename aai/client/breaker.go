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
	// initialPause is how long a breaker stays open after the first failure.
	initialPause = 200 * time.Millisecond
	// MaxPause is the maximum time for which a breaker stays open in an outage, unless A&AI asks for a longer pause.
	MaxPause = 2 * time.Second
	// MaxMisconfiguredPause is the maximum pause while errors are of kind Misconfigured: sending a wrong password often may lock the account.
	MaxMisconfiguredPause = time.Minute
	// pauseJitter is the maximum fraction by which a pause is shortened at random, so that clients do not retry at the same time.
	pauseJitter = 0.2
)

// Breaker is a circuit breaker: it blocks requests while A&AI cannot serve any of
// them, because it is down or refuses all requests of this client. While the
// breaker is open, calls fail at once with the error that opened it. After a pause
// it is half-open and lets one request through: if that succeeds, the breaker
// closes; otherwise the next pause is twice as long. It also limits the number of
// requests per second.
//
// All clients of one A&AI share a breaker. It is safe for concurrent use.
type Breaker struct {
	clock   func() time.Time
	limiter *rate.Limiter

	mu sync.Mutex // guards the rest
	// cause opened the breaker; nil while it is closed.
	cause *aai.Error
	// openUntil is the time at which the next request is let through, even if the previous one is still in flight.
	openUntil time.Time
	// failures counts the consecutive requests that have opened the breaker.
	failures int
	// outages counts how often a closed breaker was opened. transitions counts every opening and closing.
	outages, transitions uint64
}

// NewBreaker returns a closed breaker that lets perSecond requests through per second, with a burst of the same number. Zero or less means no limit. A nil clock means time.Now.
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

// do sends a request if the breaker allows it, and reports the outcome to the breaker.
func (b *Breaker) do(ctx context.Context, req request, send func() error) error {
	if b == nil {
		return send()
	}
	if err := b.wait(ctx, req); err != nil {
		return err
	}
	transitions, rejection := b.allow()
	if rejection != nil {
		rejection.Op, rejection.URI, rejection.TransactionID = req.op, req.path, ""
		return rejection
	}
	err := send()
	b.report(ctx, transitions, err)
	return err
}

// wait waits until the rate limit allows a request.
func (b *Breaker) wait(ctx context.Context, req request) error {
	if b == nil {
		return nil
	}
	if err := b.limiter.Wait(ctx); err != nil {
		return &aai.Error{Op: req.op, URI: req.path, Kind: aai.Retry, NotSent: true, Message: "it would be too many requests in a second", Err: err}
	}
	return nil
}

// allow returns the error with which a request is refused, or the number of transitions before it.
func (b *Breaker) allow() (transitions uint64, rejection *aai.Error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cause == nil {
		return b.transitions, nil
	}
	if now := b.clock(); !now.Before(b.openUntil) {
		b.openUntil = now.Add(b.pause(b.cause))
		return b.transitions, nil
	}
	refused := *b.cause
	refused.NotSent, refused.NotBefore = true, b.openUntil
	return 0, &refused
}

// report opens or closes the breaker according to the outcome of a request. It ignores a request that the caller cancelled or that was not sent. If a
// request was sent before the last transition, it uses only the Retry-After.
func (b *Breaker) report(ctx context.Context, transitions uint64, err error) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	e, ok := errors.AsType[*aai.Error](err)
	opens := ok && (e.Kind == aai.Misconfigured || e.Outage())
	switch {
	case ctx.Err() != nil, ok && e.NotSent:
	case transitions != b.transitions:
		if opens && e.RetryAfter > max(0, b.openUntil.Sub(b.clock())) {
			b.open(e, e.RetryAfter)
		}
	case opens:
		b.open(e, max(e.RetryAfter, b.pause(e)))
		b.failures++
	case b.cause != nil:
		b.cause, b.failures = nil, 0
		b.transitions++
	}
	if opens && b.cause != nil {
		e.NotBefore = b.openUntil
	}
}

// open opens the breaker for the given pause.
func (b *Breaker) open(cause *aai.Error, pause time.Duration) {
	copied := *cause
	b.transitions++
	if b.cause == nil {
		b.outages++
	}
	b.cause, b.openUntil = &copied, b.clock().Add(pause)
}

// Outages returns how often the client's breaker has been opened. When the number changes, earlier knowledge about A&AI may be outdated.
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
	pause := min(initialPause<<min(b.failures, 10), longest)
	return pause - time.Duration(pauseJitter*rand.Float64()*float64(pause)) //nolint:gosec // Chance, not a secret.
}
