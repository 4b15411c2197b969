package inventory_test

import (
	"context"
	"net/http"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/healthscope/healthscope/aai/simulator"
	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/inventory"
	"github.com/healthscope/healthscope/e2e/suite"
)

// eventsOf returns a function that returns the events about the inventory of a scope, as "type reason", sorted.
func eventsOf(ctx context.Context, s *corev1alpha2.HealthScope) func(Gomega) []string {
	return func(g Gomega) []string {
		var list eventsv1.EventList
		g.Expect(api.List(ctx, &list, client.InNamespace(s.Namespace))).To(Succeed())
		var found []string
		for _, e := range list.Items {
			if e.Regarding.Name == s.Name && e.Action == corev1alpha2.ConditionInventorySynced {
				g.Expect(e.Series).To(BeNil(), "%s is recorded once", e.Reason)
				found = append(found, e.Type+" "+e.Reason)
			}
		}
		slices.Sort(found)
		return found
	}
}

var _ = Describe("The inventory of a scope", func() {
	var l *lab
	var s *corev1alpha2.HealthScope
	BeforeEach(func(ctx SpecContext) {
		l = newLab(ctx)
		report(ctx, l.namespace, "7-web", service(l.namespace, "web"))
		s = newScope(ctx, l.namespace, "shop", linked(app("web", "7-web"), vnf, vfModule))
	})

	It("is recorded in events, once when it goes wrong for a while, and once when it heals", func(ctx SpecContext) {
		l.clock = suite.NewFastClock(10)
		l.start()
		Eventually(synced(ctx, s)).Should(Equal("True Synced"))
		l.between(func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) })
		report(ctx, l.namespace, "7-web", service(l.namespace, "web"), service(l.namespace, "late"))
		Eventually(synced(ctx, s)).Should(Equal("False Unavailable"))
		Eventually(eventsOf(ctx, s)).Should(Equal([]string{"Warning Unavailable"}))
		l.between(nil)
		report(ctx, l.namespace, "7-web", service(l.namespace, "web"))
		Eventually(eventsOf(ctx, s)).Should(Equal([]string{"Normal Synced", "Warning Unavailable"}))
	})

	It("is read again when an annotation asks for it", func(ctx SpecContext) {
		l.config.OperationalStatus = true
		l.start()
		Eventually(synced(ctx, s)).Should(Equal("True Synced"))
		module := "/network/generic-vnfs/generic-vnf/" + vnf + "/vf-modules/vf-module/" + vfModule
		Eventually(func() any { d, _ := l.Get(module); return d["operational-status"] }).Should(Equal("in-service-path"))
		// A written document is there a moment before A&AI records the request.
		Eventually(func() []string { return l.written(0) }).Should(ContainElement("PATCH 200"))
		Expect(l.Act(
			simulator.Action{Action: "patch", URI: resources + "/k8s-resource/" + idOf(l, "web"), Body: map[string]any{"name": "wrong"}},
			simulator.Action{Action: "patch", URI: module, Body: map[string]any{"operational-status": "wrong"}},
		)).To(Succeed())
		ask := func(name, value string) {
			edit(ctx, s, func(s *corev1alpha2.HealthScope) { s.Annotations = map[string]string{name: value} })
		}
		n := len(l.Requests())
		ask("example.org/note", "1")
		Consistently(func() []string { return l.asked(n) }).Should(BeEmpty())
		ask(inventory.AnnotationResync, "1")
		Eventually(func() any { return l.document("Service", "web") }).ShouldNot(BeNil())
		Eventually(func() any { d, _ := l.Get(module); return d["operational-status"] }).Should(Equal("in-service-path"))
		Eventually(func() []string { return l.written(n) }).Should(ConsistOf("PUT 200", "PATCH 200"), "the resource and the module")
		n = len(l.Requests())
		ask(inventory.AnnotationResync, "2")
		Eventually(func() []string { return l.asked(n) }).Should(Equal([]string{"GET 200", "GET 200"}), "the tenant and the modules are read, and nothing is written")
		Consistently(func() []string { return l.asked(n) }).Should(HaveLen(2))
	})

	It("goes into the operational-status of a module, where that is configured", func(ctx SpecContext) {
		l.config.OperationalStatus = true
		modules := "/network/generic-vnfs/generic-vnf/" + vnf + "/vf-modules/vf-module/"
		status := func(id string) func() any {
			return func() any { d, _ := l.Get(modules + id); return d["operational-status"] }
		}
		h := l.start()
		Eventually(status(vfModule)).Should(Equal("in-service-path"))
		report(ctx, l.namespace, "7-web", service(l.namespace, "web"), deployment(l.namespace, "web", false))
		Eventually(status(vfModule)).Should(Equal("out-of-service-path"))
		Expect(h.exposition()).To(And(
			ContainSubstring(`healthscope_aai_vf_modules{state="synced"} 1`), ContainSubstring(`operation="modules"`), ContainSubstring(`operation="status"`),
		))

		By("naming a module that does not exist")
		report(ctx, l.namespace, "7-db", service(l.namespace, "db"))
		edit(ctx, s, func(s *corev1alpha2.HealthScope) {
			s.Spec.Apps = append(s.Spec.Apps, linked(app("db", "7-db"), vnf, "module-2"))
		})
		Eventually(func(g Gomega) string { return condition(reading(ctx, s)(g)).Message }).Should(ContainSubstring("module-2"))
		Expect(synced(ctx, s)(Default)).To(Equal("False Pending"))
		_, exists := l.Get(modules + "module-2")
		Expect(exists).To(BeFalse())

		By("making it")
		Expect(l.Seed(simulator.VFModule(vnf, "module-2"))).To(Succeed())
		edit(ctx, s, func(s *corev1alpha2.HealthScope) {
			s.Annotations = map[string]string{inventory.AnnotationResync: "now"}
		})
		Eventually(status("module-2")).Should(Equal("in-service-path"))
		Eventually(synced(ctx, s)).Should(Equal("True Synced"))

		By("restarting")
		h.stop()
		n := len(l.Requests())
		l.start()
		Eventually(func() []string { return l.asked(n) }).Should(HaveLen(3), "a probe, a list of resources and one of modules")
		Consistently(func() []string { return l.written(n) }).Should(BeEmpty())
		Expect(status(vfModule)()).To(Equal("out-of-service-path"))
	})
})
