package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// makeScopes makes the scopes of the run.
func (b *bench) makeScopes(ctx context.Context) error {
	for i := range b.options.scaled(1000, 10) {
		b.scopes = append(b.scopes, scope{namespace: scopeNamespace(i), name: fmt.Sprintf("scope-%04d", i), deployments: 10})
	}
	begin := time.Now()
	if err := b.createScopes(ctx, b.scopes); err != nil {
		return err
	}
	b.logf("made %d scopes in %s", len(b.scopes), time.Since(begin).Round(time.Millisecond))
	return nil
}

func prepareScopes(ctx context.Context, b *bench) error { return b.makeScopes(ctx) }

func measureScopes(ctx context.Context, b *bench) ([]figure, error) {
	begin := time.Now()
	seen := b.plane.scopes.expect("all scopes to be healthy after the start of the controller", allHealthy(b.scopes))
	if err := b.hs.StartController(ctx); err != nil {
		return nil, err
	}
	at, err := seen(ctx)
	if err != nil {
		return nil, err
	}
	b.judged = true
	if err := b.plane.scopes.quiet(ctx, quietTime); err != nil {
		return nil, err
	}
	// Events may come later than what they tell of. They are waited for with a copy, so that the log's own reader still counts them.
	ahead := *b.audit
	return []figure{{Name: "seconds", Value: at.Sub(begin).Seconds(), Peer: "500", Target: new(20.0)}}, settled(ctx, &ahead)
}

func countScopes(b *bench, used result) []figure {
	return []figure{
		{Name: "writes", Value: float64(used.requests.writes(scopeStatus)), Target: new(float64(len(b.scopes)))},
		{Name: "Events", Value: float64(used.requests[request{Client: "healthscope-controller", Verb: "create", Resource: "events"}])},
		{Name: "peak MiB", Value: mebibytes(used.processes["controller"].peak), Peer: "192-213"},
	}
}

// ensureScopes makes sure that scopes are there and that the controller has judged them.
func ensureScopes(ctx context.Context, b *bench) error {
	if len(b.scopes) == 0 {
		if err := b.makeScopes(ctx); err != nil {
			return err
		}
	}
	if !b.judged {
		_, err := measureScopes(ctx, b)
		return err
	}
	return b.plane.scopes.quiet(ctx, quietTime)
}

func measureScopeFlip(ctx context.Context, b *bench) ([]figure, error) {
	down := map[int]bool{}
	flip := func(ctx context.Context, n int) (time.Duration, error) {
		s := b.scopes[n]
		ready, replicas := s.deployments-1, int32(2)
		if down[n] {
			ready, replicas = s.deployments, 3
		}
		seen := b.plane.scopes.expect("the scope of a workload", map[types.NamespacedName]check[*scopeView]{s.key(): counts(ready, s.deployments)})
		begin := time.Now()
		if err := b.scale(ctx, s.workload(n%s.deployments), replicas); err != nil {
			return 0, err
		}
		down[n] = !down[n]
		at, err := seen(ctx)
		return at.Sub(begin), err
	}
	took, floors, err := b.alternate(ctx, func(ctx context.Context, i int) (time.Duration, error) {
		return flip(ctx, i*7%len(b.scopes))
	}, b.floor.deployment, b.floor.scope)
	if err != nil {
		return nil, err
	}
	for n, is := range down {
		if !is {
			continue
		}
		if _, err := flip(ctx, n); err != nil {
			return nil, err
		}
	}
	_, err = b.plane.scopes.await(ctx, "all scopes to be healthy again", allHealthy(b.scopes))
	return latencies(took, floors, "241400", "477700", 3), err
}
