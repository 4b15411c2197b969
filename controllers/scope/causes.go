package scope

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

const (
	// causeTimeout is for how long one visit of a scope looks at pods.
	causeTimeout = 3 * time.Second
	// causeInterval is how often the pods of a workload that stays as it is are looked at again, and causeLife how long an
	// answer is used. It is the longer one, so that visits get round to all workloads.
	causeInterval = 30 * time.Second
	causeLife     = 40 * time.Second
	// causesAtOnce is how many workloads one visit looks at.
	causesAtOnce = 10
)

// lookAtPods finds out what is behind the state of a workload.
type lookAtPods func(ctx context.Context, of healthscope.Key, policy healthscope.Policy, now time.Time) (string, error)

// causes remembers for a short time what was behind the states of workloads that scopes refer to directly. All scopes share it.
type causes struct {
	look lookAtPods

	mu    sync.Mutex
	known map[trouble]causeAt
}

// trouble is a workload in a state. In another one, its cause may be another.
type trouble struct {
	key    healthscope.Key
	state  healthscope.State
	reason healthscope.Reason
}

type causeAt struct {
	cause string
	at    time.Time
}

func newCauses(look lookAtPods) *causes {
	return &causes{look: look, known: map[trouble]causeAt{}}
}

// find returns the causes of what ails the references of a scope, as far as they are known or time suffices.
func (c *causes) find(ctx context.Context, findings []finding, policy healthscope.Policy, now time.Time) map[healthscope.Key]string {
	ailing := ailingWorkloads(findings)
	if len(ailing) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, causeTimeout)
	defer cancel()
	found := make(map[healthscope.Key]string, len(ailing))
	asked := 0
	for _, t := range ailing {
		known, ok := c.recall(t, now)
		if !ok && asked < causesAtOnce && ctx.Err() == nil {
			asked++
			cause, err := c.look(ctx, t.key, policy, now)
			if err != nil { // It is tried again with the next look. The state of the workload is known all the same.
				log.FromContext(ctx).V(1).Info("Cannot look at the pods of a workload", "workload", t.key, "cause", err.Error())
			}
			known = cause
			c.keep(t, cause, now)
		}
		found[t.key] = known
	}
	return found
}

// ailingWorkloads returns the workloads that are referred to, are there, and are not ready, each once and sorted.
func ailingWorkloads(findings []finding) []trouble {
	var ailing []trouble
	for _, f := range findings {
		for _, r := range f.results {
			if (r.State == healthscope.Pending || r.State == healthscope.Failed) && fleet.HasPods(schema.GroupKind{Group: r.Group, Kind: r.Kind}) {
				ailing = append(ailing, trouble{r.Key, r.State, r.Reason})
			}
		}
	}
	slices.SortFunc(ailing, func(a, b trouble) int { return a.key.Compare(b.key) })
	return slices.Compact(ailing)
}

func (c *causes) recall(t trouble, now time.Time) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.known[t]
	return known.cause, ok && now.Sub(known.at) < causeLife
}

// keep remembers a cause, and forgets those that are old.
func (c *causes) keep(t trouble, cause string, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for other, known := range c.known {
		if now.Sub(known.at) >= causeLife {
			delete(c.known, other)
		}
	}
	c.known[t] = causeAt{cause, now}
}

// behind returns the cause of a workload. That pods may not be looked at is said beside what the workload says, once it has failed.
func behind(m *healthscope.Member, cause string) string {
	switch {
	case m.Healthy() || cause == fleet.PodsHint && m.State != healthscope.Failed:
		return ""
	case cause == fleet.PodsHint && m.Message != "":
		return shorten(fmt.Sprintf("%s (%s)", m.Message, cause))
	}
	return cause
}
