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
	// maxTrialPause is how long others wait at most, while one finds out whether all is well again, before they ask once more.
	maxTrialPause = 5 * time.Second
	// firstPause is how long a gate stays closed after the first trouble.
	firstPause = 200 * time.Millisecond
	// maxPause is the longest time for which a gate stays closed unless A&AI asked for more.
	maxPause = time.Minute
	// pauseJitter is the share by which pauses differ by chance, so that many clients do not come back together.
	pauseJitter = 0.2
)

// Gate keeps requests away from an A&AI that can do nothing for any of them: one
// that is down, or that refuses us as such. While it is closed, calls fail at once
// with the error that closed it. Then it lets one request through: if that fares
// well the gate is open, else it stays closed for about twice as long. It also
// bounds how many requests go out in a second.
//
// All clients of one A&AI share a gate. It is safe for concurrent use.
type Gate struct {
	clock   func() time.Time
	limiter *rate.Limiter

	mu sync.Mutex // guards the rest
	// cause closed the gate; nil while it is open.
	cause *aai.Error
	until time.Time
	// closings counts how often the gate was closed in a row.
	closings int
	// outages counts how often an open gate was closed.
	outages uint64
	// trying is true while the one request is under way that finds out whether all is well again.
	trying bool
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
	trial, refusal := g.enter()
	if refusal != nil {
		refusal.Op, refusal.URI, refusal.TransactionID = q.op, q.path, ""
		return refusal
	}
	err := send()
	g.leave(ctx, trial, err)
	return err
}

// wait waits until there are not too many requests in a second.
func (g *Gate) wait(ctx context.Context, q query) error {
	if g == nil {
		return nil
	}
	if err := g.limiter.Wait(ctx); err != nil {
		return &aai.Error{Op: q.op, URI: q.path, Kind: aai.Retry, Message: "it would be too many requests in a second", Err: err}
	}
	return nil
}

// enter returns the error with which a request is refused; nil when it may go. trial is true when the gate is closed, and the request is the one that finds out whether all is well again.
func (g *Gate) enter() (trial bool, refused *aai.Error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cause == nil {
		return false, nil
	}
	wait := g.until.Sub(g.clock())
	if wait <= 0 && !g.trying {
		g.trying = true
		return true, nil
	}
	refusal := *g.cause
	refusal.RetryAfter = max(wait, min(firstPause<<min(g.closings, 10), maxTrialPause)) // While the trial is under way, too.
	return false, &refusal
}

// learn takes in the outcome of a request that was sent though the gate was closed.
func (g *Gate) learn(ctx context.Context, err error) {
	if g != nil {
		g.leave(ctx, false, err)
	}
}

// leave closes or opens the gate by the outcome of a request. One that the caller gave up says nothing. One that went out before the gate was closed can only make A&AI be left alone for longer.
func (g *Gate) leave(ctx context.Context, trial bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if trial {
		g.trying = false
	}
	e, ok := errors.AsType[*aai.Error](err)
	bad := ok && (e.Kind == aai.Stop || e.Outage())
	switch closed := g.cause != nil && !trial; {
	case ctx.Err() != nil:
	case closed && bad && e.RetryAfter > g.until.Sub(g.clock()):
		g.close(e, e.RetryAfter)
	case closed:
	case bad:
		g.close(e, max(e.RetryAfter, g.pause()))
		g.closings++
	default:
		g.cause, g.closings = nil, 0
	}
}

// close closes the gate for a while.
func (g *Gate) close(cause *aai.Error, pause time.Duration) {
	copied := *cause
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

// pause returns for how long the gate is to be closed.
func (g *Gate) pause() time.Duration {
	pause := maxPause
	if g.closings < 10 {
		pause = min(firstPause<<g.closings, maxPause)
	}
	return pause - time.Duration(pauseJitter*rand.Float64()*float64(pause)) //nolint:gosec // Chance, not a secret.
}
