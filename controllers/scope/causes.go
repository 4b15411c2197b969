package scope

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

const (
	// causeTimeout is the deadline for looking at pods in one reconcile.
	causeTimeout = 3 * time.Second
	// causeInterval is how often the pods of a workload whose state does not change are looked at again, and causeLife how
	// long an answer is used. causeLife is longer, so that successive reconciles get to all workloads.
	causeInterval = 30 * time.Second
	causeLife     = 40 * time.Second
	// causesAtOnce is how many workloads one reconcile looks at, and maxCauses how many answers are cached.
	causesAtOnce = 10
	maxCauses    = 10_000
)

// lookAtPods finds the cause of the state of a workload in its pods.
type lookAtPods func(ctx context.Context, of healthscope.Key, policy healthscope.Policy, now time.Time) (string, error)

// causes caches the causes of the states of workloads that scopes refer to directly. All scopes share it.
type causes struct {
	look lookAtPods
	// known holds the causes by workloadState.
	known *cache.LRUExpireCache
}

// workloadState is a workload in a state. In another state, its cause may be another.
type workloadState struct {
	key    healthscope.Key
	state  healthscope.State
	reason healthscope.Reason
}

func newCauses(look lookAtPods, now cache.Clock) *causes {
	return &causes{look: look, known: cache.NewLRUExpireCacheWithClock(maxCauses, now)}
}

// find returns the causes of the workloads that a scope refers to and that are not ready: those that are cached, and as many more as time allows.
func (c *causes) find(ctx context.Context, findings []finding, policy healthscope.Policy, now time.Time) map[healthscope.Key]string {
	workloads := unreadyWorkloads(findings)
	if len(workloads) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, causeTimeout)
	defer cancel()
	found := make(map[healthscope.Key]string, len(workloads))
	asked := 0
	for _, w := range workloads {
		known, ok := c.known.Get(w)
		cause, _ := known.(string)
		if !ok && asked < causesAtOnce && ctx.Err() == nil {
			asked++
			var err error
			if cause, err = c.look(ctx, w.key, policy, now); err != nil { // The state of the workload is known all the same.
				log.FromContext(ctx).V(1).Info("Cannot look at the pods of a workload", "workload", w.key, "cause", err.Error())
			}
			c.known.Add(w, cause, causeLife)
		}
		found[w.key] = cause
	}
	return found
}

// unreadyWorkloads returns the workloads that are referred to, exist, and are not ready, each once and sorted.
func unreadyWorkloads(findings []finding) []workloadState {
	var workloads []workloadState
	for _, f := range findings {
		for _, r := range f.results {
			if (r.State == healthscope.Pending || r.State == healthscope.Failed) && fleet.HasPods(schema.GroupKind{Group: r.Group, Kind: r.Kind}) {
				workloads = append(workloads, workloadState{r.Key, r.State, r.Reason})
			}
		}
	}
	slices.SortFunc(workloads, func(a, b workloadState) int { return a.key.Compare(b.key) })
	return slices.Compact(workloads)
}

// causeOf returns the cause of a workload. That the right to read pods is missing is added to the message of a workload that has failed.
func causeOf(m *healthscope.Member, cause string) string {
	switch {
	case m.Healthy() || cause == fleet.PodsHint && m.State != healthscope.Failed:
		return ""
	case cause == fleet.PodsHint && m.Message != "":
		return shorten(fmt.Sprintf("%s (%s)", m.Message, cause))
	}
	return cause
}
