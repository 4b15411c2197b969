package probe

import (
	"context"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"github.com/healthscope/healthscope/healthscope/probe"
)

// maxInFlight bounds the number of concurrent probes. One namespace of one cluster has at most as many as the timeout has
// seconds, so that hanging targets delay others only when they are in a hundred namespaces.
const maxInFlight = 1000

// key identifies what is probed: a Service for a scope.
type key struct {
	scope types.NamespacedName
	probe.Ref
}

// target is a Service that is probed for a scope.
type target struct {
	// uid, address and spec do not change: with others, there is another target. The lock of the Prober guards the other fields.
	uid, address string
	spec         probe.Spec

	// due is the time of the next probe, and reserved is true once that time is a slot in the pace of the target's namespace.
	due      time.Time
	reserved bool
	history  probe.History
	// lastOutcome is the outcome of the last probe, and duration how long it took; both are zero before the first.
	lastOutcome probe.Outcome
	duration    time.Duration
}

// work probes targets when they are due, until the queue shuts down.
func (p *Prober) work(ctx context.Context) {
	var probes errgroup.Group
	probes.SetLimit(maxInFlight)
	defer func() { _ = probes.Wait() }()
	for {
		k, stopped := p.queue.Get()
		if stopped {
			return
		}
		probes.Go(func() error {
			defer p.queue.Done(k) // Only now, so that a target has one probe at a time.
			switch t, wait := p.nextTarget(k); {
			case t != nil:
				p.probe(ctx, k, t)
			case wait > 0:
				p.queue.AddAfter(k, wait)
			}
			return nil
		})
	}
}

// nextTarget returns the target to probe now, or how long to wait before the next call; zero when the target no longer exists.
func (p *Prober) nextTarget(k key) (*target, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t, now := p.targets[k.scope][k.Ref], p.Clock.Now()
	if t == nil {
		return nil, 0
	}
	if cn := (clusterNamespace{k.Cluster, k.scope.Namespace}); !t.reserved && !t.due.After(now) {
		if p.paces[cn] == nil {
			p.paces[cn] = &probe.Pace{}
		}
		t.due, t.reserved = p.paces[cn].Slot(now), true
	}
	if t.due.After(now) {
		return nil, t.due.Sub(now)
	}
	t.due, t.reserved = probe.Next(now, t.spec.Interval, rand.Float64()), false //nolint:gosec // The time of a probe is no secret.
	if s, known := p.Clusters.State(k.Cluster); !known || !s.Answers() {
		t.lastOutcome = probe.Unanswered()
		return nil, t.due.Sub(now) // The cluster is unreachable, which the scope reports.
	}
	return t, 0
}

// probe probes a target, and enqueues it for the next probe.
func (p *Prober) probe(ctx context.Context, k key, t *target) {
	started := p.Clock.Now()
	outcome := p.attempt(ctx, k, t)
	if ctx.Err() != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.targets[k.scope][k.Ref] != t {
		return // If another target has replaced it, that one is in the queue.
	}
	now := p.Clock.Now()
	before := t.history.Finding()
	t.history.Add(outcome, t.spec.Thresholds, now)
	t.lastOutcome, t.duration = outcome, now.Sub(started)
	if t.history.Finding() != before {
		p.notify(k.scope)
	}
	p.queue.AddAfter(k, t.due.Sub(now))
}
