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
	// firstPause is how long a gate stays closed after the first trouble.
	firstPause = 200 * time.Millisecond
	// MaxPause is the longest time for which a gate stays closed in an outage, unless A&AI asked for more.
	MaxPause = 2 * time.Second
	// MaxStopPause is the same while A&AI refuses the controller as such: a wrong password that is sent often may lock the account.
	MaxStopPause = time.Minute
	// pauseJitter is the share by which pauses differ by chance, so that many clients do not come back together.
	pauseJitter = 0.2
)

// Gate keeps requests away from an A&AI that can do nothing for any of them: one
// that is down, or that refuses us as such. While it is closed, calls fail at once
// with the error that closed it. After a pause it lets one request through: if
// that succeeds the gate is open, else the next pause is twice as long. It also
// bounds how many requests go out in a second.
//
// All clients of one A&AI share a gate. It is safe for concurrent use.
type Gate struct {
	clock   func() time.Time
	limiter *rate.Limiter

	mu sync.Mutex // guards the rest
	// cause closed the gate; nil while it is open.
	cause *aai.Error
	// until is when the next request is let through, also when the one before has no answer yet.
	until time.Time
	// closings counts how often the gate was closed in a row.
	closings int
	// outages counts how often an open gate was closed, and changes how often any was opened or closed.
	outages, changes uint64
}

// passage says how a request went through a gate.
type passage struct {
	// trial is true when the gate was closed.
	trial bool
	// changes is how often the gate had been opened or closed.
	changes uint64
}

// NewGate returns an open gate that lets perSecond requests through in a second, and as many at once; zero or less is no limit. A nil clock is time.Now.
func NewGate(perSecond int, clock func() time.Time) *Gate {
	if clock == nil {
		clock = time.Now
	}
	limit := rate.Inf
	if perSecond > 0 {
		limit = rate.Limit(perSecond)
	}
	return &Gate{clock: clock, limiter: rate.NewLimiter(limit, max(perSecond, 1))}
}

// pass sends a request if the gate is open, and learns from its error.
func (g *Gate) pass(ctx context.Context, q query, send func() error) error {
	if g == nil {
		return send()
	}
	if err := g.wait(ctx, q); err != nil {
		return err
	}
	way, refusal := g.enter()
	if refusal != nil {
		refusal.Op, refusal.URI, refusal.TransactionID = q.op, q.path, ""
		return refusal
	}
	err := send()
	g.leave(ctx, way, err)
	return err
}

// wait waits until there are not too many requests in a second.
func (g *Gate) wait(ctx context.Context, q query) error {
	if g == nil {
		return nil
	}
	if err := g.limiter.Wait(ctx); err != nil {
		return &aai.Error{Op: q.op, URI: q.path, Kind: aai.Retry, NotSent: true, Message: "it would be too many requests in a second", Err: err}
	}
	return nil
}

// enter returns how a request may go, or the error with which it is refused.
func (g *Gate) enter() (passage, *aai.Error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	way := passage{trial: g.cause != nil, changes: g.changes}
	if !way.trial {
		return way, nil
	}
	if now := g.clock(); !now.Before(g.until) {
		g.until = now.Add(g.pause(g.cause))
		return way, nil
	}
	refusal := *g.cause
	refusal.NotSent, refusal.NotBefore = true, g.until
	return way, &refusal
}

// learn takes in the outcome of a request that was sent past the gate.
func (g *Gate) learn(ctx context.Context, err error) {
	if g != nil {
		g.leave(ctx, passage{}, err)
	}
}

// leave closes or opens the gate by the outcome of a request. One that the caller gave up says nothing. One that went out
// before the gate was closed or opened only says for how long A&AI asks to be left alone.
func (g *Gate) leave(ctx context.Context, way passage, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	e, ok := errors.AsType[*aai.Error](err)
	bad := ok && (e.Kind == aai.Stop || e.Outage())
	closed := g.cause != nil
	switch stale := closed != way.trial || way.changes != g.changes; {
	case ctx.Err() != nil:
	case stale:
		if bad && e.RetryAfter > max(0, g.until.Sub(g.clock())) {
			g.close(e, e.RetryAfter)
		}
	case bad:
		g.close(e, max(e.RetryAfter, g.pause(e)))
		g.closings++
	case closed:
		g.cause, g.closings = nil, 0
		g.changes++
	}
	if bad && g.cause != nil {
		e.NotBefore = g.until
	}
}

// close closes the gate for a while.
func (g *Gate) close(cause *aai.Error, pause time.Duration) {
	copied := *cause
	g.changes++
	if g.cause == nil {
		g.outages++
	}
	g.cause, g.until = &copied, g.clock().Add(pause)
}

// Outages returns how often the client's gate was closed so far: what is known of A&AI from before may not be true after.
func (c *Client) Outages() uint64 {
	g := c.options.Gate
	if g == nil {
		return 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.outages
}

// pause returns for how long an error keeps the gate closed.
func (g *Gate) pause(cause *aai.Error) time.Duration {
	longest := MaxPause
	if cause.Kind == aai.Stop {
		longest = MaxStopPause
	}
	pause := min(firstPause<<min(g.closings, 10), longest)
	return pause - time.Duration(pauseJitter*rand.Float64()*float64(pause)) //nolint:gosec // Chance, not a secret.
}
