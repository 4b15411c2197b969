package scope

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

const (
	// podsTimeout is the deadline for looking at pods in one reconcile.
	podsTimeout = 3 * time.Second
	// podsInterval is how often the pods of a workload whose own state does not change are looked at again. Without another answer,
	// the last is used for podsLife.
	podsInterval = 30 * time.Second
	podsLife     = 5 * time.Minute
	// podsAtOnce is at how many workloads one reconcile looks, podsPause the pause before the next one looks at more, and
	// maxPodDiagnoses how many answers are cached.
	podsAtOnce      = 10
	podsPause       = time.Second
	maxPodDiagnoses = 10_000
)

// lookAtPods finds out what the pods of a workload say of it.
type lookAtPods func(ctx context.Context, of healthscope.Key, policy healthscope.Policy, now time.Time) (fleet.PodDiagnosis, error)

// podDiagnoses caches what the pods of the workloads that scopes refer to directly say of these. All scopes share it.
type podDiagnoses struct {
	look lookAtPods
	// known holds a podDiagnosis for each workloadState.
	known *lru.Cache
}

// seenPods is what the pods of a scope's workloads say, and when to look at them again; zero for never.
type seenPods struct {
	diagnoses map[healthscope.Key]fleet.PodDiagnosis
	next      time.Time
}

// podDiagnosis is what the pods of a workload say, when they were asked for last, and when there was an answer.
type podDiagnosis struct {
	fleet.PodDiagnosis

	asked, seen time.Time
}

// workloadState is a workload in a state. In another state, its pods may say something else.
type workloadState struct {
	key    healthscope.Key
	state  healthscope.State
	reason healthscope.Reason
	// nothingWorks is what its pods are asked about.
	nothingWorks bool
}

func newPodDiagnoses(look lookAtPods) *podDiagnoses {
	return &podDiagnoses{look: look, known: lru.New(maxPodDiagnoses)}
}

// find returns what the pods say of the workloads that a scope refers to and that are not ready: what is cached, and as much
// more as time allows, beginning with the workload that was looked at longest ago. Without an answer, what they said last
// counts: the workload itself has not changed since.
func (c *podDiagnoses) find(ctx context.Context, findings []finding, policy healthscope.Policy, now time.Time) seenPods {
	workloads := unreadyWorkloads(findings)
	if len(workloads) == 0 {
		return seenPods{}
	}
	known := make(map[workloadState]podDiagnosis, len(workloads))
	for _, w := range workloads {
		cached, _ := c.known.Get(w)
		known[w], _ = cached.(podDiagnosis)
	}
	slices.SortStableFunc(workloads, func(a, b workloadState) int { return known[a].asked.Compare(known[b].asked) })
	ctx, cancel := context.WithTimeout(ctx, podsTimeout)
	defer cancel()
	seen := seenPods{map[healthscope.Key]fleet.PodDiagnosis{}, now.Add(podsInterval)}
	for i, w := range workloads {
		v := known[w]
		switch isDue := now.Sub(v.asked) >= podsInterval; {
		case isDue && i < podsAtOnce && ctx.Err() == nil:
			v = c.ask(ctx, w, v, policy, now)
		case isDue && ctx.Err() == nil:
			seen.next = now.Add(podsPause)
		}
		if now.Sub(v.seen) < podsLife {
			seen.diagnoses[w.key] = v.PodDiagnosis
		}
	}
	return seen
}

// ask looks at the pods of a workload, and caches what they say, or that there was no answer.
func (c *podDiagnoses) ask(ctx context.Context, w workloadState, v podDiagnosis, policy healthscope.Policy, now time.Time) podDiagnosis {
	v.asked = now
	pods, err := c.look(ctx, w.key, policy, now)
	if err == nil {
		v.PodDiagnosis, v.seen = pods, now
	} else {
		log.FromContext(ctx).V(1).Info("Cannot look at the pods of a workload", "workload", w.key, "cause", err.Error())
	}
	c.known.Add(w, v)
	return v
}

// applyPods makes workloads Failed of which nothing works and a pod has failed, as Judge does for those in bundles.
func (g gathered) applyPods() {
	for _, f := range g.findings {
		for i := range f.results {
			r := &f.results[i]
			if v := g.pods.diagnoses[r.Key]; v.Reason != "" && r.NothingWorks() {
				r.State, r.Reason, r.Message = healthscope.Failed, v.Reason, v.Message
			}
		}
	}
}

// unreadyWorkloads returns the workloads that are referred to, exist, and are not ready, each once and sorted.
func unreadyWorkloads(findings []finding) []workloadState {
	var workloads []workloadState
	for _, f := range findings {
		for _, r := range f.results {
			if (r.State == healthscope.Pending || r.State == healthscope.Failed) && fleet.HasPods(schema.GroupKind{Group: r.Group, Kind: r.Kind}) {
				workloads = append(workloads, workloadState{r.Key, r.State, r.Reason, r.NothingWorks()})
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
