package scope

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/healthscope"
)

// kstatusOf returns the status of a scope that kstatus computes. Flux and other tools use kstatus to wait.
func kstatusOf(t *testing.T, scope *corev1alpha2.HealthScope) status.Status {
	t.Helper()
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(scope)
	if err != nil {
		t.Fatal(err)
	}
	object["apiVersion"], object["kind"] = corev1alpha2.GroupVersion.String(), "HealthScope"
	result, err := status.Compute(&unstructured.Unstructured{Object: object})
	if err != nil {
		t.Fatal(err)
	}
	return result.Status
}

// defaultStatus returns the status that an API server gives a new scope.
func defaultStatus(t *testing.T) corev1alpha2.HealthScopeStatus {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "config", "crd", "core.oam.dev_healthscopes.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(data, &crd); err != nil {
		t.Fatal(err)
	}
	var s corev1alpha2.HealthScopeStatus
	if given := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"].Default; given != nil {
		if err := json.Unmarshal(given.Raw, &s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func TestKstatusOfScope(t *testing.T) {
	t.Parallel()
	spec := corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(deploymentRef("web"))}
	judged := func(state healthscope.State) func(*testing.T) *corev1alpha2.HealthScope {
		return func(*testing.T) *corev1alpha2.HealthScope {
			scope := scopeOf(spec)
			scope.Status = statusIn(withDeployments(deployment("web", state, 1, 3)), scope, noon)
			return scope
		}
	}
	for name, c := range map[string]struct {
		scope func(*testing.T) *corev1alpha2.HealthScope
		want  status.Status
	}{
		"new": {func(t *testing.T) *corev1alpha2.HealthScope {
			t.Helper()
			scope := scopeOf(spec)
			scope.Status = defaultStatus(t)
			return scope
		}, status.InProgressStatus},
		"healthy": {judged(healthscope.Ready), status.CurrentStatus},
		"pending": {judged(healthscope.Pending), status.InProgressStatus},
		"unknown": {judged(healthscope.Unknown), status.InProgressStatus},
		"failed":  {judged(healthscope.Failed), status.FailedStatus},
		"changed": {func(t *testing.T) *corev1alpha2.HealthScope {
			scope := judged(healthscope.Ready)(t)
			scope.Generation++
			return scope
		}, status.InProgressStatus},
		"mended": {func(t *testing.T) *corev1alpha2.HealthScope {
			scope := judged(healthscope.Failed)(t)
			scope.Status = statusIn(withDeployments(deployment("web", healthscope.Ready, 3, 3)), scope, noon)
			return scope
		}, status.CurrentStatus},
		"deleted": {func(t *testing.T) *corev1alpha2.HealthScope {
			scope := judged(healthscope.Ready)(t)
			scope.DeletionTimestamp = &metav1.Time{Time: noon}
			return scope
		}, status.TerminatingStatus},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := kstatusOf(t, c.scope(t)); got != c.want {
				t.Errorf("kstatus says %s, want %s", got, c.want)
			}
		})
	}
}
