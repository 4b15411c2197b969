package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// soak churns for a time, and returns an error when memory has grown, or when not everything is right in the end.
func soak(ctx context.Context, o options, stdout, stderr io.Writer) (err error) {
	p, err := openPlane(ctx, o, stderr)
	defer func() { err = errors.Join(err, p.close()) }()
	if err != nil {
		return err
	}
	s := newSoaking(p)
	if err := s.run(ctx); err != nil {
		if ctx.Err() == nil {
			err = fmt.Errorf("%w\n%s", err, p.hs.LogTails())
		}
		return err
	}
	return s.judge(o, stdout)
}

// soaking is a soak under way.
type soaking struct {
	*plane
	// random is seeded, so that the changes of a run are those of the next.
	random *rand.Rand
	// apps and scopes are what there is, as this program has made it.
	apps   []*soakApp
	scopes []*soakScope
	// serial numbers applications and scopes: a new one never has an old one's name.
	serial  int
	changes map[string]int
	samples []sample
	// moments says when to kill what, and killed how often that was done, by process. It is random as well, but not the random of changes: both go on at a time.
	moments *rand.Rand
	killed  map[string]int
}

// soakApp is an application, with what its bundle has to say.
type soakApp struct {
	app
	crashed, absent map[int]bool
	// scope judges the application, and brings it to A&AI; nil while there is none.
	scope *scope
}

// soakScope is a scope over Deployments, with the number of those that are not ready.
type soakScope struct {
	scope
	down map[int]bool
}

func newSoaking(p *plane) *soaking {
	const seed = 20261120
	//nolint:gosec // Nothing here is secret.
	return &soaking{
		plane: p, random: rand.New(rand.NewPCG(seed, seed)), changes: map[string]int{},
		moments: rand.New(rand.NewPCG(seed, seed+1)), killed: map[string]int{},
	}
}

// run makes the first applications and scopes, churns, waits for everything to be right, and does the same while processes are killed.
func (s *soaking) run(ctx context.Context) error {
	if err := s.hs.StartMonitor(ctx); err != nil {
		return err
	}
	if err := s.hs.StartController(ctx); err != nil {
		return err
	}
	for range s.options.scaled(100, 8) {
		if err := s.addApp(ctx); err != nil {
			return err
		}
		if err := s.addScope(ctx); err != nil {
			return err
		}
	}
	if err := s.verify(ctx); err != nil {
		return err
	}
	s.logf("churning for %s, %v changes in a second at most", s.options.duration, s.options.rate)
	if err := s.churn(ctx); err != nil {
		return err
	}
	s.logf("made %v; waiting for everything to be right", s.changes)
	if err := s.verify(ctx); err != nil {
		return err
	}
	return s.kills(ctx)
}

// churn makes changes, one after the other, and takes samples.
func (s *soaking) churn(ctx context.Context) error {
	interval := s.options.duration / samplesOfSoak
	begin := time.Now()
	for next, sampled := begin, 0; time.Since(begin) < s.options.duration; {
		if err := s.change(ctx); err != nil {
			return err
		}
		if due := begin.Add(time.Duration(sampled) * interval); !time.Now().Before(due) {
			sampled++
			if err := s.takeSample(ctx, time.Since(begin)); err != nil {
				return err
			}
		}
		next = next.Add(time.Duration(float64(time.Second) / s.options.rate))
		if rest := time.Until(next); rest > 0 {
			if err := pause(ctx, rest); err != nil {
				return err
			}
		} else {
			next = time.Now() // What was missed is not made up for: the rate is a bound.
		}
	}
	return nil
}

// change makes one change, most often that of a pod.
func (s *soaking) change(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, waitLimit)
	defer cancel()
	kinds := []struct {
		name  string
		share int
		do    func(context.Context) error
	}{
		{"pods changed", 60, s.flipPod},
		{"workloads changed", 20, s.scaleWorkload},
		{"pods relabelled", 8, s.relabel},
		{"applications replaced", 4, s.replaceApp},
		{"scopes replaced", 4, s.replaceScope},
		{"scopes of applications made or deleted", 4, s.toggleScope},
	}
	n := s.random.IntN(100)
	for _, kind := range kinds {
		if n -= kind.share; n < 0 {
			s.changes[kind.name]++
			return kind.do(ctx)
		}
	}
	return nil
}

// verify waits until every bundle and scope, and A&AI, is as it should be, and nothing is left of what has been deleted.
func (s *soaking) verify(ctx context.Context) error {
	bundles := map[types.NamespacedName]check[*bundleView]{}
	scopes := map[types.NamespacedName]check[*scopeView]{}
	for _, a := range s.apps {
		bundles[a.key()] = a.complete(a.expectation())
		if a.scope != nil {
			scopes[a.scope.key()] = counts(a.counting(), a.counting())
		}
	}
	for _, one := range s.scopes {
		scopes[one.key()] = counts(one.deployments-len(one.down), one.deployments)
	}
	if _, err := s.bundles.await(ctx, "every bundle to be right", bundles); err != nil {
		return err
	}
	if _, err := s.plane.scopes.await(ctx, "every scope to be right", scopes); err != nil {
		return err
	}
	for what, numbers := range map[string][2]int{
		"bundles": {len(s.bundles.snapshot()), len(bundles)},
		"scopes":  {len(s.plane.scopes.snapshot()), len(scopes)},
	} {
		if numbers[0] != numbers[1] {
			return fmt.Errorf("there are %d %s, not %d", numbers[0], what, numbers[1])
		}
	}
	return s.awaitInventory(ctx)
}
