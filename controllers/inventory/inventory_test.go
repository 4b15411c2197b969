package inventory_test

import (
	"fmt"
	"maps"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/healthscope/healthscope/aai/simulator"
	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

var _ = Describe("The inventory", func() {
	var l *lab
	BeforeEach(func(ctx SpecContext) { l = newLab(ctx) })

	It("follows resources from the first to the last", func(ctx SpecContext) {
		report(ctx, l.namespace, "7-web", deployment(l.namespace, "web", true), service(l.namespace, "web"), crashing(l.namespace, "web-1"))
		s := newScope(ctx, l.namespace, "shop", app("web", "7-web"))
		l.start()
		Eventually(l.states).Should(Equal(map[string]string{"Deployment/web": "Ready", "Service/web": "Ready", "Pod/web-1": "Failed"}))
		Eventually(synced(ctx, s)).Should(Equal("True Synced"))
		Expect(*reading(ctx, s)(Default).Status.Inventory).To(Equal(corev1alpha2.InventoryStatus{Synced: 3}))

		pod := l.document("Pod", "web-1")
		Expect(label(pod, "reason")).To(Equal("CrashLoopBackOff"))
		Expect(label(pod, "since")).To(Equal(since(ctx, l.namespace, "7-web", "web-1")))
		Expect(pod["labels"]).To(And(ContainElement("app.kubernetes.io/name=web-1"), Not(ContainElement(HavePrefix("secret.example")))))
		web := l.document("Deployment", "web")
		Expect(web).To(And(
			HaveKeyWithValue("group", "apps"), HaveKeyWithValue("version", "v1"), HaveKeyWithValue("namespace", l.namespace),
			HaveKeyWithValue("data-owner", "healthscope-default"), HaveKeyWithValue("data-source", "local"),
			HaveKeyWithValue("selflink", "http://healthscope/scopes/"+l.namespace+"/shop"),
		))

		By("changing one, removing another and adding a third")
		report(ctx, l.namespace, "7-web", deployment(l.namespace, "web", false), service(l.namespace, "web"), service(l.namespace, "web-extra"))
		Eventually(l.states).Should(Equal(map[string]string{"Deployment/web": "Pending", "Service/web": "Ready", "Service/web-extra": "Ready"}))
		Expect(label(l.document("Deployment", "web"), "since")).To(Equal(since(ctx, l.namespace, "7-web", "web")))
		Expect(l.document("Deployment", "web")["id"]).To(Equal(web["id"]))

		By("deleting the scope")
		Expect(api.Delete(ctx, s)).To(Succeed())
		Eventually(l.states).Should(BeEmpty())
	})

	It("relates resources to the VNFs that the configuration allows, and says what it denies", func(ctx SpecContext) {
		report(ctx, l.namespace, "7-web", service(l.namespace, "web"))
		report(ctx, l.namespace, "7-db", service(l.namespace, "db"))
		Expect(l.Seed(simulator.GenericVNF("vnf-of-others"))).To(Succeed())
		s := newScope(ctx, l.namespace, "shop", linked(app("web", "7-web"), vnf, vfModule), linked(app("db", "7-db"), "vnf-of-others", ""))
		l.start()
		Eventually(l.states).Should(Equal(map[string]string{"Service/web": "Ready", "Service/db": "Ready"}))
		Expect(links(l.document("Service", "web"))).To(ConsistOf(
			HaveSuffix("/generic-vnf/"+vnf), HaveSuffix("/generic-vnf/"+vnf+"/vf-modules/vf-module/"+vfModule),
		))
		Expect(links(l.document("Service", "db"))).To(BeEmpty())
		Eventually(synced(ctx, s)).Should(Equal("False LinkDenied"))
		Expect(message(ctx, s)).To(And(ContainSubstring("Service/db"), ContainSubstring(`"vnf-of-others"`), ContainSubstring(l.namespace)))
		Expect(*reading(ctx, s)(Default).Status.Inventory).To(Equal(corev1alpha2.InventoryStatus{Synced: 2}))

		By("asking for the one that is allowed")
		edit(ctx, s, func(s *corev1alpha2.HealthScope) { s.Spec.Apps[1].Inventory.GenericVNFID = vnf })
		Eventually(func() []string { return links(l.document("Service", "db")) }).Should(ConsistOf(HaveSuffix("/generic-vnf/" + vnf)))
		Eventually(synced(ctx, s)).Should(Equal("True Synced"))

		By("asking for none")
		edit(ctx, s, func(s *corev1alpha2.HealthScope) { s.Spec.Apps[0].Inventory = nil })
		Eventually(func() []string { return links(l.document("Service", "web")) }).Should(BeEmpty())
	})

	It("takes the resources of scopes, or of all bundles", func(ctx SpecContext) {
		report(ctx, l.namespace, "7-web", service(l.namespace, "web"))
		report(ctx, l.namespace, "7-alone", service(l.namespace, "alone"))
		newScope(ctx, l.namespace, "shop", app("web", "7-web"))
		h := l.start()
		Eventually(l.states).Should(Equal(map[string]string{"Service/web": "Ready"}))
		Consistently(l.states).Should(HaveLen(1))
		h.stop()

		l.config.Select = configv1alpha1.SelectAll
		h = l.start()
		Eventually(l.states).Should(Equal(map[string]string{"Service/web": "Ready", "Service/alone": "Ready"}))
		Expect(l.document("Service", "alone")).To(HaveKeyWithValue("selflink", "http://healthscope/scopes?namespace="+l.namespace))
		report(ctx, l.namespace, "7-alone", deployment(l.namespace, "alone", true))
		Eventually(l.states).Should(Equal(map[string]string{"Service/web": "Ready", "Deployment/alone": "Ready"}))
		h.stop()

		l.config.Select = configv1alpha1.SelectScoped
		l.start()
		Eventually(l.states).Should(Equal(map[string]string{"Service/web": "Ready"}))
	})

	It("takes the configured kinds, and takes back what it no longer wants", func(ctx SpecContext) {
		report(ctx, l.namespace, "7-web", service(l.namespace, "web"), configMap(l.namespace, "web"), deployment(l.namespace, "web", true))
		s := newScope(ctx, l.namespace, "shop", app("web", "7-web"))
		h := l.start()
		Eventually(l.states).Should(Equal(map[string]string{"Service/web": "Ready", "Deployment/web": "Ready"}))
		Eventually(synced(ctx, s)).Should(Equal("True Synced"))
		h.stop()

		l.config.Kinds = []string{"ConfigMap", "Deployment.apps"}
		l.start()
		Eventually(l.states).Should(Equal(map[string]string{"ConfigMap/web": "Ready", "Deployment/web": "Ready"}))
	})

	It("takes workloads that a scope selects by their labels", func(ctx SpecContext) {
		d := newDeployment(ctx, l.namespace, "selected")
		s := newScope(ctx, l.namespace, "shop", corev1alpha2.ScopeApp{
			Name: "web", WorkloadSelector: &corev1alpha2.WorkloadSelector{LabelSelector: *d.Spec.Selector},
		})
		l.start()
		Eventually(l.states).Should(Equal(map[string]string{"Deployment/selected": "Pending"}))
		Eventually(synced(ctx, s)).Should(Equal("True Synced"))
		d.Status = appsv1.DeploymentStatus{
			ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
			Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}},
		}
		Expect(api.Status().Update(ctx, d)).To(Succeed())
		Eventually(l.states).Should(Equal(map[string]string{"Deployment/selected": "Ready"}))
		Expect(api.Delete(ctx, d)).To(Succeed())
		Eventually(l.states).Should(BeEmpty())
	})

	It("leaves alone what cannot be judged, and removes what is not there", func(ctx SpecContext) {
		d := newDeployment(ctx, l.namespace, "direct")
		report(ctx, l.namespace, "7-web", service(l.namespace, "known"), service(l.namespace, "lost"))
		a := app("web", "7-web")
		a.WorkloadReferences = append(a.WorkloadReferences, ref("apps/v1", "Deployment", "direct"))
		s := newScope(ctx, l.namespace, "shop", a)
		l.start()
		Eventually(l.states).Should(Equal(map[string]string{"Service/known": "Ready", "Service/lost": "Ready", "Deployment/direct": "Pending"}))

		rewrite(ctx, l.namespace, "7-web", func(status *k8spluginv1alpha1.ResourceBundleStateStatus) {
			for i := range status.Resources {
				if status.Resources[i].Name == "lost" {
					status.Resources[i].State, status.Resources[i].Reason = "Unknown", "Forbidden"
					unseen := status.Resources[i]
					unseen.Name = "unseen"
					status.Resources = append(status.Resources, unseen)
				}
			}
		})
		Expect(api.Delete(ctx, d)).To(Succeed())
		want := map[string]string{"Service/known": "Ready", "Service/lost": "Ready"}
		Eventually(l.states).Should(Equal(want))
		Consistently(l.states).Should(Equal(want))
		Eventually(func(g Gomega) { // Resources that are not written are not counted.
			now := reading(ctx, s)(g)
			g.Expect(*now.Status.Inventory).To(Equal(corev1alpha2.InventoryStatus{Synced: 1}))
			g.Expect(now.Status.Summary.Unknown).To(BeEquivalentTo(2))
		}).Should(Succeed())
	})

	It("gives a resource that two scopes have to the older one", func(ctx SpecContext) {
		report(ctx, l.namespace, "7-web", service(l.namespace, "web"))
		older := newScope(ctx, l.namespace, "alpha", linked(app("web", "7-web"), vnf, "")) // Within one second, the name decides.
		h := l.start()
		selflink := func() any { return l.document("Service", "web")["selflink"] }
		Eventually(l.states).Should(HaveLen(1))
		younger := newScope(ctx, l.namespace, "beta", app("web", "7-web"))
		for _, s := range []*corev1alpha2.HealthScope{older, younger} {
			Eventually(synced(ctx, s)).Should(Equal("True Synced"))
		}
		Expect(selflink()).To(HaveSuffix("/alpha"))
		Expect(links(l.document("Service", "web"))).To(HaveLen(1))

		By("restarting, in whatever order the scopes are judged")
		h.stop()
		n := len(l.Requests())
		l.start()
		Eventually(func() []string { return l.asked(n) }).ShouldNot(BeEmpty())
		Consistently(func() []string { return l.written(n) }).Should(BeEmpty())

		By("deleting the older one")
		Expect(api.Delete(ctx, older)).To(Succeed())
		Eventually(selflink).Should(HaveSuffix("/beta"))
		Eventually(func() []string { return links(l.document("Service", "web")) }).Should(BeEmpty())
	})

	It("touches nothing of others", func(ctx SpecContext) {
		l.config.ResyncSeconds = new(int32(1))
		foreign := simulator.Fixture{URI: resources + "/k8s-resource/theirs", Body: map[string]any{
			"id": "theirs", "name": "web", "group": "", "version": "v1", "kind": "Foreign", "namespace": l.namespace, "selflink": "http://theirs",
			"data-owner": "somebody", "data-source": "local", "labels": []any{prefix + "status=Failed"},
		}}
		Expect(l.Seed(foreign)).To(Succeed())
		before := l.document("Foreign", "web")
		report(ctx, l.namespace, "7-web", service(l.namespace, "web"))
		s := newScope(ctx, l.namespace, "shop", app("web", "7-web"))
		l.start()
		Eventually(l.states).Should(HaveKeyWithValue("Service/web", "Ready"))

		By("adding a label of another owner to a document of ours")
		ours := maps.Clone(l.document("Service", "web"))
		labels, _ := ours["labels"].([]string)
		ours["labels"] = append(slices.Clone(labels), "team=blue")
		Expect(l.Seed(simulator.Fixture{URI: fmt.Sprintf("%s/k8s-resource/%v", resources, ours["id"]), Body: ours})).To(Succeed())
		n := len(l.Requests())
		Eventually(func() int { return len(l.asked(n)) }).Should(BeNumerically(">=", 2), "the first may have been answered before")
		rewrite(ctx, l.namespace, "7-web", func(status *k8spluginv1alpha1.ResourceBundleStateStatus) { status.Resources[0].State = "Failed" })
		Eventually(l.states).Should(HaveKeyWithValue("Service/web", "Failed"))
		Expect(l.document("Service", "web")["labels"]).To(ContainElement("team=blue"))

		Expect(api.Delete(ctx, s)).To(Succeed())
		Eventually(l.states).Should(BeEmpty())
		Expect(l.document("Foreign", "web")).To(Equal(before))
	})
})

// since returns the time since which a resource is in its state in a bundle.
func since(ctx SpecContext, namespace, bundle, resource string) string {
	GinkgoHelper()
	var found string
	rewrite(ctx, namespace, bundle, func(status *k8spluginv1alpha1.ResourceBundleStateStatus) {
		for _, r := range status.Resources {
			if r.Name == resource && r.Since != nil {
				found = r.Since.UTC().Format("2006-01-02T15:04:05Z")
			}
		}
	})
	return found
}
