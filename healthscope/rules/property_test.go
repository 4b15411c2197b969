package rules_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/rules"
)

// drawCount draws a number of replicas in one of the types that decoders return.
func drawCount(t *rapid.T, label string, n int64) any {
	switch rapid.IntRange(0, 2).Draw(t, label+" form") {
	case 0:
		return n
	case 1:
		return float64(n)
	default:
		return int(n)
	}
}

// TestSeedRuleForDeployments asserts that a Deployment is Ready exactly when replicas equals readyReplicas, unless it is being
// deleted, its status is older than its spec, nothing is observed, or fewer replicas are ready than desired.
func TestSeedRuleForDeployments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		replicas := rapid.Int64Range(0, 4).Draw(t, "replicas")
		ready := rapid.Int64Range(0, 4).Draw(t, "ready")
		status := map[string]any{
			"observedGeneration": int64(2),
			"replicas":           drawCount(t, "replicas", replicas), "readyReplicas": drawCount(t, "ready", ready),
			"updatedReplicas": rapid.Int64Range(0, 4).Draw(t, "updated"), "availableReplicas": rapid.Int64Range(0, 4).Draw(t, "available"),
			"conditions": []any{
				map[string]any{"type": "Available", "status": rapid.SampledFrom([]string{"True", "False", "Unknown", "", "Maybe"}).Draw(t, "Available")},
				map[string]any{"type": "Progressing", "status": rapid.SampledFrom([]string{"True", "False", "Unknown"}).Draw(t, "Progressing"),
					"reason": rapid.SampledFrom([]string{"NewReplicaSetAvailable", "ProgressDeadlineExceeded", "DeploymentPaused", ""}).Draw(t, "reason")},
				map[string]any{"type": "ReplicaFailure", "status": rapid.SampledFrom([]string{"True", "False"}).Draw(t, "ReplicaFailure")},
			},
		}
		metadata := map[string]any{"name": "shop"}
		deleted := rapid.Bool().Draw(t, "deleted")
		if deleted {
			metadata["deletionTimestamp"] = "2026-02-01T00:00:00Z"
		}
		stale := rapid.Bool().Draw(t, "stale")
		if stale {
			metadata["generation"] = int64(3)
		}
		object := map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "status": status}
		desired := replicas
		if rapid.Bool().Draw(t, "with spec") {
			spec := map[string]any{"paused": rapid.Bool().Draw(t, "paused")}
			if rapid.Bool().Draw(t, "with replicas") {
				desired = rapid.Int64Range(0, 4).Draw(t, "desired")
				spec["replicas"] = drawCount(t, "desired", desired)
			}
			object["spec"] = spec
		}

		got := rules.Evaluate(&unstructured.Unstructured{Object: object}, rules.Options{})

		want := replicas == ready && ready >= desired && !deleted && !stale
		if (got.State == healthscope.Ready) != want {
			t.Fatalf("%s (%s), want Ready to be %v", got.State, got.Message, want)
		}
		if got.Serving != (ready >= desired) {
			t.Fatalf("serving is %v with %d of %d ready", got.Serving, ready, desired)
		}
	})
}

// TestSeedRuleForPods asserts that a Pod with containerStatuses is Ready when all of them are ready, unless it is being deleted
// or its status is older than its spec. If not all are ready, it is Ready only if it has completed.
func TestSeedRuleForPods(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		readiness := rapid.SliceOfN(rapid.Bool(), 1, 4).Draw(t, "ready")
		allReady := true
		statuses := make([]any, len(readiness))
		for i, ready := range readiness {
			allReady = allReady && ready
			status := map[string]any{"name": "web", "ready": ready}
			if !ready && rapid.Bool().Draw(t, "waits") {
				status["state"] = map[string]any{"waiting": map[string]any{"reason": rapid.SampledFrom([]string{"CrashLoopBackOff", "ContainerCreating", "ErrImagePull", ""}).Draw(t, "waiting")}}
			}
			statuses[i] = status
		}
		phase := rapid.SampledFrom([]string{"", "Pending", "Running", "Succeeded", "Failed", "Unknown", "Hibernating"}).Draw(t, "phase")
		metadata := map[string]any{"name": "shop", "generation": int64(2)}
		deleted := rapid.Bool().Draw(t, "deleted")
		if deleted {
			metadata["deletionTimestamp"] = "2026-02-01T00:00:00Z"
		}
		status := map[string]any{
			"phase": phase, "containerStatuses": statuses,
			"reason":                rapid.SampledFrom([]string{"", "Evicted"}).Draw(t, "reason"),
			"initContainerStatuses": []any{map[string]any{"name": "setup", "ready": rapid.Bool().Draw(t, "setup")}},
			"conditions": []any{
				map[string]any{"type": "Ready", "status": rapid.SampledFrom([]string{"True", "False", "Unknown"}).Draw(t, "Ready")},
				map[string]any{"type": "DisruptionTarget", "status": rapid.SampledFrom([]string{"True", "False"}).Draw(t, "DisruptionTarget")},
			},
		}
		stale := rapid.Bool().Draw(t, "stale")
		if stale {
			status["observedGeneration"] = int64(1)
		}

		got := rules.Evaluate(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": status}}, rules.Options{})

		want := (allReady || phase == "Succeeded") && !deleted && !stale
		if (got.State == healthscope.Ready) != want {
			t.Fatalf("%s (%s), want Ready to be %v", got.State, got.Message, want)
		}
	})
}
