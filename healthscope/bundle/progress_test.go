package bundle_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/bundle"
)

// statefulSet returns a StatefulSet with 20 replicas, some of which are ready.
func statefulSet(ready int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "StatefulSet",
		"metadata": map[string]any{"name": "db", "namespace": "store", "uid": "u", "generation": int64(1)},
		"spec":     map[string]any{"replicas": int64(20)},
		"status":   map[string]any{"observedGeneration": int64(1), "replicas": ready + 1, "readyReplicas": ready, "updatedReplicas": ready + 1},
	}}
}

// TestProgressSurvivesARestart asserts that the bundle holds the time of the last progress. A program that sees the object for
// the first time then judges it correctly.
func TestProgressSurvivesARestart(t *testing.T) {
	begin := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	var status k8spluginv1alpha1.ResourceBundleStateStatus
	judged := func(now time.Time) healthscope.State {
		read := bundle.Read("edge", &k8spluginv1alpha1.ResourceBundleState{Status: status})
		return healthscope.Judge(read.Results, healthscope.DefaultPolicy(), now).Members[0].State
	}
	now := begin
	for ready := range int64(19) {
		now = begin.Add(time.Duration(ready) * 40 * time.Second)
		status = bundle.Build([]*unstructured.Unstructured{statefulSet(ready)}, &status, now, bundle.Options{})
		if got := judged(now); got != healthscope.Pending {
			t.Fatalf("with %d of 20 ready after %s it is %s, want Pending", ready, now.Sub(begin), got)
		}
	}
	again := bundle.Build([]*unstructured.Unstructured{statefulSet(18)}, &status, now.Add(time.Minute), bundle.Options{})
	if !bundle.Equal(&status, &again) {
		t.Error("the bundle changes although nothing got further")
	}
	back := bundle.Build([]*unstructured.Unstructured{statefulSet(17)}, &status, now.Add(5*time.Minute), bundle.Options{})
	status = bundle.Build([]*unstructured.Unstructured{statefulSet(18)}, &back, now.Add(9*time.Minute), bundle.Options{})
	if got := judged(now.Add(601 * time.Second)); got != healthscope.Failed {
		t.Errorf("601 s after the last progress it is %s, want Failed", got)
	}
}
