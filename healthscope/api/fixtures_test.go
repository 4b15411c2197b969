package api

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
)

// errNoScope is the error of a Scopes for a scope that does not exist.
var errNoScope = apierrors.NewNotFound(schema.GroupResource{Group: corev1alpha2.GroupVersion.Group, Resource: "healthscopes"}, "")

// memory is a Scopes with scopes that do not change.
type memory []corev1alpha2.HealthScope

func (m memory) Get(_ context.Context, namespace, name string) (*corev1alpha2.HealthScope, error) {
	for i := range m {
		if m[i].Namespace == namespace && m[i].Name == name {
			return &m[i], nil
		}
	}
	return nil, errNoScope
}

func (m memory) List(_ context.Context, namespace string) ([]corev1alpha2.HealthScope, error) {
	var found []corev1alpha2.HealthScope
	for _, s := range m {
		if namespace == "" || s.Namespace == namespace {
			found = append(found, s)
		}
	}
	return found, nil
}

func (memory) Subscribe(func(namespace, name string)) (cancel func()) { return func() {} }

// scopesFunc is a Scopes without scopes that calls a function for Get and List, and returns its error. The name is empty for List.
type scopesFunc func(ctx context.Context, namespace, name string) error

func (f scopesFunc) Get(ctx context.Context, namespace, name string) (*corev1alpha2.HealthScope, error) {
	if err := f(ctx, namespace, name); err != nil {
		return nil, err
	}
	return nil, errNoScope
}

func (f scopesFunc) List(ctx context.Context, namespace string) ([]corev1alpha2.HealthScope, error) {
	return nil, f(ctx, namespace, "")
}

func (f scopesFunc) Subscribe(func(namespace, name string)) (cancel func()) { return func() {} }

// noon is in a time zone other than UTC, so that the tests find times that are not converted to UTC.
var noon = metav1.NewTime(time.Date(2026, 5, 1, 12, 0, 0, 0, time.FixedZone("UTC+2", 2*60*60)))

func newTestScope(namespace, name string, generation int64, status corev1alpha2.HealthScopeStatus) corev1alpha2.HealthScope {
	return corev1alpha2.HealthScope{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Generation: generation}, Status: status}
}

// broken returns an unhealthy scope with a value in every field.
func broken() corev1alpha2.HealthScope {
	return newTestScope("default", "vfw", 3, corev1alpha2.HealthScopeStatus{
		Health:            corev1alpha2.Unhealthy,
		Summary:           corev1alpha2.MemberCounts{State: "Failed", Total: 7, Ready: 3, Pending: 1, Failed: 1, Unknown: 2},
		ResourcesReady:    "3/7",
		ClustersReachable: "1/2",
		Apps: []corev1alpha2.AppStatus{{Name: "sink", State: "Failed", Total: 7, Ready: 3, Clusters: []corev1alpha2.ClusterStatus{
			{Name: "provider+edge01", State: "Failed", Total: 5, Ready: 3},
			{Name: "provider+edge02", State: "Unknown", Total: 2, LastSeen: &noon},
		}}},
		Culprits: []corev1alpha2.Culprit{
			{Cluster: "provider+edge01", App: "sink", Group: "apps", Kind: "Deployment", Namespace: "default", Name: "fw0-sink", State: "Failed", Reason: "CrashLoopBackOff", Cause: "Pod fw0-sink-0: exit code 1 & <again>", Since: &noon},
			{Cluster: "provider+edge02", Kind: "Node", Name: "n1", State: "Unknown"},
		},
		FirstCulprit: "Deployment/fw0-sink in provider+edge01: CrashLoopBackOff",
		Inventory:    &corev1alpha2.InventoryStatus{Synced: 5, Pending: 1, Failed: 1},
		Conditions: []metav1.Condition{
			{Type: "Ready", Status: metav1.ConditionFalse, Reason: "MembersFailed", Message: "4 of 7 resources are not healthy", LastTransitionTime: noon, ObservedGeneration: 3},
			{Type: "ClustersReachable", Status: metav1.ConditionFalse, Reason: "ClusterUnknown", Message: "1 clusters are not known", LastTransitionTime: noon, ObservedGeneration: 3},
		},
		ObservedGeneration: 3,
		Truncated:          true,
	})
}

// wellScope returns a healthy scope. behind is the number of generations by which its status is outdated.
func wellScope(namespace, name string, behind int64) corev1alpha2.HealthScope {
	return newTestScope(namespace, name, 2+behind, corev1alpha2.HealthScopeStatus{
		Health:             corev1alpha2.Healthy,
		Summary:            corev1alpha2.MemberCounts{State: "Ready", Total: 1, Ready: 1},
		ResourcesReady:     "1/1",
		ClustersReachable:  "1/1",
		Conditions:         []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Healthy", Message: "1/1 resources are ready", LastTransitionTime: noon, ObservedGeneration: 2}},
		ObservedGeneration: 2,
	})
}

// illScope returns an unhealthy scope.
func illScope(namespace, name string) corev1alpha2.HealthScope {
	s := broken()
	s.Namespace, s.Name = namespace, name
	return s
}

// manyScopes returns unsorted scopes with each value of health. Those in the namespace telco have the label tier=core.
func manyScopes() memory {
	unseen := newTestScope("telco", "lost", 1, corev1alpha2.HealthScopeStatus{
		Health: corev1alpha2.UnknownHealth, Summary: corev1alpha2.MemberCounts{State: "Unknown", Total: 1, Unknown: 1}, ResourcesReady: "0/1", ClustersReachable: "0/1", ObservedGeneration: 1,
	})
	well := wellScope("telco", "web", 0)
	well.Labels, unseen.Labels = map[string]string{"tier": "core"}, map[string]string{"tier": "core"}
	return memory{well, unseen, broken(), newTestScope("default", "new", 1, corev1alpha2.HealthScopeStatus{}), wellScope("default", "edited", 1)}
}

// get sends a GET request to a handler.
func get(t *testing.T, h http.Handler, target string, header http.Header) *httptest.ResponseRecorder {
	t.Helper()
	return send(t.Context(), h, http.MethodGet, target, header, "")
}

// send sends a request to a handler.
func send(ctx context.Context, h http.Handler, method, target string, header http.Header, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, method, target, strings.NewReader(body))
	r.Host = "localhost:8083"
	maps.Copy(r.Header, header)
	return serve(h, r)
}

func serve(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// stopping returns the context of a request to a server that stops, so that streams end.
func stopping(ctx context.Context) context.Context {
	stop, cancel := context.WithCancel(ctx)
	cancel()
	return context.WithValue(ctx, drainKey{}, stop.Done())
}
