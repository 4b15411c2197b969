package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/e2e/installation"
)

const (
	// aliveAtMost is how long a process lives, from when it is ready until it is killed; deadAtMost is how long it stays dead.
	aliveAtMost = 1500 * time.Millisecond
	deadAtMost  = 500 * time.Millisecond
	// othersOwner is the data-owner of the documents that HealthScope must not touch.
	othersOwner = "others"
)

// victim is a process that is killed, with its Lease.
type victim struct {
	name, lease string
	kill        func() error
	start       func(context.Context) error
}

// kills churns on while monitor and controller are killed without warning, at random moments, and started again. In the end
// everything has to be right, and what others keep in A&AI as it was.
func (s *soaking) kills(ctx context.Context) error {
	before, err := s.plantOthers(ctx)
	if err != nil {
		return err
	}
	s.logf("killing monitor or controller %d times", s.options.kills)
	churning, stop := context.WithCancel(ctx)
	churned := make(chan error, 1)
	go func() { churned <- s.churnUntil(churning) }()
	for i := range s.options.kills {
		if err = s.killOne(ctx); err != nil {
			err = fmt.Errorf("kill %d of %d: %w", i+1, s.options.kills, err)
			break
		}
	}
	stop()
	if err := errors.Join(err, <-churned); err != nil {
		return err
	}
	if err := s.verify(ctx); err != nil {
		return err
	}
	after, err := s.others(ctx)
	if err != nil {
		return err
	}
	if diff := cmp.Diff(before, after); diff != "" {
		return fmt.Errorf("documents of others in A&AI have changed: -before +after:\n%s", diff)
	}
	violations, err := s.hs.Violations(ctx)
	if err == nil && len(violations) > 0 {
		err = fmt.Errorf("A&AI found fault with %d requests, first with %s", len(violations), violations[0])
	}
	return err
}

// churnUntil makes changes until its context ends, which is no error.
func (s *soaking) churnUntil(ctx context.Context) error {
	// Not the context of a change: one that is made in part would not be known of.
	whole := context.WithoutCancel(ctx)
	for {
		if err := s.change(whole); err != nil {
			return err
		}
		if err := pause(ctx, time.Duration(float64(time.Second)/s.options.rate)); err != nil {
			return nil //nolint:nilerr // It is time to end.
		}
	}
}

// killOne kills a process at a random moment, and starts it again.
func (s *soaking) killOne(ctx context.Context) error {
	victims := []victim{
		{"monitor", "healthscope-monitor", s.hs.KillMonitor, s.hs.StartMonitor},
		{"controller", "healthscope-controller", s.hs.KillController, s.hs.StartController},
	}
	// The controller has more to get wrong.
	v := victims[min(s.moments.IntN(3), 1)]
	if err := pause(ctx, time.Duration(s.moments.Int64N(int64(aliveAtMost)))); err != nil {
		return err
	}
	if err := v.kill(); err != nil {
		return err
	}
	s.killed[v.name]++
	if err := pause(ctx, time.Duration(s.moments.Int64N(int64(deadAtMost)))); err != nil {
		return err
	}
	if err := s.release(ctx, v.lease); err != nil {
		return err
	}
	return v.start(ctx)
}

// release ends the term of a Lease whose holder is dead for certain, so that its successor need not wait for that.
func (s *soaking) release(ctx context.Context, name string) error {
	lease := &coordinationv1.Lease{}
	lease.Namespace, lease.Name = installation.Namespace, name
	err := s.client.Patch(ctx, lease, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"holderIdentity":""}}`)))
	if client.IgnoreNotFound(err) != nil { // A process may have been killed before it had one.
		return fmt.Errorf("cannot release Lease %q: %w", name, err)
	}
	return nil
}

// plantOthers writes documents of others into A&AI, beside ours, and returns them.
func (s *soaking) plantOthers(ctx context.Context) ([]installation.Object, error) {
	c, err := s.inventoryClient()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	for i := range 5 {
		id := fmt.Sprintf("others-%d", i)
		err := c.PutK8sResource(ctx, aai.Key{Tenant: inventoryTenant, ID: id}, aai.Document{
			ID: id, Name: id, Version: "v1", Kind: "Service", Namespace: inventoryNamespace, Selflink: "http://others", DataOwner: othersOwner, DataSource: "local",
			Labels: []string{stateLabel + "=Failed"},
		})
		if err != nil {
			return nil, fmt.Errorf("cannot write a document of others: %w", err)
		}
	}
	return s.others(ctx)
}

// others returns the documents of others in A&AI, with their versions.
func (s *soaking) others(ctx context.Context) ([]installation.Object, error) {
	objects, err := s.hs.Objects(ctx)
	return slices.DeleteFunc(objects, func(o installation.Object) bool { return o.Body["data-owner"] != othersOwner }), err
}
