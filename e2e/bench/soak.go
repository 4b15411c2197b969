package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

// soak churns for a time in which much goes wrong, and returns an error when a process has grown, when there are errors that
// nothing explains, or when not everything is right in the end.
func soak(ctx context.Context, o options, stdout, stderr io.Writer) (err error) {
	klog.SetLogger(logr.Discard()) // The client tells of answers that an API server did not finish, which are asked for again.
	p, err := openPlane(ctx, o, stderr)
	defer func() { err = errors.Join(err, p.close()) }()
	if err != nil {
		return err
	}
	s := newSoaking(p)
	if err := s.run(ctx); err != nil {
		if logs, unread := s.readLogs(); ctx.Err() == nil {
			err = errors.Join(err, unread, logs.err())
		}
		return err
	}
	return s.judge(stdout)
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
	seats   []*seat
	samples []sample
	// churned is how long changes were made.
	churned time.Duration
	gate    *gate
	chronicle
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
	s := &soaking{plane: p, changes: map[string]int{}, gate: newGate()}
	//nolint:gosec // Nothing here is secret.
	s.random = rand.New(rand.NewPCG(p.options.seed, p.options.seed))
	p.client = stubborn{p.client, s.gate}
	return s
}

// run keeps the replicas running while it makes applications and scopes and has them soaked, and ends them gracefully when all is right.
func (s *soaking) run(ctx context.Context) error {
	if err := s.takeSeats(ctx); err != nil {
		return err
	}
	keeping, end := context.WithCancel(ctx)
	defer end()
	group, soaking := errgroup.WithContext(ctx)
	for _, one := range s.seats {
		group.Go(func() error { return one.keep(keeping) })
	}
	if err := s.work(soaking); err != nil {
		end()
		return errors.Join(err, group.Wait())
	}
	return s.note(troubleEnd, "", func() error {
		end()
		return group.Wait()
	})
}

// work is what is done while the replicas run.
func (s *soaking) work(ctx context.Context) error {
	if err := s.note(troubleBegin, "", func() error { return s.fill(ctx) }); err != nil {
		return err
	}
	before, err := s.plantOthers(ctx)
	if err != nil {
		return err
	}
	s.logf("churning for %s, %v changes in a second at most, while much goes wrong (seed %d)", s.options.duration, s.options.rate, s.options.seed)
	if err := s.suffer(ctx); err != nil {
		return err
	}
	s.logf("made %v; waiting for everything to be right", s.changes)
	if err := s.verify(ctx); err != nil {
		return err
	}
	return s.verifyOthers(ctx, before)
}

// fill makes the first applications and scopes, and waits for everything to be right.
func (s *soaking) fill(ctx context.Context) error {
	for range s.options.scaled(100, 8) {
		if err := s.addApp(ctx); err != nil {
			return err
		}
		if err := s.addScope(ctx); err != nil {
			return err
		}
	}
	return s.verify(ctx)
}

// suffer churns while the troubles of the soak are made, and takes samples.
func (s *soaking) suffer(ctx context.Context) error {
	t := episodesOf(s.options.seed, s.options.duration)
	begin := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.churn(ctx, begin) })
	group.Go(func() error { return s.takeSamples(ctx, begin) })
	group.Go(func() error { return s.follow(ctx, begin, t.inventory, s.troubleInventory) })
	group.Go(func() error { return s.follow(ctx, begin, t.apiServer, s.troubleAPIServer) })
	for program, track := range t.leaders {
		group.Go(func() error { return s.follow(ctx, begin, track, s.troubleLeader(program)) })
	}
	return group.Wait()
}

// churn makes changes, one after the other.
func (s *soaking) churn(ctx context.Context, begin time.Time) error {
	for next := begin; time.Since(begin) < s.options.duration; {
		if err := s.change(ctx); err != nil {
			return err
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
	s.churned = time.Since(begin)
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
