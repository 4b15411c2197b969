package monitor_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/controllers/monitor"
)

// writeAsEMCO replaces the status of a bundle as EMCO's monitor does, whose types lack the fields that ours adds.
func writeAsEMCO(ctx context.Context, namespace, name string) {
	GinkgoHelper()
	Expect(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		b := &unstructured.Unstructured{}
		b.SetGroupVersionKind(k8spluginv1alpha1.GroupVersion.WithKind(k8spluginv1alpha1.ResourceBundleStateKind))
		if err := api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, b); err != nil {
			return err
		}
		b.Object["status"] = map[string]any{
			"ready": false, "resourceCount": int64(0),
			"podStatuses": []any{map[string]any{"metadata": map[string]any{"name": "pod", "namespace": namespace}}},
		}
		return api.Status().Update(ctx, b, client.FieldOwner("monitor"))
	})).To(Succeed())
}

// eventsOn polls the notes of the events on the bundles of a namespace with a reason.
func eventsOn(ctx context.Context, namespace, reason string) func() []string {
	return func() []string {
		GinkgoHelper()
		var list eventsv1.EventList
		Expect(api.List(ctx, &list, client.InNamespace(namespace))).To(Succeed())
		notes := []string{}
		for _, e := range list.Items {
			if e.Reason == reason && e.Regarding.Kind == k8spluginv1alpha1.ResourceBundleStateKind {
				notes = append(notes, e.Note)
			}
		}
		return notes
	}
}

var _ = Describe("Beside another monitor", func() {
	var namespace string
	var options monitor.Options

	BeforeEach(func(ctx SpecContext) {
		namespace = newNamespace(ctx)
		options = monitor.Options{LeaseNamespace: namespace, Namespaces: []string{namespace}}
		create(ctx, newBundle(namespace, "1-sink"), newPod(namespace, "pod", "1-sink"))
		DeferCleanup(discard, newBundle(namespace, "1-sink")) // Monitors of other specs would write its status.
	})

	It("a bundle that EMCO's monitor writes is left alone, and taken over an hour after its last write", func(ctx SpecContext) {
		registry := prometheus.NewRegistry()
		options.Registerer = registry
		m := start(ctx, options)
		Eventually(statesOf(ctx, namespace, "1-sink")).Should(HaveLen(1))
		writeAsEMCO(ctx, namespace, "1-sink")
		Eventually(eventsOn(ctx, namespace, "StandingDown")).Should(ConsistOf(ContainSubstring(`"monitor" writes the status`)))
		before := len(m.writes())
		create(ctx, newService(namespace, "service", "1-sink"))
		Consistently(m.writes).Should(HaveLen(before))
		Expect(series(registry, "healthscope_monitor_standing_down")).To(ConsistOf(ContainSubstring("value:1")))
		m.stop()

		options.Clock = clocktesting.NewFakePassiveClock(time.Now().Add(59 * time.Minute))
		options.Registerer = prometheus.NewRegistry()
		m = start(ctx, options)
		Consistently(m.writes).Should(BeEmpty(), "a restart changes nothing")
		m.stop()
		options.Clock = clocktesting.NewFakePassiveClock(time.Now().Add(61 * time.Minute))
		options.Registerer = prometheus.NewRegistry()
		start(ctx, options)
		Eventually(statesOf(ctx, namespace, "1-sink")).Should(HaveLen(2))
	})

	It("of our own with the same configuration nothing is fought over", func(ctx SpecContext) {
		first := start(ctx, options)
		options.LeaseNamespace = newNamespace(ctx)
		second := start(ctx, options)
		Eventually(statesOf(ctx, namespace, "1-sink")).Should(HaveLen(1))
		for _, name := range []string{"a", "b", "c"} {
			create(ctx, newService(namespace, name, "1-sink"))
			Eventually(statesOf(ctx, namespace, "1-sink")).Should(HaveKey("Service/" + name))
		}
		writes := func() int { return len(first.writes()) + len(second.writes()) }
		Eventually(func(g Gomega) {
			before := writes()
			g.Consistently(writes).Should(Equal(before))
		}).Should(Succeed())
		Expect(eventsOn(ctx, namespace, "WriteConflict")()).To(BeEmpty())
	})

	It("of our own with another configuration there is an event", func(ctx SpecContext) {
		start(ctx, options)
		options.LeaseNamespace = newNamespace(ctx)
		options.AllowedLabels = []string{k8spluginv1alpha1.LabelDeploymentID}
		start(ctx, options)
		Eventually(eventsOn(ctx, namespace, "WriteConflict")).ShouldNot(BeEmpty())
		Consistently(func() int { return len(eventsOn(ctx, namespace, "WriteConflict")()) }).Should(BeNumerically("<=", 2), "one of each")
	})

	It("whose CRD prunes what ours writes, little is written until the right CRD is back", func(ctx SpecContext) {
		crd := &unstructured.Unstructured{}
		crd.SetAPIVersion("apiextensions.k8s.io/v1")
		crd.SetKind("CustomResourceDefinition")
		crd.SetName("resourcebundlestates.k8splugin.io")
		update(ctx, crd, func(crd *unstructured.Unstructured) {
			changeVersion(crd, 0, func(version map[string]any) {
				for _, field := range []string{"summary", "resources", "truncated"} {
					unstructured.RemoveNestedField(version, "schema", "openAPIV3Schema", "properties", "status", "properties", field)
				}
			})
		})
		restore := func(ctx context.Context) {
			GinkgoHelper()
			Expect(plane.InstallManifests(ctx, bundleCRD)).To(Succeed())
		}
		DeferCleanup(func(ctx SpecContext) { restore(ctx) })
		probe := newBundle(namespace, "0-probe")
		create(ctx, probe)
		Eventually(func() *k8spluginv1alpha1.ResourceCounts { // Wait until the CRD has taken effect.
			probe.Status.Summary = &k8spluginv1alpha1.ResourceCounts{State: "Ready"}
			Expect(api.Status().Update(ctx, probe, client.FieldOwner("healthscope-monitor"))).To(Succeed())
			return get(ctx, namespace, "0-probe").Status.Summary
		}).Should(BeNil())

		log := &journal{}
		m := startAs(ctx, plane.Config(), log.logger(), options)
		for _, name := range []string{"2-sink", "3-sink", "4-sink"} {
			create(ctx, newBundle(namespace, name), newPod(namespace, name, name))
		}
		Eventually(func() []string { return log.about("writes suspended") }).Should(HaveLen(1))
		before := len(m.writes())
		Consistently(func() int { return len(m.writes()) }).Should(BeNumerically("<=", before+3), "what was under way when it was noticed")

		restore(ctx)
		Eventually(statesOf(ctx, namespace, "4-sink")).WithTimeout(time.Minute).Should(HaveLen(1))
		Eventually(statesOf(ctx, namespace, "1-sink")).WithTimeout(time.Minute).Should(HaveLen(1))
		Eventually(func() []string { return log.about("no longer prunes") }).Should(HaveLen(1))
	})
})
