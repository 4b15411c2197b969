package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/healthscope/healthscope/aai/simulator"
	"github.com/healthscope/healthscope/e2e/installation"
)

// fault is a kind of fault during a soak.
type fault string

// The faults of the cluster.
const (
	faultAPIServer fault = "API server restarted"
	faultKill      fault = "leader killed"
	faultStop      fault = "leader stopped"
	faultLease     fault = "Lease taken away"
	faultBegin     fault = "all replicas started"
	faultEnd       fault = "all replicas stopped"
)

// The faults of A&AI.
const (
	faultErrors   fault = "A&AI answers 500"
	faultRestarts fault = "A&AI answers 503"
	faultLimits   fault = "A&AI answers 429"
	faultVersions fault = "A&AI answers 412"
	faultSlow     fault = "A&AI is slow"
	faultResets   fault = "A&AI resets connections"
	faultUnheard  fault = "A&AI resets connections after it has written"
	faultHangs    fault = "A&AI hangs"
)

// versionMismatch is the error of A&AI for a write with a resource-version that is not the current one, HTTP 412.
const versionMismatch = "AAI_6131"

// inventoryFaults are the rules for the simulated A&AI. Some affect only half of the requests, at random, so that passes fail in
// part.
var inventoryFaults = map[fault][]simulator.Fault{
	faultErrors:   {{Status: 500, Probability: 0.5}},
	faultRestarts: {{Status: 503}},
	faultLimits:   {{Status: 429, RetryAfter: "2"}},
	faultVersions: {
		{Operation: "**", Code: versionMismatch, Probability: 0.5},
		{Method: http.MethodPut, Code: versionMismatch, Probability: 0.5},
		{Method: http.MethodDelete, Code: versionMismatch, Probability: 0.5},
	},
	faultSlow:    {{Delay: 1500 * time.Millisecond}},
	faultResets:  {{Drop: simulator.DropBeforeCommit, Manner: simulator.MannerReset, Probability: 0.5}},
	faultUnheard: {{Drop: simulator.DropAfterCommit, Manner: simulator.MannerReset, Probability: 0.5}},
	faultHangs:   {{Drop: simulator.DropBeforeCommit, Manner: simulator.MannerHang}},
}

// track is a sequence of faults, one in each slot. Faults of different tracks occur at the same time.
type track struct {
	name string
	// whole is the time that the slots fill. slot is the length of a slot.
	whole, slot time.Duration
	faults      []fault
	random      *rand.Rand
}

// tracksOf returns the faults of a soak: the same for the same seed and duration. A&AI fails until a tenth of the time is left,
// and the API server is restarted in the first three quarters. Leaders change in the first half, but not for longer than ten
// minutes. The last leaders live for the rest, 50 minutes of an hour, which shows whether they grow.
func tracksOf(seed uint64, duration time.Duration) []track {
	tracks := []track{
		{"A&AI", duration * 9 / 10, max(12*time.Second, duration/60), []fault{
			faultErrors, faultRestarts, faultLimits, faultVersions, faultSlow, faultResets, faultUnheard, faultHangs,
		}, nil},
		{"API server", duration * 3 / 4, min(2*time.Minute, duration*3/4), []fault{faultAPIServer}, nil},
	}
	for _, program := range soakedPrograms() {
		tracks = append(tracks, track{program, min(duration/2, 10*time.Minute), 20 * time.Second, []fault{faultKill, faultStop, faultLease}, nil})
	}
	for i := range tracks {
		h := fnv.New64a()
		_, _ = h.Write([]byte(tracks[i].name))                    // It never fails.
		tracks[i].random = rand.New(rand.NewPCG(seed, h.Sum64())) //nolint:gosec // Nothing here is secret.
	}
	return tracks
}

// follow causes the faults of a track, each at a random moment of the first half of its slot. Every fault occurs once before one
// occurs again.
func (s *soaking) follow(ctx context.Context, begin time.Time, t track) error {
	var order []int
	for at := time.Duration(0); at+t.slot <= t.whole; at += t.slot {
		if len(order) == 0 {
			order = t.random.Perm(len(t.faults))
		}
		wait := time.Duration(t.random.Int64N(int64(t.slot / 2)))
		length := t.slot/10 + time.Duration(t.random.Int64N(int64(t.slot*7/30)))
		if err := pause(ctx, time.Until(begin.Add(at+wait))); err != nil {
			return err
		}
		if err := s.inflict(ctx, t.name, t.faults[order[0]], length); err != nil {
			return fmt.Errorf("%s, after %s: %w", t.faults[order[0]], time.Since(begin).Round(time.Second), err)
		}
		order = order[1:]
	}
	return nil
}

// inflict causes a fault. length is the length of faults that do not end by themselves.
func (s *soaking) inflict(ctx context.Context, where string, what fault, length time.Duration) error {
	if faults, ok := inventoryFaults[what]; ok {
		return s.note(what, "", func() error {
			if err := s.hs.AddFaults(ctx, faults...); err != nil {
				return err
			}
			return errors.Join(pause(ctx, length), s.hs.ClearFaults(context.WithoutCancel(ctx)))
		})
	}
	if what == faultAPIServer {
		return s.note(what, "", func() error { return errors.Join(s.cp.StopAPIServer(), s.cp.StartAPIServer(ctx)) })
	}
	leader, err := s.awaitLeader(ctx, where)
	if err != nil {
		return err
	}
	ctx, cancel := withLimit(ctx)
	defer cancel()
	return s.note(what, leader.Name, func() error {
		switch what {
		case faultKill:
			return leader.order(ctx, leader.Kill)
		case faultStop:
			return leader.order(ctx, leader.Stop)
		default:
			return s.takeLease(ctx, where)
		}
	})
}

// takeLease assigns the Lease of a program to a holder that does not renew it.
func (s *soaking) takeLease(ctx context.Context, program string) error {
	lease := &coordinationv1.Lease{}
	lease.Namespace, lease.Name = installation.Namespace, "healthscope-"+program
	now := time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")
	return s.patch(ctx, lease, map[string]any{"spec": map[string]any{"holderIdentity": "soak", "acquireTime": now, "renewTime": now}})
}

// incident is a fault that has occurred.
type incident struct {
	fault fault
	// replica is the replica with the fault; empty when the fault is not in a single replica.
	replica    string
	begin, end time.Time
}

// incidents records the faults with their times. It is safe for concurrent use.
type incidents struct {
	mu   sync.Mutex // guards list
	list []incident
}

// note causes a fault and records it with its begin and its end.
func (i *incidents) note(what fault, replica string, do func() error) error {
	begin := time.Now()
	err := do()
	i.mu.Lock()
	defer i.mu.Unlock()
	i.list = append(i.list, incident{what, replica, begin, time.Now()})
	return err
}

// all returns the incidents so far.
func (i *incidents) all() []incident {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.list)
}
