package scope_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/e2e/suite"
)

// causes returns the reasons and causes of the culprits of a scope, by name.
func causes(s corev1alpha2.HealthScope) map[string]string {
	all := map[string]string{}
	for _, c := range s.Status.Culprits {
		all[c.Name] = c.Reason + ": " + c.Cause
	}
	return all
}

var _ = Describe("Bad references", func() {
	It("are Unknown or missing with a clear reason, and the others are judged rightly", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		newDeployment(ctx, namespace, "web", 3)
		fill(ctx, newBundle(ctx, namespace, "7-good", nil), inBundle(namespace, "sink", replicas{1, 1, 1}))
		start()
		abroad, moon, another := ref("apps/v1", "Deployment", "abroad"), ref("apps/v1", "Deployment", "moon"), ref("apps/v1", "Deployment", "web")
		abroad.Namespace, moon.Cluster = "kube-system", "acme+moon"
		another.Name, another.UID = "other", "a-uid-of-the-past"
		newDeployment(ctx, namespace, "other", 3)
		s := newScope(ctx, namespace, "shop", refs(
			ref("apps/v1", "Deployment", "web"), bundleRef("7-good"),
			ref("acme.example.com/v1", "Nothing", "kindless"), ref("apps/v7", "Deployment", "versionless"), ref("apps/v1", "Deployment", "gone"), bundleRef("7-gone"),
			ref("v1", "ConfigMap", "forbidden"), ref("v1", "Namespace", "wide"), abroad, moon, another,
			ref("a/b/c", "Deployment", "odd"), ref("", "Deployment", "bare"), ref("v1", "", "unkind"), ref("v1", "Pod", "")))
		Eventually(reading(ctx, s)).Should(haveHealth(unhealthy, "2/15"))
		Expect(causes(read(ctx, s))).To(Equal(map[string]string{
			"kindless":    "KindNotFound: the cluster does not serve acme.example.com/v1 Nothing",
			"versionless": "KindNotFound: the cluster does not serve apps/v7 Deployment",
			"gone":        fmt.Sprintf("NotFound: Deployment %q does not exist in namespace %q", "gone", namespace),
			"7-gone":      fmt.Sprintf("NotFound: ResourceBundleState %q does not exist in namespace %q", "7-gone", namespace),
			"forbidden":   "Forbidden: the controller may not list and watch v1 ConfigMap; to allow it, label a ClusterRole with these verbs: healthscope.core.oam.dev/aggregate-to-controller=true",
			"wide":        "InvalidReference: v1 Namespace is not namespaced; only objects in a namespace can be referred to",
			"abroad":      fmt.Sprintf("CrossNamespace: the reference leads to namespace %q; only the scope's own namespace, %q, is followed", "kube-system", namespace),
			"moon":        `UnknownCluster: no cluster "acme+moon" is known`,
			"other":       fmt.Sprintf("NotFound: Deployment %q is another one than the reference means: its uid is %s", "other", uidOf(ctx, namespace, "other")),
			"odd":         `InvalidReference: the reference's apiVersion "a/b/c" cannot be read`,
			"bare":        "InvalidReference: the reference has no apiVersion",
			"unkind":      "InvalidReference: the reference has no kind",
			"":            "InvalidReference: the reference has no name",
		}))
		Expect(read(ctx, s).Status.ScopeHealthCondition).To(Equal(corev1alpha2.ScopeHealthCondition{
			HealthStatus: "UNHEALTHY", Total: 15, HealthyWorkloads: 2, UnhealthyWorkloads: 3, UnknownWorkloads: 10,
		}))
		Expect(read(ctx, s).Status.ClustersReachable).To(Equal("1/2"))
	})
})

// uidOf returns the uid of a Deployment.
func uidOf(ctx context.Context, namespace, name string) string {
	GinkgoHelper()
	d := &metav1.PartialObjectMetadata{}
	d.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
	Expect(api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, d)).To(Succeed())
	return string(d.UID)
}

