package rights

import (
	"context"
	"maps"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/oam"
)

// workloadsOfOAM are the kinds of OAM's own workloads, by their apiVersions.
var workloadsOfOAM = map[string]string{"core.oam.dev/v1alpha2": "ContainerizedWorkload", "standard.oam.dev/v1alpha1": "PodSpecWorkload"}

// defineOAM creates the CRDs of OAM's own workloads and of KubeVela's Applications. It deletes them at the end of the spec.
func defineOAM(ctx context.Context) {
	GinkgoHelper()
	kinds := maps.Clone(workloadsOfOAM)
	kinds["core.oam.dev/v1beta1"] = "Application"
	for apiVersion, kind := range kinds {
		group, version, _ := strings.Cut(apiVersion, "/")
		crd := definition(group, version, kind, strings.ToLower(kind)+"s")
		if kind == "Application" {
			versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
			Expect(err).NotTo(HaveOccurred())
			Expect(unstructured.SetNestedMap(versions[0].(map[string]any), map[string]any{}, "subresources", "status")).To(Succeed()) //nolint:forcetypeassert // It is ours.
			Expect(unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions")).To(Succeed())
		}
		Expect(k8s.Create(ctx, crd)).To(Succeed())
		DeferCleanup(func(ctx context.Context) {
			Expect(k8s.Delete(ctx, crd)).To(Succeed())
			Eventually(func() error { return k8s.Get(ctx, client.ObjectKeyFromObject(crd), crd) }).Should(
				WithTransform(apierrors.IsNotFound, BeTrue()), "another spec makes it again")
		})
	}
}

// deployOAM creates a workload of each kind of OAM, whose status refers to Deployment and Service web, an Application that
// refers to these workloads, and a scope "oam" that refers to the workloads and the Application.
func (a application) deployOAM(ctx context.Context) {
	GinkgoHelper()
	var refs []corev1alpha2.WorkloadReference
	var applied []any
	for apiVersion, kind := range workloadsOfOAM {
		w := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": apiVersion, "kind": kind,
			"status": map[string]any{"resources": []any{
				map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
				map[string]any{"apiVersion": "v1", "kind": "Service", "name": "web"},
			}},
		}}
		w.SetNamespace(string(a))
		w.SetName("web")
		w.SetLabels(map[string]string{"workload.oam.dev/type": "webservice"})
		createOfOAM(ctx, w)
		refs = append(refs, workload(apiVersion, kind, "web"))
		applied = append(applied, map[string]any{"apiVersion": apiVersion, "kind": kind, "namespace": string(a), "name": "web", "creator": "workflow"})
	}
	a.deployVela(ctx, applied...)
	refs = append(refs, workload("core.oam.dev/v1beta1", "Application", "web"))
	Expect(k8s.Create(ctx, a.scope("oam", refs...))).To(Succeed())
}

// deployVela creates an Application "web" of KubeVela whose workflow has finished and has applied the given objects.
func (a application) deployVela(ctx context.Context, applied ...any) {
	GinkgoHelper()
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "core.oam.dev/v1beta1", "kind": "Application"}}
	u.SetNamespace(string(a))
	u.SetName("web")
	createOfOAM(ctx, u)
	u.Object["status"] = map[string]any{
		"status": "running", "workflow": map[string]any{"finished": true}, "appliedResources": applied, "services": []any{map[string]any{"name": "web", "healthy": false}},
	}
	Expect(k8s.Status().Update(ctx, u)).To(Succeed())
}

