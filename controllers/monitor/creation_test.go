package monitor_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/controllers/monitor"
)

const nameLabel = "healthscope.core.oam.dev/name"

// named returns a ConfigMap with the label for which the monitor creates bundles.
func named(namespace, name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{nameLabel: value}}}
}

// bundlesOf polls the names of the bundles of a namespace.
func bundlesOf(ctx context.Context, namespace string) func() []string {
	return func() []string {
		GinkgoHelper()
		var list k8spluginv1alpha1.ResourceBundleStateList
		Expect(api.List(ctx, &list, client.InNamespace(namespace))).To(Succeed())
		names := []string{}
		for _, b := range list.Items {
			names = append(names, b.Name)
		}
		return names
	}
}

var _ = Describe("A monitor that makes bundles", func() {
	var namespace string
	var options monitor.Options

	BeforeEach(func(ctx SpecContext) {
		namespace = newNamespace(ctx)
		options = monitor.Options{LeaseNamespace: namespace, Namespaces: []string{namespace}, CreateBundles: nameLabel}
	})

	It("makes one for each value, and never takes one away", func(ctx SpecContext) {
		create(ctx, named(namespace, "one", "shop"), named(namespace, "two", "shop"))
		registry := prometheus.NewRegistry()
		options.Registerer = registry
		start(ctx, options)
		Eventually(bundlesOf(ctx, namespace)).Should(ConsistOf("shop"))
		Eventually(statesOf(ctx, namespace, "shop")).Should(HaveLen(2))
		Eventually(func() []string { return series(registry, "healthscope_monitor_bundles_created_total") }).Should(ConsistOf(ContainSubstring("value:1")))
		made := get(ctx, namespace, "shop")
		Expect(made.Labels).To(Equal(map[string]string{nameLabel: "shop", "app.kubernetes.io/managed-by": "healthscope-monitor"}))
		Expect(made.Spec.Selector.MatchLabels).To(Equal(map[string]string{nameLabel: "shop"}))

		By("following what comes later")
		create(ctx, named(namespace, "three", "bank"), newPod(namespace, "emco", "1-sink"))
		Eventually(bundlesOf(ctx, namespace)).Should(ConsistOf("shop", "bank"), "of another label others make bundles")

		By("leaving the bundle of an application that is gone")
		remove(ctx, named(namespace, "three", "bank"))
		Eventually(statesOf(ctx, namespace, "bank")).Should(BeEmpty())
		Consistently(bundlesOf(ctx, namespace)).Should(ConsistOf("shop", "bank"))

		By("making again what somebody deletes, if it is needed")
		remove(ctx, &k8spluginv1alpha1.ResourceBundleState{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "bank"}})
		remove(ctx, made)
		Eventually(func() bool {
			names := bundlesOf(ctx, namespace)()
			return len(names) == 1 && get(ctx, namespace, names[0]).UID != made.UID
		}).Should(BeTrue())
		Consistently(bundlesOf(ctx, namespace)).Should(ConsistOf("shop"))
	})

	It("makes one for each Application of KubeVela, without the HealthScope that has its labels", func(ctx SpecContext) {
		ofVela := func(component string) map[string]string {
			return map[string]string{"app.oam.dev/name": "store", "app.oam.dev/namespace": namespace, "app.oam.dev/component": component, "app.oam.dev/cluster": ""}
		}
		front, back := newPod(namespace, "front", ""), newPod(namespace, "back", "")
		front.Labels, back.Labels = ofVela("front"), ofVela("back")
		Expect(plane.InstallManifests(ctx, "../../config/crd/core.oam.dev_healthscopes.yaml")).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			crd := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}}
			crd.SetName("healthscopes.core.oam.dev")
			Expect(api.Delete(ctx, crd)).To(Succeed())
		})
		policy := &corev1alpha2.HealthScope{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "store-health", Labels: ofVela("store-health")}}
		create(ctx, front, back, policy)
		options.CreateBundles, options.Discover = "app.oam.dev/name", true
		start(ctx, options)
		Eventually(bundlesOf(ctx, namespace)).Should(ConsistOf("store"))
		Eventually(statesOf(ctx, namespace, "store")).Should(SatisfyAll(HaveLen(2), HaveKey("Pod/front"), HaveKey("Pod/back")))
		Consistently(statesOf(ctx, namespace, "store")).Should(HaveLen(2))
		Expect(get(ctx, namespace, "store").Labels).To(HaveKeyWithValue("app.oam.dev/name", "store"), "selectors of scopes find it")
	})

	It("makes them again when their CRD was away", func(ctx SpecContext) {
		create(ctx, named(namespace, "one", "shop"))
		start(ctx, options)
		Eventually(bundlesOf(ctx, namespace)).Should(ConsistOf("shop"))
		uninstallBundleCRD(ctx)
		Consistently(func() error { return api.List(ctx, &k8spluginv1alpha1.ResourceBundleStateList{}) }).ShouldNot(Succeed())
		Expect(plane.InstallManifests(ctx, bundleCRD)).To(Succeed())
		Eventually(bundlesOf(ctx, namespace)).WithTimeout(90 * time.Second).Should(ConsistOf("shop"))
		Eventually(statesOf(ctx, namespace, "shop")).WithTimeout(90 * time.Second).Should(HaveLen(1))
	})

	It("respects the bundles of others", func(ctx SpecContext) {
		theirs := newBundle(namespace, "theirs")
		theirs.Spec.Selector.MatchLabels = map[string]string{nameLabel: "shop"}
		create(ctx, theirs, named(namespace, "one", "shop"))
		start(ctx, options)
		Eventually(statesOf(ctx, namespace, "theirs")).Should(HaveLen(1))
		create(ctx, named(namespace, "later", "shop"))
		Eventually(statesOf(ctx, namespace, "theirs")).Should(HaveKey("ConfigMap/later"), "later changes find a bundle whose name is not the value")
		Consistently(bundlesOf(ctx, namespace)).Should(ConsistOf("theirs"))

		By("making its own when they no longer want the objects")
		update(ctx, theirs, func(b *k8spluginv1alpha1.ResourceBundleState) {
			b.Spec.Selector.MatchLabels = map[string]string{nameLabel: "else"}
		})
		Eventually(bundlesOf(ctx, namespace)).Should(ConsistOf("theirs", "shop"))
	})

	It("finds a name for values that are none, and says of which it makes no bundle", func(ctx SpecContext) {
		log := &journal{}
		taken := newBundle(namespace, "taken")
		taken.Spec.Selector.MatchLabels = map[string]string{nameLabel: "else"}
		create(ctx, taken, named(namespace, "one", "My_Shop"), named(namespace, "two", "my.shop"), named(namespace, "three", ""), named(namespace, "four", "taken"))
		startAs(ctx, plane.Config(), log.logger(), options)
		Eventually(bundlesOf(ctx, namespace)).Should(ConsistOf("taken", "my.shop", HavePrefix("my-shop-")))
		for _, name := range bundlesOf(ctx, namespace)() {
			if strings.HasPrefix(name, "my-shop-") {
				Eventually(statesOf(ctx, namespace, name)).Should(HaveKey("ConfigMap/one"))
			}
		}
		update(ctx, named(namespace, "three", ""), func(c *corev1.ConfigMap) { c.Data = map[string]string{"a": "b"} })
		create(ctx, named(namespace, "five", "probe"))
		Eventually(bundlesOf(ctx, namespace)).Should(ContainElement("probe"))
		Expect(log.about("Cannot make a bundle")).To(ConsistOf(ContainSubstring("no value"), ContainSubstring("taken")))
	})

	It("says once that it lacks the right, and does not go on asking", func(ctx SpecContext) {
		config, role := account(ctx, namespace, markedRules())
		log := &journal{}
		for i := range 50 {
			create(ctx, named(namespace, fmt.Sprint("object-", i), fmt.Sprint("app-", i)))
		}
		m := startAs(ctx, config, log.logger(), options)
		Eventually(func() []string { return log.about("Cannot make bundles") }).Should(HaveLen(1))
		Consistently(func() []string { return log.about("Cannot make bundles") }).Should(HaveLen(1))
		Expect(len(m.writes())).To(BeNumerically("<", 10))
		update(ctx, role, func(r *rbacv1.ClusterRole) {
			r.Rules = append(r.Rules, rbacv1.PolicyRule{APIGroups: []string{"k8splugin.io"}, Resources: []string{"resourcebundlestates"}, Verbs: []string{"create"}})
		})
		Eventually(bundlesOf(ctx, namespace)).WithTimeout(time.Minute).Should(HaveLen(50))
	})
})
