package probe

import (
	"context"
	"math/rand/v2"
	"time"

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

func (k key) clusterNamespace() clusterNamespace {
	return clusterNamespace{k.Cluster, k.scope.Namespace}
}

// target is a Service that is probed for a scope.
type target struct {
	// uid, address and spec do not change. With others, there is another target.
	uid, address string
	spec         probe.Spec

	// The lock of the Prober guards the following fields. due is the time of the next probe, and reserved is true once that time
	// is a slot in the pace of the target's namespace.
	due      time.Time
	reserved bool
	history  probe.History
	// lastOutcome is the outcome of the last probe, and duration how long it took; both are zero before the first.
	lastOutcome probe.Outcome
	duration    time.Duration
}

// work probes targets when they are due, until the queue shuts down.
func (p *Prober) work(ctx context.Context) {
	for {
		k, stopped := p.queue.Get()
		if stopped {
			return
		}
		t, wait := p.nextTarget(k)
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
		p.goroutines.Go(func() {
			defer func() {
				<-p.inFlight
				p.queue.Done(k) // Only now, so that a target has one probe at a time.
			}()
			p.probe(ctx, k, t)
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
	if !t.reserved && !t.due.After(now) {
		t.due, t.reserved = p.pace(k.clusterNamespace()).Slot(now), true
	}
	if t.due.After(now) {
		return nil, t.due.Sub(now)
	}
	t.due, t.reserved = probe.Next(now, t.spec.Interval, rand.Float64()), false //nolint:gosec // The time of a probe is no secret.
	if s, known := p.Clusters.State(k.Cluster); !known || !s.Answers() {
		return nil, t.due.Sub(now) // The cluster is unreachable, which the scope reports.
	}
	return t, 0
}

// pace returns the pace of a namespace of a cluster.
func (p *Prober) pace(cn clusterNamespace) *probe.Pace {
	if p.paces[cn] == nil {
		p.paces[cn] = &probe.Pace{}
	}
	return p.paces[cn]
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
