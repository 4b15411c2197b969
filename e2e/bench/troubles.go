package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/healthscope/healthscope/e2e/installation"
)

// thief is who takes Leases away: nobody that runs.
const thief = "soak-thief"

// leaderWait is the time between two looks whether somebody leads.
const leaderWait = 250 * time.Millisecond

// incident is a trouble that has been.
type incident struct {
	Trouble trouble `json:"trouble"`
	// Replica is the replica that was hit; empty when none was, or all were.
	Replica string    `json:"replica,omitempty"`
	Begin   time.Time `json:"begin"`
	End     time.Time `json:"end"`
}

// chronicle is what has gone wrong when. It is safe for concurrent use.
type chronicle struct {
	mu        sync.Mutex // guards incidents
	incidents []incident
}

// note does something and remembers from when to when.
func (c *chronicle) note(what trouble, replica string, do func() error) error {
	begin := time.Now()
	err := do()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.incidents = append(c.incidents, incident{Trouble: what, Replica: replica, Begin: begin, End: time.Now()})
	return err
}

// all returns the incidents so far.
func (c *chronicle) all() []incident {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]incident(nil), c.incidents...)
}

// follow does the episodes of a track at their times, or as soon after as the one before is over. What time is not enough for is left out.
func (s *soaking) follow(ctx context.Context, begin time.Time, track []episode, do func(context.Context, episode) error) error {
	for _, e := range track {
		if err := pause(ctx, time.Until(begin.Add(e.at))); err != nil {
			return err
		}
		if err := do(ctx, e); err != nil {
			return fmt.Errorf("%s, after %s: %w", e.trouble, e.at.Round(time.Second), err)
		}
	}
	return nil
}

// troubleInventory lets A&AI fail for the length of an episode.
func (s *soaking) troubleInventory(ctx context.Context, e episode) error {
	return s.note(e.trouble, "", func() error {
		if err := s.hs.AddFaults(ctx, inventoryFaults[e.trouble]...); err != nil {
			return err
		}
		waited := pause(ctx, e.length)
		return errors.Join(waited, s.hs.ClearFaults(context.WithoutCancel(ctx)))
	})
}

// troubleAPIServer kills the API server and starts it again.
func (s *soaking) troubleAPIServer(ctx context.Context, e episode) error {
	return s.note(e.trouble, "", func() error {
		defer s.gate.shut()()
		if err := s.cp.StopAPIServer(); err != nil {
			return err
		}
		return s.cp.StartAPIServer(ctx)
	})
}

// troubleLeader ends the leadership of the replica of a program that leads, as soon as one does.
func (s *soaking) troubleLeader(program string) func(context.Context, episode) error {
	return func(ctx context.Context, e episode) error {
		one, err := s.awaitLeader(ctx, program)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeoutCause(ctx, waitLimit, fmt.Errorf("not done after %s", waitLimit))
		defer cancel()
		switch e.trouble {
		case troubleKill:
			return s.note(e.trouble, one.Name, func() error { return one.order(ctx, one.Kill) })
		case troubleStop:
			return s.note(e.trouble, one.Name, func() error { return one.order(ctx, one.Stop) })
		default:
			return s.note(e.trouble, one.Name, func() error { return s.takeLease(ctx, program) })
		}
	}
}

// awaitLeader waits until a replica of a program leads. Nothing announces it but the metrics.
func (s *soaking) awaitLeader(ctx context.Context, program string) (*seat, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, waitLimit, fmt.Errorf("not done after %s", waitLimit))
	defer cancel()
	for {
		one, err := s.leader(ctx, program)
		if err == nil {
			return one, nil
		}
		if waited := pause(ctx, leaderWait); waited != nil {
			return nil, errors.Join(err, waited)
		}
	}
}

// takeLease gives the Lease of a program to somebody who does not renew it.
func (s *soaking) takeLease(ctx context.Context, program string) error {
	lease := &coordinationv1.Lease{}
	lease.Namespace, lease.Name = installation.Namespace, "healthscope-"+program
	now := time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")
	patch := fmt.Appendf(nil, `{"spec":{"holderIdentity":%q,"acquireTime":%q,"renewTime":%q}}`, thief, now, now)
	if err := s.client.Patch(ctx, lease, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("cannot take Lease %q: %w", lease.Name, err)
	}
	return nil
}
