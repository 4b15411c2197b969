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

// prober finds out, before anything else is asked of A&AI, whether it takes us at all. It does so once, and again after
// A&AI was down or has refused us as such: a probe costs less than the request that happened to come first, and says better
// what is wrong.
type prober struct {
	client *client.Client
	// sem is held by the pass that probes; other passes wait for the result.
	sem      chan struct{}
	verified atomic.Bool
	// everVerified is true once a probe has succeeded. It belongs to the pass that holds sem.
	everVerified bool
}

func newProber(c *client.Client) *prober { return &prober{client: c, sem: make(chan struct{}, 1)} }

// check returns why A&AI takes no requests of ours; nil when it does, as far as is known.
func (p *prober) check(ctx context.Context) error {
	if p.verified.Load() {
		return nil
	}
	select {
	case p.sem <- struct{}{}:
		defer func() { <-p.sem }()
	case <-ctx.Done():
		return &aai.Error{Op: aai.OpProbe, Kind: aai.Retry, NotSent: true, Message: "another probe is under way", Err: ctx.Err()}
	}
	if p.verified.Load() {
		return nil
	}
	err := p.probe(ctx)
	p.everVerified = p.everVerified || err == nil
	p.verified.Store(err == nil)
	if e, ok := errors.AsType[*aai.Error](err); ok && p.everVerified && e.Status/100 == 2 { // Something answers in place of A&AI, for now.
		e.Kind, e.Problem = aai.Retry, ""
	}
	return err
}

// probe asks A&AI. A request without an answer may be lost while A&AI is back already, so after a pause another one is sent
// beside it, and the first answer counts.
func (p *prober) probe(ctx context.Context) error {
	var probes gosync.WaitGroup
	defer probes.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan error, 1)
	send := func(counts func(error) bool) {
		if err := p.client.Probe(ctx); counts(err) {
			select {
			case results <- err:
			default: // One has come already.
			}
		}
	}
	probes.Go(func() { send(func(error) bool { return true }) })
	for {
		select {
		case err := <-results:
			return err
		case <-time.After(client.MaxPause):
			probes.Go(func() { send(func(err error) bool { return !notSent(err) }) })
		}
	}
}

// report invalidates the last probe if the error that ended a pass is an outage, or not of kind Retry.
func (p *prober) report(err error) {
	if err != nil && (aai.KindOf(err) != aai.Retry || isOutage(err)) {
		p.verified.Store(false)
	}
}
