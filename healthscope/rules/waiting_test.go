package rules_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/rules"
)

func TestPodWithTerminalWaitingReasonIsFailed(t *testing.T) {
	for reason := range rules.TerminalWaitingReasons {
		pod := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "x", "namespace": "default"},
			"status": map[string]any{"phase": "Running", "containerStatuses": []any{
				map[string]any{"name": "c", "ready": false, "state": map[string]any{"waiting": map[string]any{"reason": reason}}},
			}},
		}}
		if r := rules.Evaluate(pod, rules.Options{}); r.State != healthscope.Failed || string(r.Reason) != reason {
			t.Errorf("a pod that waits for %s is %s, %s", reason, r.State, r.Reason)
		}
	}
}
