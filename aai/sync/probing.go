package sync

import (
	"context"
	"sync/atomic"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/client"
)

// probing finds out, before anything else is asked of A&AI, whether it takes us at all. It does so once, and again after
// A&AI has refused us as such: a probe says better what is wrong than the request that happened to come first.
type probing struct {
	client *client.Client
	// turn is held by who probes: others wait for the outcome.
	turn chan struct{}
	good atomic.Bool
}

func newProbing(c *client.Client) *probing { return &probing{client: c, turn: make(chan struct{}, 1)} }

// check returns why A&AI takes no requests of ours; nil when it does, as far as is known.
func (p *probing) check(ctx context.Context) error {
	if p.good.Load() {
		return nil
	}
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return &aai.Error{Op: aai.OpProbe, Kind: aai.Retry, Message: "another probe is under way", Err: ctx.Err()}
	}
	if p.good.Load() {
		return nil
	}
	err := p.client.Probe(ctx)
	p.good.Store(err == nil)
	return err
}

// learn takes in why requests could not go on.
func (p *probing) learn(err error) {
	if err != nil && aai.KindOf(err) != aai.Retry {
		p.good.Store(false)
	}
}
