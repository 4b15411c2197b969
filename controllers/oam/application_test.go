package oam

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
)

// TestApplicationThatItsScopeDoesNotListKeepsItsHealth has a scope of so many Applications that its status lists only the worst.
func TestApplicationThatItsScopeDoesNotListKeepsItsHealth(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := corev1alpha2.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	application := NewApplication()
	application.SetNamespace("demo")
	application.SetName("healthy")
	ref := map[string]any{"apiVersion": "core.oam.dev/v1alpha2", "kind": "HealthScope", "namespace": "demo", "name": "all", "uid": "1"}
	application.Object["status"] = map[string]any{
		"status": "running", "workflow": map[string]any{"finished": true},
		"services":   []any{map[string]any{"name": "front", "healthy": true, "scopes": []any{ref}}},
		"conditions": []any{map[string]any{"type": "Healthy", "status": "True", "reason": "AllComponentsHealthy", "lastTransitionTime": "2026-01-01T00:00:00Z"}},
	}
	scope := &corev1alpha2.HealthScope{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "all", UID: "1"}}
	scope.Status.Truncated = true
	scope.Status.AppHealthConditions = []corev1alpha2.AppHealthCondition{{AppName: "worst"}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(application).WithObjects(application, scope).Build()
	r := &applicationReconciler{client: c, cached: c, recorder: events.NewFakeRecorder(1), writes: newWrites()}
	if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(application)}); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(application), application); err != nil {
		t.Fatal(err)
	}
	services, _, _ := unstructured.NestedSlice(application.Object, "status", "services")
	conditions, _, _ := unstructured.NestedSlice(application.Object, "status", "conditions")
	if entry, ok := services[0].(map[string]any); !ok || entry["scopes"] == nil || len(conditions) != 1 {
		t.Errorf("services are %v, conditions are %v", services, conditions)
	}
}
