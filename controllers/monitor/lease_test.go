package monitor_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/healthscope/healthscope/controllers/monitor"
	"github.com/healthscope/healthscope/e2e/suite"
)

var _ = Describe("A monitor's life", func() {
	var namespace string

	BeforeEach(func(ctx SpecContext) {
		namespace = newNamespace(ctx)
	})

	It("is shown by one Lease, which is renewed by time and released at the end", func(ctx SpecContext) {
		m := start(ctx, monitor.Options{LeaseNamespace: namespace})
		var leases coordinationv1.LeaseList
		Expect(api.List(ctx, &leases, client.InNamespace(namespace))).To(Succeed())
		Expect(leases.Items).To(HaveLen(1))
		Expect(leases.Items[0].Name).To(Equal(monitor.LeaseName))

		lease := func() *coordinationv1.Lease {
			var lease coordinationv1.Lease
			Expect(api.Get(ctx, types.NamespacedName{Namespace: namespace, Name: monitor.LeaseName}, &lease)).To(Succeed())
			return &lease
		}
		first := lease().Spec.RenewTime.Time
		Eventually(func() time.Time { return lease().Spec.RenewTime.Time }).Should(BeTemporally(">", first))
		m.stop()
		Expect(*lease().Spec.HolderIdentity).To(BeEmpty(), "the next monitor need not wait")
	})

	It("keeps a second monitor from writing", func(ctx SpecContext) {
		options := monitor.Options{LeaseNamespace: namespace, Registerer: prometheus.NewRegistry()}
		first := start(ctx, options)

		second, seen := newManager(plane.Config(), GinkgoLogr, options)
		ended := make(chan error, 1)
		go func() { ended <- second.Start(ctx) }()

		create(ctx, newBundle(namespace, "1-sink"), newPod(namespace, "pod", "1-sink"))
		Eventually(statesOf(ctx, namespace, "1-sink")).Should(HaveLen(1))
		Consistently(second.Elected()).ShouldNot(BeClosed())
		Expect(seen.writes()).To(BeEmpty())
		Expect(seen.all()).NotTo(ContainElement(ContainSubstring("/pods")), "one that waits holds no objects")

		By("taking over when the first ends")
		first.stop()
		create(ctx, newService(namespace, "service", "1-sink"))
		Eventually(statesOf(ctx, namespace, "1-sink")).Should(HaveLen(2))
		Expect(seen.writes()).NotTo(BeEmpty())
		DeferCleanup(func() { Eventually(ended).Should(Receive(BeNil())) })
	})

	It("ends without leaving anything behind", func(ctx SpecContext) {
		existing := goleak.IgnoreCurrent()
		connection := goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*clientConnReadLoop).run") // It is kept for the next user.
		m := start(ctx, monitor.Options{
			LeaseNamespace: namespace,
			Kinds:          append(monitor.DefaultKinds(), schema.GroupVersionKind{Group: "missing.example.io", Version: "v1", Kind: "Widget"}),
			WatchClock:     suite.NewFastClock(10), // The start waits ten seconds for the kind.
		})
		create(ctx, newBundle(namespace, "1-sink"), newPod(namespace, "pod", "1-sink"))
		Eventually(statesOf(ctx, namespace, "1-sink")).Should(HaveLen(1))
		m.stop()
		Eventually(func() error { return goleak.Find(existing, connection) }).Should(Succeed())
	})

	It("goes on through an outage of the API server, in which nothing vanishes", func(ctx SpecContext) {
		m := start(ctx, monitor.Options{LeaseNamespace: namespace})
		pod := newPod(namespace, "pod", "1-sink")
		create(ctx, newBundle(namespace, "1-sink"), pod, newService(namespace, "service", "1-sink"))
		Eventually(statesOf(ctx, namespace, "1-sink")).Should(HaveLen(2))
		before := len(m.writes())

		Expect(plane.StopAPIServer()).To(Succeed())
		Expect(plane.StartAPIServer(ctx)).To(Succeed())
		setReady(ctx, pod, true)
		Eventually(statesOf(ctx, namespace, "1-sink")).Should(HaveKeyWithValue("Pod/pod", "Ready"))
		Expect(states(get(ctx, namespace, "1-sink"))).To(HaveLen(2))
		Expect(len(m.writes())-before).To(BeNumerically("<=", 2), "the outage itself is no reason to write, but the API server may drop a write just after its start")
	})
})
