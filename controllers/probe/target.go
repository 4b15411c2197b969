package probe

import (
	"context"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/healthscope/healthscope/healthscope/probe"
)

// maxInFlight bounds the probes that are made at once. One namespace of one cluster has as many as the timeout has seconds,
// at most, so that targets that hang delay others only when they are in a hundred namespaces.
const maxInFlight = 1000

// key identifies what is probed: a Service for a scope.
type key struct {
	scope types.NamespacedName
	probe.Ref
}

func (k key) place() place { return place{k.Cluster, k.scope.Namespace} }

// target is a Service that is probed for a scope.
type target struct {
	// uid, address and spec do not change. With others, there is another target.
	uid, address string
	spec         probe.Spec

	// What follows is guarded by the lock of the Prober. due is when the next probe is to be made, and reserved is true once
	// that is also the turn of the target in its place.
	due      time.Time
	reserved bool
	history  probe.History
	// last is the outcome of the last probe, and took how long it took; zero before the first.
	last probe.Outcome
	took time.Duration
}

// work probes targets when they are due, until the queue shuts down.
func (p *Prober) work(ctx context.Context) {
	for {
		k, stopped := p.queue.Get()
		if stopped {
			return
		}
		t, wait := p.begin(k)
		if t == nil {
			if wait > 0 {
				p.queue.AddAfter(k, wait)
			}
			p.queue.Done(k)
			continue
		}
		select {
		case p.inFlight <- struct{}{}:
		case <-ctx.Done():
			p.queue.Done(k)
			return
		}
		p.running.Go(func() {
			defer func() {
				<-p.inFlight
				p.queue.Done(k) // Not before: a target has one probe at a time.
			}()
			p.probe(ctx, k, t)
		})
	}
}

// begin returns the target to probe now, or how long to wait before asking again; zero when it is not probed any more.
func (p *Prober) begin(k key) (*target, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t, now := p.targets[k.scope][k.Ref], p.Clock.Now()
	if t == nil {
		return nil, 0
	}
	if !t.reserved && !t.due.After(now) {
		t.due, t.reserved = p.pace(k.place()).Slot(now), true
	}
	if t.due.After(now) {
		return nil, t.due.Sub(now)
	}
	t.due, t.reserved = probe.Next(now, t.spec.Interval, rand.Float64()), false //nolint:gosec // It is no secret when it is probed.
	if s, known := p.Clusters.State(k.Cluster); !known || !s.Answers() {
		return nil, t.due.Sub(now) // The cluster is known to be away, and the scope says so.
	}
	return t, 0
}

// pace returns the pace of a place.
func (p *Prober) pace(at place) *probe.Pace {
	if p.paces[at] == nil {
		p.paces[at] = &probe.Pace{}
	}
	return p.paces[at]
}

// probe probes a target, and has it probed again when it is due.
func (p *Prober) probe(ctx context.Context, k key, t *target) {
	started := p.Clock.Now()
	outcome := p.ask(ctx, k, t)
	if ctx.Err() != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.targets[k.scope][k.Ref] != t {
		return // If another one has taken its place, that has been enqueued.
	}
	now := p.Clock.Now()
	before := t.history.Finding()
	t.history.Add(outcome, t.spec.Thresholds, now)
	t.last, t.took = outcome, now.Sub(started)
	if t.history.Finding() != before {
		p.notify(k.scope)
	}
	p.queue.AddAfter(k, t.due.Sub(now))
}