var _ = Describe("Bad bundles", func() {
	It("are Unknown where they cannot be read, and the others are judged rightly", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		start()
		contents := map[string]string{
			"7-nulls":   `{"ready":null,"podStatuses":null,"deploymentStatuses":null,"summary":null,"resources":null}`,
			"7-types":   `{"podStatuses":"many","deploymentStatuses":[{"metadata":{"name":"typed"},"spec":{"replicas":1},"status":{"observedGeneration":1,"replicas":1,"readyReplicas":1,"updatedReplicas":1,"availableReplicas":1}}]}`,
			"7-numbers": `{"serviceStatuses":[1,2.5,true,{"metadata":{"name":"counted"},"spec":{}}]}`,
			"7-lying":   `{"ready":true,"deploymentStatuses":[{"metadata":{"name":"lying"},"status":{"replicas":"three","readyReplicas":{}}}]}`,
			"7-empty":   `{"podStatuses":[]}`,
		}
		spec := refs(bundleRef("7-good"))
		for name, status := range contents {
			fillRaw(ctx, newBundle(ctx, namespace, name, nil), status)
			spec.WorkloadReferences = append(spec.WorkloadReferences, bundleRef(name))
		}
		fill(ctx, newBundle(ctx, namespace, "7-good", nil), inBundle(namespace, "sink", replicas{1, 1, 1}))
		s := newScope(ctx, namespace, "vfw", spec)
		Eventually(reading(ctx, s)).Should(haveHealth(unhealthy, "3/8"))
		Expect(causes(read(ctx, s))).To(SatisfyAll(
			HaveLen(5),
			HaveKeyWithValue("7-nulls", "NotObserved: no monitor has filled the bundle yet"),
			HaveKeyWithValue("7-types", "MalformedBundle: cannot read podStatuses of the bundle"),
			HaveKeyWithValue("7-numbers", "MalformedBundle: cannot read serviceStatuses[0], serviceStatuses[1], serviceStatuses[2] of the bundle"),
			HaveKeyWithValue("lying", HavePrefix("InvalidObject: ")),
			HaveKeyWithValue("7-empty", "NoResources: no resource carries the bundle's label"),
		))
	})
})

var _ = Describe("What could not be read", func() {
	It("is judged once the right to read it is granted", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		c := start(stopClock)
		s := newScope(ctx, namespace, "shop", refs(ref("v1", "Secret", "keys")))
		Eventually(reading(ctx, s)).Should(WithTransform(culprits, Equal([]string{"Secret/keys Unknown Forbidden"})))
		Expect(api.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "keys"}})).To(Succeed())
		grant(ctx, "secrets")
		Eventually(reading(ctx, s), "60s").Should(haveHealth(healthy, "1/1"))
		Expect(c.written(namespace, "shop")()).To(Equal(2), "from Forbidden to Ready, with no word in between")
	}, SpecTimeout(2*time.Minute))

	It("is judged once its CRD is there", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		c := start(stopClock)
		s := newScope(ctx, namespace, "shop", refs(ref("acme.example.com/v1", "Gadget", "a"), ref("acme.example.com/v1", "Gadget", "b")))
		Eventually(reading(ctx, s)).Should(WithTransform(culprits, Equal([]string{"Gadget/a Unknown KindNotFound", "Gadget/b Unknown KindNotFound"})))

		scheme := runtime.NewScheme()
		Expect(apiextensionsv1.AddToScheme(scheme)).To(Succeed())
		admin, err := client.New(plane.Config(), client.Options{Scheme: scheme})
		Expect(err).NotTo(HaveOccurred())
		Expect(plane.InstallManifests(ctx, suite.Manifest(gadgetRights))).To(Succeed())
		Expect(plane.InstallManifests(ctx, suite.Manifest(gadgets))).To(Succeed())
		DeferCleanup(func(ctx SpecContext) error {
			return admin.Delete(ctx, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "gadgets.acme.example.com"}})
		})
		Eventually(reading(ctx, s)).Should(WithTransform(culprits, Equal([]string{"Gadget/a NotPresent NotFound", "Gadget/b NotPresent NotFound"})))
		gadget := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}}}
		gadget.SetGroupVersionKind(schema.GroupVersionKind{Group: "acme.example.com", Version: "v1", Kind: "Gadget"})
		gadget.SetNamespace(namespace)
		gadget.SetName("a")
		Expect(api.Create(ctx, gadget)).To(Succeed())
		Eventually(reading(ctx, s)).Should(haveHealth(unhealthy, "1/2"))
		Expect(c.written(namespace, "shop")()).To(Equal(3))
	})
})

// gadgets is the CRD of the kind Gadget.
const gadgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.acme.example.com}
spec:
  group: acme.example.com
  scope: Namespaced
  names: {kind: Gadget, plural: gadgets, singular: gadget, listKind: GadgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// gadgetRights gives the controller the rights to read Gadgets.
const gadgetRights = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: granted-gadgets}
rules:
- {apiGroups: [acme.example.com], resources: [gadgets], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: granted-gadgets}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: granted-gadgets}
subjects: [{kind: ServiceAccount, name: healthscope-controller, namespace: healthscope-system}]
`
