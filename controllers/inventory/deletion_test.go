package inventory_test

import (
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("A source of which too little is known", func() {
	var l *lab
	all := map[string]string{"Service/web": "Ready", "Service/gone": "Ready", "Service/other": "Ready"}
	BeforeEach(func(ctx SpecContext) {
		l = newLab(ctx)
		report(ctx, l.namespace, "7-web", service(l.namespace, "web"), service(l.namespace, "gone"))
		report(ctx, l.namespace, "7-other", service(l.namespace, "other"))
	})

	DescribeTable("causes no deletion in its cluster",
		func(ctx SpecContext, status string) {
			newScope(ctx, l.namespace, "shop", app("web", "7-web"), app("other", "7-other"))
			h := l.start()
			Eventually(l.states).Should(Equal(all))
			spoil(ctx, l.namespace, "7-web", status)
			report(ctx, l.namespace, "7-other", service(l.namespace, "another"))
			Eventually(l.states).Should(HaveKeyWithValue("Service/another", "Ready"), "writing goes on")
			Consistently(l.states).Should(HaveLen(4))

			By("restarting")
			h.stop()
			n := len(l.Requests())
			l.start()
			Eventually(func() []string { return l.asked(n) }).ShouldNot(BeEmpty())
			Consistently(l.states).Should(HaveLen(4))

			By("healing it")
			report(ctx, l.namespace, "7-web", service(l.namespace, "web"))
			Eventually(l.states).Should(Equal(map[string]string{"Service/web": "Ready", "Service/another": "Ready"}))
			for _, r := range l.Requests() {
				Expect(r.Method == http.MethodDelete && strings.HasSuffix(r.Path, idOf(l, "web"))).To(BeFalse(), "what is there is never deleted")
				Expect(r.Body).NotTo(MatchRegexp(`"action":"delete","uri":"[^"]*`+idOf(l, "web")), "nor together with others")
			}
		},
		Entry("a bundle that is truncated", `{"truncated":true,"resources":[]}`),
		Entry("a bundle that cannot be read", `{"summary":null,"resources":null,"serviceStatuses":"none"}`),
		Entry("a bundle that no monitor has filled", `null`),
	)

	It("is a scope that has not been judged yet", func(ctx SpecContext) {
		newScope(ctx, l.namespace, "shop", app("web", "7-web"))
		slow := app("other", "7-other")
		slow.WorkloadReferences = append(slow.WorkloadReferences, ref("apps/v1", "StatefulSet", "none"))
		s := newScope(ctx, l.namespace, "slow", slow)
		h := l.start()
		Eventually(l.states).Should(Equal(all))
		Eventually(synced(ctx, s)).Should(Equal("True Synced"))
		h.stop()

		report(ctx, l.namespace, "7-web", service(l.namespace, "web"), service(l.namespace, "new"))
		held, release := hold("statefulsets")
		DeferCleanup(release)
		before := version(ctx, s)(Default)
		l.start(held)
		Eventually(l.states).Should(HaveKeyWithValue("Service/new", "Ready"))
		Consistently(l.states).Should(HaveLen(4))
		Expect(version(ctx, s)(Default)).To(Equal(before))
		release()
		Eventually(l.states).Should(Equal(map[string]string{"Service/web": "Ready", "Service/new": "Ready", "Service/other": "Ready"}))
	})

	It("is a hub that does not know yet which scopes exist", func(ctx SpecContext) {
		newScope(ctx, l.namespace, "shop", app("web", "7-web"), app("other", "7-other"))
		h := l.start()
		Eventually(l.states).Should(Equal(all))
		h.stop()

		report(ctx, l.namespace, "7-web", service(l.namespace, "web"))
		held, release := hold("healthscopes")
		DeferCleanup(release)
		l.start(held)
		Consistently(l.states).Should(Equal(all))
		release()
		Eventually(l.states).Should(Equal(map[string]string{"Service/web": "Ready", "Service/other": "Ready"}))
	})
})

var _ = Describe("A bundle that is truncated", func() {
	It("keeps nothing in other namespaces from being deleted", func(ctx SpecContext) {
		l := newLab(ctx)
		other := newNamespace(ctx)
		at := l.config.Regions[0]
		at.Namespace = other
		l.config.Regions = append(l.config.Regions, at)
		report(ctx, l.namespace, "7-web", service(l.namespace, "web"), service(l.namespace, "gone"))
		report(ctx, other, "7-other", service(other, "other"), service(other, "old"))
		newScope(ctx, l.namespace, "shop", app("web", "7-web"))
		newScope(ctx, other, "shop", app("other", "7-other"))
		h := l.start()
		Eventually(l.states).Should(HaveLen(4))
		spoil(ctx, l.namespace, "7-web", `{"truncated":true,"resources":[]}`)
		report(ctx, other, "7-other", service(other, "other"))
		left := map[string]string{"Service/web": "Ready", "Service/gone": "Ready", "Service/other": "Ready"}
		Eventually(l.states).Should(Equal(left))
		Eventually(h.Unsynced).Should(HaveEach(HaveField("Cause", "source")), "what the hub says follows what it has done")
		Consistently(l.states).Should(Equal(left))

		By("restarting, when it is not known what the bundle had")
		h.stop()
		l.start()
		report(ctx, other, "7-other")
		Eventually(l.states).Should(Equal(map[string]string{"Service/web": "Ready", "Service/gone": "Ready"}))
		Consistently(l.states).Should(HaveLen(2))
	})
})

// idOf returns the id of the document of a service.
func idOf(l *lab, name string) string {
	id, _ := l.document("Service", name)["id"].(string)
	return id
}
