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
	// podsInterval is the time between two diagnoses of a workload whose own state does not change. If a diagnosis fails,
	// the previous one is used for podsTTL.
	podsInterval = 30 * time.Second
	podsTTL      = 5 * time.Minute
	// podsWorkloadsPerReconcile is the number of workloads that one reconcile diagnoses, podsPause is the time until the next
	// reconcile diagnoses more, and maxPodDiagnoses bounds the cached diagnoses.
	podsWorkloadsPerReconcile = 10
	podsPause                 = time.Second
	maxPodDiagnoses           = 10_000
)

// podDiagnosisCache caches the diagnoses of workloads that scopes refer to directly. All scopes share it.
type podDiagnosisCache struct {
	// judge diagnoses a workload by its pods.
	judge func(ctx context.Context, of healthscope.Key, policy healthscope.Policy, now time.Time) (fleet.PodDiagnosis, error)
	// known holds a podDiagnosis for each workloadState.
	known *lru.Cache
}

// podDiagnosis is the last diagnosis of a workload, with the times of the last attempt and of the last success.
type podDiagnosis struct {
	fleet.PodDiagnosis

	lastTried, lastAnswered time.Time
}

// workloadState is a workload in a state. In another state, the diagnosis may be another one.
type workloadState struct {
	key    healthscope.Key
	uid    string // A workload that is created again has other pods.
	state  healthscope.State
	reason healthscope.Reason
	// nothingWorks is Result.NothingWorks of the workload.
	nothingWorks bool
}

// diagnose adds the diagnoses of the workloads that a scope refers to and that are not ready: the cached ones, and as many
// new ones as time allows, beginning with the workload that was diagnosed longest ago. If a diagnosis fails, the previous one
// counts, because the workload itself has not changed since.
//
// It makes a workload Failed if nothing of it works and one of its pods has failed, as Judge does for workloads in bundles.
func (c *podDiagnosisCache) diagnose(ctx context.Context, g *gathered, policy healthscope.Policy, now time.Time) {
	workloads := unreadyWorkloads(g.findings)
	if len(workloads) == 0 {
		return
	}
	known := make(map[workloadState]podDiagnosis, len(workloads))
	for _, w := range workloads {
		cached, _ := c.known.Get(w)
		known[w], _ = cached.(podDiagnosis)
	}
	slices.SortStableFunc(workloads, func(a, b workloadState) int { return known[a].lastTried.Compare(known[b].lastTried) })
	ctx, cancel := context.WithTimeout(ctx, podsTimeout)
	defer cancel()
	g.pods, g.nextPods = map[healthscope.Key]fleet.PodDiagnosis{}, now.Add(podsInterval)
	for i, w := range workloads {
		d := known[w]
		switch isDue := now.Sub(d.lastTried) >= podsInterval; {
		case isDue && i < podsWorkloadsPerReconcile && ctx.Err() == nil:
			d.lastTried = now
			if pods, err := c.judge(ctx, w.key, policy, now); err != nil {
				log.FromContext(ctx).V(1).Info("Cannot look at the pods of a workload", "workload", w.key, "cause", err.Error())
			} else {
				d.PodDiagnosis, d.lastAnswered = pods, now
			}
			c.known.Add(w, d)
		case isDue && ctx.Err() == nil:
			g.nextPods = now.Add(podsPause)
		}
		if now.Sub(d.lastAnswered) < podsTTL {
			g.pods[w.key] = d.PodDiagnosis
		}
	}
	for _, f := range g.findings {
		for i := range f.results {
			r := &f.results[i]
			if d := g.pods[r.Key]; d.Reason != "" && r.NothingWorks() {
				r.State, r.Reason, r.Message = healthscope.Failed, d.Reason, d.Message
			}
		}
	}
}

// unreadyWorkloads returns the workloads that are referred to, exist, and are not ready, each once and sorted.
func unreadyWorkloads(findings []*finding) []workloadState {
	var workloads []workloadState
	for _, f := range findings {
		for _, r := range f.results {
			if (r.State == healthscope.Pending || r.State == healthscope.Failed) && fleet.HasPods(schema.GroupKind{Group: r.Group, Kind: r.Kind}) {
				workloads = append(workloads, workloadState{r.Key, r.UID, r.State, r.Reason, r.NothingWorks()})
			}
		}
	}
	slices.SortFunc(workloads, func(a, b workloadState) int { return a.key.Compare(b.key) })
	return slices.Compact(workloads)
}

// causeOf returns the cause of a workload. The hint that the right to read pods is missing is added to the message of a failed workload only.
func causeOf(m *healthscope.Member, cause string) string {
	switch {
	case m.Healthy() || cause == fleet.PodsHint && m.State != healthscope.Failed:
		return ""
	case cause == fleet.PodsHint && m.Message != "":
		return shorten(fmt.Sprintf("%s (%s)", m.Message, cause))
	}
	return cause
}
