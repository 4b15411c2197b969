package monitor_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/controllers/monitor"
)

// newCRD returns a CRD of a namespaced kind with the given versions, of which the last one is stored.
func newCRD(group, kind, plural string, versions ...string) *unstructured.Unstructured {
	var served []any
	for i, version := range versions {
		served = append(served, map[string]any{
			"name": version, "served": true, "storage": i == len(versions)-1,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}},
		})
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiextensionsv1.SchemeGroupVersion.String(),
		"kind":       "CustomResourceDefinition",
		"metadata":   map[string]any{"name": plural + "." + group},
		"spec": map[string]any{
			"group": group, "scope": "Namespaced", "versions": served,
			"names": map[string]any{"kind": kind, "plural": plural},
		},
	}}
}

// install creates a CRD until the spec ends.
func install(ctx context.Context, crd *unstructured.Unstructured) {
	GinkgoHelper()
	create(ctx, crd)
	DeferCleanup(discard, crd)
}

// discard deletes an object that may already be deleted.
func discard(ctx SpecContext, object client.Object) {
	GinkgoHelper()
	Expect(client.IgnoreNotFound(api.Delete(ctx, object))).To(Succeed())
}

// changeVersion changes a version of a CRD.
func changeVersion(crd *unstructured.Unstructured, i int, change func(map[string]any)) {
	GinkgoHelper()
	versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	Expect(err).NotTo(HaveOccurred())
	version, ok := versions[i].(map[string]any)
	Expect(ok).To(BeTrue())
	change(version)
	Expect(unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions")).To(Succeed())
}

// uninstall deletes a CRD and waits until it is gone.
func uninstall(ctx context.Context, crd *unstructured.Unstructured) {
	GinkgoHelper()
	remove(ctx, crd)
	Eventually(func() bool {
		return apierrors.IsNotFound(api.Get(ctx, client.ObjectKeyFromObject(crd), crd.DeepCopy()))
	}).Should(BeTrue())
}

// uninstallBundleCRD removes the CRD of bundles, with all bundles, and waits until they are no longer served, which takes a
// moment more.
func uninstallBundleCRD(ctx context.Context) {
	GinkgoHelper()
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	crd.SetName("resourcebundlestates.k8splugin.io")
	uninstall(ctx, crd)
	Eventually(func() error { return api.List(ctx, &k8spluginv1alpha1.ResourceBundleStateList{}) }).ShouldNot(Succeed())
}

// createCustom creates an object of a kind with the label of the bundle 1-sink, as soon as the kind is served.
func createCustom(ctx context.Context, kind schema.GroupVersionKind, namespace, name string) {
	GinkgoHelper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	object.SetNamespace(namespace)
	object.SetName(name)
	object.SetLabels(newPod(namespace, "", "1-sink").Labels)
	Eventually(func() error { return api.Create(ctx, object.DeepCopy()) }).Should(Succeed())
}

var _ = Describe("Trusted namespaces", func() {
	It("get objects of all namespaces and of the cluster, and others never do", func(ctx SpecContext) {
		trusted, other := newNamespace(ctx), newNamespace(ctx)
		bundle := "1-" + trusted // All specs share the objects without a namespace.
		role := &rbacv1.ClusterRole{ObjectMeta: meta("", "of-"+trusted, bundle)}
		create(ctx, newPod(trusted, "mine", bundle), newPod(other, "theirs", bundle), role)
		DeferCleanup(discard, role)

		m := start(ctx, monitor.Options{
			LeaseNamespace: trusted, TrustedNamespaces: []string{trusted},
			Kinds: append(monitor.DefaultKinds(), rbacv1.SchemeGroupVersion.WithKind("ClusterRole")),
		})
		create(ctx, newBundle(trusted, bundle))
		Eventually(statesOf(ctx, trusted, bundle)).Should(And(HaveLen(3), HaveKey("Pod/mine"), HaveKey("Pod/theirs"), HaveKey("ClusterRole/of-"+trusted)))
		Expect(m.all()).To(ContainElement(ContainSubstring("/certificatesigningrequests?")), "they are of the cluster")

		By("following them")
		remove(ctx, newPod(other, "theirs", bundle))
		Eventually(statesOf(ctx, trusted, bundle)).ShouldNot(HaveKey("Pod/theirs"))
		remove(ctx, role)
		Eventually(statesOf(ctx, trusted, bundle)).ShouldNot(HaveKey("ClusterRole/of-" + trusted))

		By("keeping bundles of other namespaces to their own, whatever they select")
		create(ctx, newPod(trusted, "secret", bundle), newPod(other, "own", bundle))
		for name, selector := range map[string]*metav1.LabelSelector{
			bundle:    nil,
			"same":    {MatchLabels: map[string]string{k8spluginv1alpha1.LabelDeploymentID: bundle}},
			"in":      {MatchLabels: map[string]string{k8spluginv1alpha1.LabelDeploymentID: bundle}, MatchExpressions: []metav1.LabelSelectorRequirement{{Key: k8spluginv1alpha1.LabelDeploymentID, Operator: metav1.LabelSelectorOpExists}}},
			"not-own": {MatchLabels: map[string]string{k8spluginv1alpha1.LabelDeploymentID: bundle, "kubernetes.io/metadata.name": trusted}},
			"all":     {},
		} {
			b := newBundle(other, name)
			b.Spec.Selector = selector
			create(ctx, b)
			Eventually(func() *k8spluginv1alpha1.ResourceCounts { return get(ctx, other, name).Status.Summary }).ShouldNot(BeNil())
			Expect(states(get(ctx, other, name))).NotTo(HaveKey("Pod/secret"), "selector %q", name)
			Expect(raw(ctx, other, name)).NotTo(ContainSubstring(`"namespace":"`+trusted+`"`), "selector %q", name)
		}
		Expect(states(get(ctx, other, "same"))).To(HaveKey("Pod/own"))
		Eventually(statesOf(ctx, trusted, bundle)).Should(HaveKey("Pod/own"))
	})

	It("need no right to more namespaces than those that are looked at", func(ctx SpecContext) {
		trusted, other := newNamespace(ctx), newNamespace(ctx)
		bundle := "1-" + trusted
		role := &rbacv1.ClusterRole{ObjectMeta: meta("", "of-"+trusted, bundle)}
		create(ctx, newPod(trusted, "mine", bundle), newPod(other, "theirs", bundle), role)
		DeferCleanup(discard, role)
		log := &journal{}
		m := startAs(ctx, plane.Config(), log.logger(), monitor.Options{
			LeaseNamespace: trusted, Namespaces: []string{trusted}, TrustedNamespaces: []string{trusted},
			Kinds: append(monitor.DefaultKinds(), rbacv1.SchemeGroupVersion.WithKind("ClusterRole")),
		})
		create(ctx, newBundle(trusted, bundle))
		Eventually(statesOf(ctx, trusted, bundle)).Should(And(HaveLen(2), HaveKey("Pod/mine"), HaveKey("ClusterRole/of-"+trusted)))
		Expect(m.all()).NotTo(ContainElement(MatchRegexp(`^GET /api/v1/pods`)))
		Expect(log.about("Cannot read")).To(BeEmpty())
	})
})

var _ = Describe("Secrets", func() {
	It("are reported when they are named, and nothing but metadata is ever read", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		secret := newSecret(namespace, "secret", "1-sink")
		create(ctx, newBundle(namespace, "1-sink"), secret)
		m := start(ctx, monitor.Options{
			LeaseNamespace: namespace,
			Kinds:          append(monitor.DefaultKinds(), schema.GroupVersionKind{Version: "v1", Kind: "Secret"}),
		})
		Eventually(statesOf(ctx, namespace, "1-sink")).Should(HaveKeyWithValue("Secret/secret", "Ready"))
		Expect(raw(ctx, namespace, "1-sink")).To(And(ContainSubstring("secretStatuses"), Not(ContainSubstring("canary")), Not(ContainSubstring("Y2FuYXJ5"))))
		Expect(m.accepts("/api/v1/secrets")).To(And(Not(BeEmpty()), HaveEach(ContainSubstring("PartialObjectMetadata"))))
	})
})

