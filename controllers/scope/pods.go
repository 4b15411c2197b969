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

// diagnoseFunc diagnoses a workload by its pods.
type diagnoseFunc func(ctx context.Context, of healthscope.Key, policy healthscope.Policy, now time.Time) (fleet.PodDiagnosis, error)

// podDiagnosisCache caches the diagnoses of workloads that scopes refer to directly. All scopes share it.
type podDiagnosisCache struct {
	diagnose diagnoseFunc
	// known holds a podDiagnosis for each workloadState.
	known *lru.Cache
}

// workloadDiagnoses holds the diagnoses of a scope's workloads, and when to diagnose them again; zero means never.
type workloadDiagnoses struct {
	diagnoses map[healthscope.Key]fleet.PodDiagnosis
	next      time.Time
}

// podDiagnosis is the last diagnosis of a workload, with the times of the last attempt and of the last success.
type podDiagnosis struct {
	fleet.PodDiagnosis

	lastTried, lastAnswered time.Time
}

// workloadState is a workload in a state. In another state, the diagnosis may be another one.
type workloadState struct {
	key    healthscope.Key
	state  healthscope.State
	reason healthscope.Reason
	// nothingWorks is Result.NothingWorks of the workload.
	nothingWorks bool
}

func newPodDiagnosisCache(diagnose diagnoseFunc) *podDiagnosisCache {
	return &podDiagnosisCache{diagnose: diagnose, known: lru.New(maxPodDiagnoses)}
}

// diagnoses returns the diagnoses of the workloads that a scope refers to and that are not ready: the cached ones, and as many
// new ones as time allows, beginning with the workload that was diagnosed longest ago. If a diagnosis fails, the previous one
// counts, because the workload itself has not changed since.
func (c *podDiagnosisCache) diagnoses(ctx context.Context, findings []*finding, policy healthscope.Policy, now time.Time) workloadDiagnoses {
	workloads := unreadyWorkloads(findings)
	if len(workloads) == 0 {
		return workloadDiagnoses{}
	}
	known := make(map[workloadState]podDiagnosis, len(workloads))
	for _, w := range workloads {
		cached, _ := c.known.Get(w)
		known[w], _ = cached.(podDiagnosis)
	}
	slices.SortStableFunc(workloads, func(a, b workloadState) int { return known[a].lastTried.Compare(known[b].lastTried) })
	ctx, cancel := context.WithTimeout(ctx, podsTimeout)
	defer cancel()
	seen := workloadDiagnoses{map[healthscope.Key]fleet.PodDiagnosis{}, now.Add(podsInterval)}
	for i, w := range workloads {
		v := known[w]
		switch isDue := now.Sub(v.lastTried) >= podsInterval; {
		case isDue && i < podsWorkloadsPerReconcile && ctx.Err() == nil:
			v = c.refresh(ctx, w, v, policy, now)
		case isDue && ctx.Err() == nil:
			seen.next = now.Add(podsPause)
		}
		if now.Sub(v.lastAnswered) < podsTTL {
			seen.diagnoses[w.key] = v.PodDiagnosis
		}
	}
	return seen
}

// refresh diagnoses a workload, and caches the diagnosis or the failed attempt.
func (c *podDiagnosisCache) refresh(ctx context.Context, w workloadState, v podDiagnosis, policy healthscope.Policy, now time.Time) podDiagnosis {
	v.lastTried = now
	pods, err := c.diagnose(ctx, w.key, policy, now)
	if err == nil {
		v.PodDiagnosis, v.lastAnswered = pods, now
	} else {
		log.FromContext(ctx).V(1).Info("Cannot look at the pods of a workload", "workload", w.key, "cause", err.Error())
	}
	c.known.Add(w, v)
	return v
}

// applyPods makes a workload Failed if nothing of it works and one of its pods has failed, as Judge does for workloads in bundles.
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
func unreadyWorkloads(findings []*finding) []workloadState {
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
