package sync

import (
	"context"
	"errors"
	gosync "sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/client"
)

// prober checks whether A&AI accepts requests of this client, before any other request: once, and again after an outage and after a refusal of
// the client. A probe costs less than the request that happens to be first, and its error describes the cause better.
type prober struct {
	client *client.Client
	// sem is held by the pass that probes. Other passes wait for the result.
	sem      *semaphore.Weighted
	verified atomic.Bool
	// everVerified is true once a probe has succeeded. It belongs to the pass that holds sem.
	everVerified bool
}

func newProber(c *client.Client) *prober { return &prober{client: c, sem: semaphore.NewWeighted(1)} }

// check returns why A&AI does not accept requests of this client; nil when it does, as far as is known.
func (p *prober) check(ctx context.Context) error {
	if p.verified.Load() {
		return nil
	}
	if err := p.sem.Acquire(ctx, 1); err != nil {
		return &aai.Error{Op: aai.OpProbe, Kind: aai.Retry, NotSent: true, Message: "another probe is under way", Err: err}
	}
	defer p.sem.Release(1)
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

// probe sends a probe. After a pause without a response it sends another one in parallel, and the first response counts: the first request may
// be lost although A&AI is available again.
func (p *prober) probe(ctx context.Context) error {
	var probes gosync.WaitGroup
	defer probes.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan error, 1)
	send := func(first bool) {
		err := p.client.Probe(ctx)
		if !first && aai.NotSent(err) {
			return
		}
		select {
		case results <- err:
		default: // One has come already.
		}
	}
	probes.Go(func() { send(true) })
	for {
		select {
		case err := <-results:
			return err
		case <-time.After(client.MaxPause):
			probes.Go(func() { send(false) })
		}
	}
}

// report invalidates the last probe if the error that ended a pass is an outage, or not of kind Retry.
func (p *prober) report(err error) {
	if err != nil && (aai.KindOf(err) != aai.Retry || isOutage(err)) {
		p.verified.Store(false)
	}
}