var _ = Describe("Discovery", func() {
	gadget := schema.GroupVersionKind{Group: "discovery.example.io", Version: "v1", Kind: "Gadget"}

	It("follows what is installed, and lets go what is removed", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		m := start(ctx, monitor.Options{LeaseNamespace: namespace, Discover: true})
		create(ctx, newBundle(namespace, "1-sink"), newPod(namespace, "pod", "1-sink"), newSecret(namespace, "secret", "1-sink"),
			&rbacv1.Role{ObjectMeta: meta(namespace, "role", "1-sink")})
		Eventually(statesOf(ctx, namespace, "1-sink")).Should(And(HaveLen(2), HaveKey("Pod/pod"), HaveKey("Role/role")))
		Expect(m.all()).NotTo(ContainElement(ContainSubstring("/secrets?")), "Secrets are followed when they are named")
		Expect(m.all()).NotTo(ContainElement(ContainSubstring("/endpointslices?")), "mirrors are not followed")

		By("installing a kind")
		crd := newCRD(gadget.Group, gadget.Kind, "gadgets", gadget.Version)
		install(ctx, crd)
		createCustom(ctx, gadget, namespace, "gadget")
		Eventually(statesOf(ctx, namespace, "1-sink")).Should(HaveKey("Gadget/gadget"))

		By("removing it")
		uninstall(ctx, crd)
		Eventually(statesOf(ctx, namespace, "1-sink")).ShouldNot(HaveKey("Gadget/gadget"))

		By("installing it again, in another version")
		next := gadget
		next.Version = "v2"
		crd = newCRD(gadget.Group, gadget.Kind, "gadgets", "v1", "v2")
		install(ctx, crd)
		createCustom(ctx, next, namespace, "later")
		Eventually(versionOf(ctx, namespace, "1-sink", "Gadget", "later")).Should(Equal("v2"))

		By("serving only the old version")
		update(ctx, crd, func(crd *unstructured.Unstructured) {
			changeVersion(crd, 1, func(version map[string]any) { version["served"] = false })
		})
		// The API server may list the version in its groups for a while after it has stopped to serve it.
		Eventually(versionOf(ctx, namespace, "1-sink", "Gadget", "later")).WithTimeout(90 * time.Second).Should(Equal("v1"))
		Consistently(statesOf(ctx, namespace, "1-sink")).Should(HaveKey("Gadget/later"))
	})

	It("needs its right, without which the other kinds are followed all the same", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		config, _ := account(ctx, namespace, markedRules())
		log := &journal{}
		startAs(ctx, config, log.logger(), monitor.Options{LeaseNamespace: namespace, Discover: true})
		create(ctx, newBundle(namespace, "1-sink"), newPod(namespace, "pod", "1-sink"))
		Eventually(statesOf(ctx, namespace, "1-sink")).Should(HaveKey("Pod/pod"))
		Eventually(func() []string { return log.about("CustomResourceDefinition") }).Should(HaveLen(1))
		Consistently(func() []string { return log.about("CustomResourceDefinition") }).Should(HaveLen(1))
	})
})

// versionOf polls the version in which a resource of a bundle was read.
func versionOf(ctx context.Context, namespace, bundle, kind, name string) func() string {
	return func() string {
		for _, r := range get(ctx, namespace, bundle).Status.Resources {
			if r.Kind == kind && r.Name == name {
				return r.Version
			}
		}
		return ""
	}
}
