package sync

import (
	"context"
	"errors"
	gosync "sync"
	"sync/atomic"
	"time"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/client"
)

// probing finds out, before anything else is asked of A&AI, whether it takes us at all. It does so once, and again after
// A&AI was down or has refused us as such: a probe costs less than the request that happened to come first, and says better
// what is wrong.
type probing struct {
	client *client.Client
	// turn is held by who probes: others wait for the outcome.
	turn chan struct{}
	good atomic.Bool
	// known is true when A&AI has been seen. It belongs to the pass that holds turn.
	known bool
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
		return &aai.Error{Op: aai.OpProbe, Kind: aai.Retry, NotSent: true, Message: "another probe is under way", Err: ctx.Err()}
	}
	if p.good.Load() {
		return nil
	}
	err := p.probe(ctx)
	p.known = p.known || err == nil
	p.good.Store(err == nil)
	if e, ok := errors.AsType[*aai.Error](err); ok && p.known && e.Status/100 == 2 { // Something answers in place of A&AI, for now.
		e.Kind, e.Problem = aai.Retry, ""
	}
	return err
}

// probe asks A&AI. A request without an answer may be lost while A&AI is back already, so after a pause another one is sent
// beside it, and the first answer counts.
func (p *probing) probe(ctx context.Context) error {
	var asking gosync.WaitGroup
	defer asking.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan error, 1)
	ask := func(counts func(error) bool) {
		if err := p.client.Probe(ctx); counts(err) {
			select {
			case answers <- err:
			default: // One has come already.
			}
		}
	}
	asking.Go(func() { ask(func(error) bool { return true }) })
	for {
		select {
		case err := <-answers:
			return err
		case <-time.After(client.MaxPause):
			asking.Go(func() { ask(func(err error) bool { return !notSent(err) }) })
		}
	}
}

// learn takes in why a pass ended early.
func (p *probing) learn(err error) {
	if err != nil && (aai.KindOf(err) != aai.Retry || outage(err)) {
		p.good.Store(false)
	}
}
