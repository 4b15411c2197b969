package chart

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/e2e/suite"
)

// start starts an API server without controllers, and installs the CRDs of other projects that the chart uses.
func start(t *testing.T) (*controlplane.ControlPlane, client.Client) {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	plane, err := controlplane.Start(t.Context(), controlplane.Options{Name: "chart"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := plane.InstallManifests(t.Context(), "testdata/foreign.yaml"); err != nil {
		t.Fatal(err)
	}
	api, err := client.New(plane.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return plane, api
}

func TestOnAnAPIServer(t *testing.T) {
	suite.NeedsControlPlane(t)
	plane, api := start(t)
	t.Run("every object is taken", func(t *testing.T) { everyObjectIsTaken(t, api) })
	t.Run("pods are restricted", func(t *testing.T) { podsAreRestricted(t, api) })
	t.Run("a HealthScope before its CRD", func(t *testing.T) { aHealthScopeBeforeItsCRD(t, plane) })
	t.Run("a CRD of somebody else", func(t *testing.T) { aCRDOfSomebodyElse(t, plane, api) })
	t.Run("an upgrade of the CRDs", func(t *testing.T) { anUpgradeOfTheCRDs(t, plane, api) })
	t.Run("install and upgrade", func(t *testing.T) { lifecycle(t, plane, api) })
	t.Run("a HealthScope after its CRD", func(t *testing.T) { aHealthScopeAfterItsCRD(t, plane, api) })
	t.Run("a monitor of another release", func(t *testing.T) { aMonitorOfAnotherRelease(t, plane, api) })
	t.Run("roles for users", func(t *testing.T) { rolesForUsers(t, api) })
	t.Run("rights of the metrics reader", func(t *testing.T) { rightsOfMetricsReader(t, api) })
}

// makeNamespace creates a namespace with labels.
func makeNamespace(t *testing.T, api client.Client, name string, labels map[string]string) {
	t.Helper()
	if err := api.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}); err != nil {
		t.Fatal(err)
	}
}

// everyObjectIsTaken applies the objects of every installation as a dry run. A server-side apply rejects fields that the kind does not have.
func everyObjectIsTaken(t *testing.T, api client.Client) {
	for _, name := range []string{"dry", "members"} {
		makeNamespace(t, api, name, nil)
	}
	for title, values := range installations {
		objects, err := helm.RenderIn(t.Context(), "dry", values, `config: {fleet: {namespace: members}}`)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, o := range objects {
			if name := names([]*unstructured.Unstructured{o})[0]; seen[name] {
				t.Errorf("%s: there are two of %s", title, name)
			} else {
				seen[name] = true
			}
			if err := api.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o), client.DryRunAll, client.FieldOwner("test"), client.ForceOwnership); err != nil {
				t.Errorf("%s: %s %q: %v", title, o.GetKind(), o.GetName(), err)
			}
		}
	}
}

// podsAreRestricted checks with the API server's admission that pods meet the Pod Security Standard "restricted".
func podsAreRestricted(t *testing.T, api client.Client) {
	const home = "restricted"
	makeNamespace(t, api, home, map[string]string{"pod-security.kubernetes.io/enforce": "restricted"})
	pods := 0
	for title, values := range installations {
		objects, err := helm.RenderIn(t.Context(), home, values)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			if o.GetKind() != "Deployment" {
				continue
			}
			template := one[appsv1.Deployment](t, objects, "Deployment", o.GetName()).Spec.Template
			account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: template.Spec.ServiceAccountName, Namespace: home}}
			if err := api.Create(t.Context(), account); err != nil && !apierrors.IsAlreadyExists(err) {
				t.Fatal(err)
			}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: o.GetName(), Namespace: home, Labels: template.Labels}, Spec: template.Spec}
			if err := api.Create(t.Context(), pod, client.DryRunAll); err != nil {
				t.Errorf("%s: a pod of %s: %v", title, o.GetName(), err)
			}
			pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: o.GetName(), Namespace: home}, Spec: template.Spec}
			pod.Spec.SecurityContext = nil
			if err := api.Create(t.Context(), pod, client.DryRunAll); !apierrors.IsForbidden(err) {
				t.Fatalf("the API server lets in a pod that is not restricted: %v", err)
			}
			pods++
		}
	}
	if pods < len(installations) {
		t.Errorf("only %d pods were tried", pods)
	}
}

