package rules_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/healthscope/healthscope/healthscope/rules"
)

// A Deployment is Pending while fewer replicas are ready than desired.
func ExampleEvaluate() {
	deployment := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": "sink", "namespace": "default", "generation": int64(1)},
		"spec":     map[string]any{"replicas": int64(2)},
		"status":   map[string]any{"observedGeneration": int64(1), "replicas": int64(2), "readyReplicas": int64(1)},
	}}
	result := rules.Evaluate(deployment, rules.Options{})
	fmt.Println(result.State, result.Reason, result.Message)
	// Output: Pending ReplicasNotReady 1 of 2 replicas are ready
}
