package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/healthscope/healthscope/e2e/installation"
)

// changesPerSecondOfSoak is the maximum number of changes that a soak makes per second.
const changesPerSecondOfSoak = 25

// soak changes objects for a time while faults occur. It returns an error when a process has grown, when the logs contain errors
// that no fault explains, or when a result is wrong at the end.
func soak(ctx context.Context, o options, stdout, stderr io.Writer) (err error) {
	p, err := openPlane(ctx, o, stderr)
	defer func() { err = errors.Join(err, p.close()) }()
	if err != nil {
		return err
	}
	s := &soaking{plane: p, changes: map[string]int{}}
	s.random = rand.New(rand.NewPCG(o.seed, o.seed)) //nolint:gosec // Nothing here is secret.
	if err := s.run(ctx); err != nil {
		if ctx.Err() == nil {
			_, unexplained := s.explainLogs()
			err = errors.Join(err, unexplained)
		}
		return err
	}
	return s.judge(stdout)
}

// soaking is the state of a soak in progress.
type soaking struct {
	*plane
	// random is seeded, so that two runs make the same changes.
	random *rand.Rand
	// apps and scopes are those that exist, as this program has created them.
	apps   []*soakApp
	scopes []*soakScope
	// serial is the last number of an application or scope. Each number is used once, so that no name is used twice.
	serial   int
	changes  map[string]int
	replicas []*replica
	samples  []sample
	incidents
}

// run keeps the replicas running while it changes objects, and stops them when everything is right.
func (s *soaking) run(ctx context.Context) error {
	for _, program := range soakedPrograms() {
		for n := range 2 {
			r, err := s.hs.Replica(ctx, program, n+1)
			if err != nil {
				return err
			}
			s.replicas = append(s.replicas, &replica{Replica: r, program: program, orders: make(chan order)})
		}
	}
	keeping, end := context.WithCancel(ctx)
	defer end()
	group, soaking := errgroup.WithContext(ctx)
	for _, r := range s.replicas {
		group.Go(func() error { return r.keep(keeping) })
	}
	if err := s.work(soaking); err != nil {
		end()
		return errors.Join(err, group.Wait())
	}
	return s.note(faultEnd, "", func() error {
		end()
		return group.Wait()
	})
}

// work fills the control plane, changes objects while faults occur, and checks the result. The replicas run meanwhile.
func (s *soaking) work(ctx context.Context) error {
	if err := s.note(faultBegin, "", func() error { return s.fill(ctx) }); err != nil {
		return err
	}
	c, err := s.inventoryClient()
	if err != nil {
		return err
	}
	for i := range 5 {
		if _, err := putDocument(ctx, c, fmt.Sprintf("others-%d", i), "others"); err != nil {
			return fmt.Errorf("cannot write a document of another owner: %w", err)
		}
	}
	before, err := s.others(ctx)
	if err != nil {
		return err
	}
	s.logf("changing objects for %s while much goes wrong (seed %d)", s.options.duration, s.options.seed)
	if err := s.suffer(ctx); err != nil {
		return err
	}
	s.logf("made %v; waiting for everything to be right", s.changes)
	if err := s.verify(ctx); err != nil {
		return err
	}
	after, err := s.others(ctx)
	if err != nil {
		return err
	}
	if diff := cmp.Diff(before, after); diff != "" {
		return fmt.Errorf("documents of another owner in A&AI have changed: -before +after:\n%s", diff)
	}
	violations, err := s.hs.Violations(ctx)
	if err == nil && len(violations) > 0 {
		err = fmt.Errorf("A&AI found fault with %d requests, first with %s", len(violations), violations[0])
	}
	return err
}

// others returns the documents of another owner in A&AI, with their versions.
func (s *soaking) others(ctx context.Context) ([]installation.Object, error) {
	objects, err := s.hs.Objects(ctx)
	return slices.DeleteFunc(objects, func(o installation.Object) bool { return o.Body["data-owner"] != "others" }), err
}

// fill creates the first applications and scopes, and waits for everything to be right.
func (s *soaking) fill(ctx context.Context) error {
	for range s.options.scaled(100, 8) {
		if err := errors.Join(s.addApp(ctx), s.addScope(ctx)); err != nil {
			return err
		}
	}
	return s.verify(ctx)
}

// suffer changes objects, causes faults and takes samples, all at the same time.
func (s *soaking) suffer(ctx context.Context) error {
	begin := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		for time.Since(begin) < s.options.duration {
			next := time.Now().Add(time.Second / changesPerSecondOfSoak)
			if err := s.change(ctx); err != nil {
				return err
			}
			if err := pause(ctx, time.Until(next)); err != nil {
				return err
			}
		}
		return nil
	})
	group.Go(func() error { return s.takeSamples(ctx, begin) })
	for _, t := range tracksOf(s.options.seed, s.options.duration) {
		group.Go(func() error { return s.follow(ctx, begin, t) })
	}
	return group.Wait()
}

// judge prints the results of a soak. It returns an error when a process has grown, or when errors in the logs have no
// explanation.
func (s *soaking) judge(stdout io.Writer) error {
	explained, unexplained := s.explainLogs()
	growths, grown := judgeGrowth(s.samples)
	counted := maps.Clone(s.changes)
	for _, i := range s.all() {
		counted[string(i.fault)]++
	}
	for _, r := range s.replicas {
		counted["starts of "+r.Name] = r.starts
	}
	for name, lines := range explained {
		counted["errors in the logs: "+name] = lines
	}
	fmt.Fprintf(stdout, "HealthScope, changed for %s with seed %d: every bundle, every scope and A&AI are right in the end\n\n", s.options.duration, s.options.seed)
	for _, what := range slices.Sorted(maps.Keys(counted)) {
		fmt.Fprintf(stdout, "- %s: %d\n", what, counted[what])
	}
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nprocess\tfigure\tfirst third\tlast third\tlimit")
	for _, g := range growths {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", g.process, g.figure, number(g.first), number(g.last), number(g.limit))
	}
	return errors.Join(table.Flush(), unexplained, grown)
}