var _ = Describe("The rights of the controller with ApplicationConfigurations and health in Applications", func() {
	It("are those that it uses", func(ctx context.Context) {
		defineOAM(ctx)
		crd := filepath.Join(root, "config", "integrations", "oam", "applicationconfigurations.yaml")
		kubectl(ctx, "apply", "-f", crd)
		DeferCleanup(func(ctx SpecContext) { kubectl(ctx, "delete", "-f", crd) })
		options := []string{"applicationconfigurations", "applicationhealth", "labelservices"}
		roles := make([]string, len(options))
		for i, option := range options {
			roles[i] = controller + "-" + option
		}
		Expect(of(granted(ctx), roles...)).To(BeEmpty(), "they are not applied by default")
		for _, option := range options {
			dir := filepath.Join(root, "config", "rbac", "oam", option)
			kubectl(ctx, "apply", "-k", dir)
			DeferCleanup(func(ctx SpecContext) { kubectl(ctx, "delete", "-k", dir) })
		}
		since := time.Now()
		hs := start(ctx, listing, "oam: {applicationConfigurations: true, labelServices: true, writeApplicationHealth: true}\n")
		for _, namespace := range []application{"oam-a", "oam-b"} {
			namespace.joins(ctx)
		}
		grants := granted(ctx)
		Eventually(func() []string { return Compare(audit(since).Uses, of(grants, roles...)) }).Should(BeEmpty())
		Expect(hs.Stop()).To(Succeed())
		Expect(audit(since).Refused).To(BeEmpty())
	}, SpecTimeout(3*time.Minute))
})

// joins creates an application whose component an ApplicationConfiguration puts into a scope. It waits until the scope is
// healthy and the Service has the scope's label.
func (a application) joins(ctx context.Context) {
	GinkgoHelper()
	Expect(k8s.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: string(a)}})).To(Succeed())
	for _, o := range append(a.workloads()[:1], a.others()[0], a.scope("shared")) {
		Expect(k8s.Create(ctx, o)).To(Succeed())
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "core.oam.dev/v1alpha2", "kind": "ApplicationConfiguration",
		"spec": map[string]any{"components": []any{map[string]any{"componentName": "web", "scopes": []any{
			map[string]any{"scopeRef": map[string]any{"apiVersion": "core.oam.dev/v1alpha2", "kind": "HealthScope", "name": "shared"}},
		}}}},
	}}
	u.SetNamespace(string(a))
	u.SetName("first")
	Expect(k8s.Create(ctx, u)).To(Succeed())
	a.is(ctx, "shared", corev1alpha2.Healthy, "1/1")
	a.reportsToVela(ctx)
	Eventually(func(g Gomega) {
		service := &corev1.Service{}
		g.Expect(k8s.Get(ctx, client.ObjectKey{Namespace: string(a), Name: "web"}, service)).To(Succeed())
		g.Expect(service.Labels).To(HaveKeyWithValue(corev1alpha2.LabelScopePrefix+"shared", "true"))
	}).Should(Succeed())
}

// reportsToVela creates an Application of the workload and a scope for it, and waits until the status of the Application has the
// health from the scope.
func (a application) reportsToVela(ctx context.Context) {
	GinkgoHelper()
	web := a.workloads()[0]
	patch := []byte(`{"metadata":{"labels":{"workload.oam.dev/type":"webservice","app.oam.dev/component":"web"}}}`)
	Expect(k8s.Patch(ctx, web, client.RawPatch(types.MergePatchType, patch))).To(Succeed())
	a.deployVela(ctx, map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": string(a), "name": web.GetName(), "creator": "workflow"})
	scope := a.scope("vela")
	scope.Spec.AppReferences = []corev1alpha2.AppReference{{AppName: "web"}}
	Expect(k8s.Create(ctx, scope)).To(Succeed())
	Eventually(func(g Gomega) {
		u := oam.NewApplication()
		g.Expect(k8s.Get(ctx, client.ObjectKey{Namespace: string(a), Name: "web"}, u)).To(Succeed())
		services, _, err := unstructured.NestedSlice(u.Object, "status", "services")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(services).To(ConsistOf(And(HaveKeyWithValue("healthy", true), HaveKey("scopes"))))
	}).Should(Succeed())
}

// createOfOAM creates an object of a kind of OAM. It retries, because the API server serves a CRD a moment after its creation.
func createOfOAM(ctx context.Context, o *unstructured.Unstructured) {
	GinkgoHelper()
	Eventually(func() error { return client.IgnoreAlreadyExists(k8s.Create(ctx, o)) }).Should(Succeed())
}
