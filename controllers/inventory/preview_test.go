package inventory_test

import (
	"context"
	"fmt"
	"regexp"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/healthscope/healthscope/aai/plan"
	"github.com/healthscope/healthscope/aai/simulator"
	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/controllers/inventory"
	"github.com/healthscope/healthscope/controllers/scope"
	"github.com/healthscope/healthscope/e2e/suite"
	"github.com/healthscope/healthscope/healthscope"
)

var _ = Describe("A preview", func() {
	It("predicts each write of the controller, and what waits for a VNF", func(ctx SpecContext) {
		const missing = "vnf-9"
		l := newLab(ctx)
		l.config.Links = []configv1alpha1.LinkPolicy{{Namespace: l.namespace, GenericVNFIDs: []string{vnf, missing}}}
		report(ctx, l.namespace, "7-web", deployment(l.namespace, "web", true), service(l.namespace, "old"))
		report(ctx, l.namespace, "7-db", service(l.namespace, "db"))
		s := newScope(ctx, l.namespace, "shop", app("web", "7-web"), app("db", "7-db"))
		h := l.start()
		Eventually(synced(ctx, s)).Should(Equal("True Synced"))
		h.stop()
		report(ctx, l.namespace, "7-web", deployment(l.namespace, "web", false), service(l.namespace, "new"))
		report(ctx, l.namespace, "7-db", service(l.namespace, "db"), service(l.namespace, "db-too"))
		edit(ctx, s, func(s *corev1alpha2.HealthScope) {
			s.Spec.Apps[0] = linked(s.Spec.Apps[0], vnf, "")
			s.Spec.Apps[1] = linked(s.Spec.Apps[1], missing, "")
		})

		p := l.preview(ctx)
		Expect(p.Tenants).To(HaveLen(1))
		var predicted, waiting []string
		for _, op := range p.Tenants[0].Plan.Operations {
			predicted = append(predicted, operation(p.Tenants[0], op))
		}
		for _, w := range p.Tenants[0].Waiting {
			waiting = append(waiting, operation(p.Tenants[0], w.Operation))
			Expect(w.Message).To(ContainSubstring(`generic-vnf "` + missing + `"`))
		}
		Expect(waiting).To(ConsistOf("Relate Service/db", "Create Service/db-too"))
		Expect(predicted).To(ContainElements("Create Service/new", "Update Deployment/web", "Relate Deployment/web", "Delete Service/old", "Update Service/db"))

		n := len(l.audited())
		h = l.start()
		Eventually(func() []string { return l.audited()[n:] }).Should(ConsistOf(predicted))
		Eventually(synced(ctx, s)).Should(Equal("False Pending"))
		Expect(message(ctx, s)).To(ContainSubstring(`generic-vnf "` + missing + `" does not exist in A&AI`))
		Expect(*reading(ctx, s)(Default).Status.Inventory).To(Equal(corev1alpha2.InventoryStatus{Synced: 2, Pending: 2}))
		Expect(h.exposition()).To(ContainSubstring(`healthscope_aai_problem{problem="vnf"} 1`))
		Expect(l.audited()[n:]).To(ConsistOf(predicted))

		By("creating the VNF")
		Expect(l.Seed(simulator.GenericVNF(missing))).To(Succeed())
		edit(ctx, s, func(s *corev1alpha2.HealthScope) {
			s.Annotations = map[string]string{inventory.AnnotationResync: "now"}
		})
		Eventually(func() []string { return l.audited()[n:] }).Should(ConsistOf(append(predicted, waiting...)))
		Eventually(synced(ctx, s)).Should(Equal("True Synced"))
		Expect(h.exposition()).NotTo(ContainSubstring(`healthscope_aai_problem{`))
	})
})

// preview returns the preview of a hub, which writes nothing.
func (l *lab) preview(ctx context.Context) inventory.Preview { //nolint:contextcheck // The manager outlives what the node waits for.
	GinkgoHelper()
	mgr := l.newManager(&wiretap{gates: map[string]chan struct{}{}})
	policy := healthscope.DefaultPolicy()
	objects := fleet.NewObjects(nil, nil)
	view, err := fleet.Setup(mgr, fleet.Options{ClusterName: "local", Policy: policy, Objects: objects})
	Expect(err).NotTo(HaveOccurred())
	registry := scope.NewRegistry()
	i, err := inventory.New(inventory.Options{Config: l.config, LabelKeys: []string{"app.kubernetes.io/name"}, View: view, Registry: registry, Metrics: prometheus.NewRegistry()})
	Expect(err).NotTo(HaveOccurred())
	running, cancel := suite.Lasting()
	Expect(scope.Setup(mgr, scope.Options{View: view, Objects: objects, Registry: registry, Policy: policy})).To(Succeed())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(running) }()
	defer func() {
		cancel()
		Eventually(ended).Should(Receive(BeNil()))
	}()
	p, err := i.Preview(ctx, mgr.GetClient())
	Expect(err).NotTo(HaveOccurred())
	return p
}

// operation returns an operation with its object as text.
func operation(p inventory.TenantPreview, op plan.Operation) string {
	d := p.Current[op.Key]
	if op.Verb == plan.Create {
		d = op.Document
	}
	return fmt.Sprintf("%s %s/%s", op.Verb, d.Kind, d.Name)
}

// write matches a write in the log that A&AI has acknowledged.
var write = regexp.MustCompile(`msg="A&AI write" .*verb=(\S+) .*kind=(\S+) .*name=(\S+)`)

// audited returns the writes that A&AI has acknowledged, in the format of operation.
func (l *lab) audited() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []string
	for _, m := range write.FindAllStringSubmatch(l.output.String(), -1) {
		all = append(all, fmt.Sprintf("%s %s/%s", m[1], m[2], m[3]))
	}
	return all
}