// must runs helm, and fails the test if helm fails.
func must(t *testing.T, plane *controlplane.ControlPlane, args ...string) string {
	t.Helper()
	out, err := helm.Run(t.Context(), plane.KubeconfigPath(), nil, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// aCRDOfSomebodyElse checks that Helm refuses a CRD of another owner, and that the three solutions on the chart's page work.
func aCRDOfSomebodyElse(t *testing.T, plane *controlplane.ControlPlane, api client.Client) {
	const crd = "healthscopes.core.oam.dev"
	file := root + "/config/crd/core.oam.dev_healthscopes.yaml"
	if err := plane.InstallManifests(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	install := []string{"install", "theirs", helm.Chart(), "--namespace", "theirs", "--create-namespace", "--set", "monitor.enabled=false", "--set", "config.fleet.namespace=theirs-members"}
	out, err := helm.Run(t.Context(), plane.KubeconfigPath(), nil, install...)
	if err == nil || !strings.Contains(out, crd) || !strings.Contains(out, "ownership") {
		t.Fatalf("helm says %v: %s", err, out)
	}
	must(t, plane, append(slices.Clone(install), "--set", "crds.healthScope=false")...)
	if out, err := plane.KubectlCommand(t.Context(), "apply", "--server-side", "--force-conflicts", "-f", file).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	must(t, plane, "uninstall", "theirs", "--namespace", "theirs")
	if !exists(t, api, "CustomResourceDefinition", "apiextensions.k8s.io/v1", "", crd) {
		t.Fatal("the CRD of somebody else is gone")
	}
	must(t, plane, append(slices.Clone(install), "--take-ownership")...)
	must(t, plane, "uninstall", "theirs", "--namespace", "theirs")
	for _, name := range []string{crd, "resourcebundlestates.k8splugin.io"} {
		if out, err := plane.KubectlCommand(t.Context(), "delete", "crd", name).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
}

// exists reports whether an object exists.
func exists(t *testing.T, api client.Client, kind, apiVersion, namespace, name string) bool {
	t.Helper()
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	err := api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, o)
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil
}

// lifecycle checks that all objects of the chart exist after an installation, and after an upgrade that is reverted. e2e/charted tests
// what an uninstallation leaves.
func lifecycle(t *testing.T, plane *controlplane.ControlPlane, api client.Client) {
	release := []string{Release, helm.Chart(), "--namespace", Namespace}
	notes := must(t, plane, append([]string{"install", "--create-namespace"}, release...)...)
	if !strings.Contains(notes, "kubectl port-forward -n healthscope-system deployment/healthscope-controller 8082") || !strings.Contains(notes, "Namespace healthscope-clusters") {
		t.Errorf("notes:\n%s", notes)
	}
	allPresent := func() {
		t.Helper()
		for _, o := range render(t) {
			if !exists(t, api, o.GetKind(), o.GetAPIVersion(), o.GetNamespace(), o.GetName()) {
				t.Errorf("%s %q is not there", o.GetKind(), o.GetName())
			}
		}
	}
	allPresent()
	must(t, plane, append([]string{"upgrade", "--set", "monitor.enabled=false,controller.replicas=2,config.clusterName=north"}, release...)...)
	if exists(t, api, "Deployment", "apps/v1", Namespace, "healthscope-monitor") || !exists(t, api, "PodDisruptionBudget", "policy/v1", Namespace, "healthscope-controller") {
		t.Error("an upgrade to a hub leaves the monitor, or makes no budget")
	}
	must(t, plane, append([]string{"upgrade", "--reset-values"}, release...)...)
	allPresent()
}

// withScope is a HealthScope among the objects of the chart.
const withScope = `extraObjects: [{apiVersion: core.oam.dev/v1alpha2, kind: HealthScope, metadata: {name: extra, namespace: default}, spec: {}}]`

// aHealthScopeBeforeItsCRD checks that Helm fails, as the chart's page says: the API server must serve a kind before Helm installs anything.
func aHealthScopeBeforeItsCRD(t *testing.T, plane *controlplane.ControlPlane) {
	out, err := helm.Run(t.Context(), plane.KubeconfigPath(), []string{withScope}, "install", Release, helm.Chart(), "--namespace", Namespace, "--create-namespace")
	if err == nil || !strings.Contains(out, `no matches for kind "HealthScope"`) {
		t.Errorf("helm says %v: %s", err, out)
	}
}

// aHealthScopeAfterItsCRD checks that an upgrade can add a HealthScope.
func aHealthScopeAfterItsCRD(t *testing.T, plane *controlplane.ControlPlane, api client.Client) {
	if out, err := helm.Run(t.Context(), plane.KubeconfigPath(), []string{withScope}, "upgrade", Release, helm.Chart(), "--namespace", Namespace); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if !exists(t, api, "HealthScope", "core.oam.dev/v1alpha2", "default", "extra") {
		t.Error("there is no such HealthScope")
	}
}
