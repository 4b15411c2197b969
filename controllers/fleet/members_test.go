package fleet_test

import (
	"net/url"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/controllers/fleet/kubeconfig"
	"github.com/healthscope/healthscope/e2e/faults"
	"github.com/healthscope/healthscope/e2e/suite"
)

// wire starts a wire to the member's API server.
func wire() *faults.Wire {
	GinkgoHelper()
	address, err := url.Parse(edge.Config().Host)
	Expect(err).NotTo(HaveOccurred())
	w, err := faults.NewWire(address.Host)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(w.Close)
	return w
}

var _ = Describe("Members", func() {
	var s *site
	var beat *heartbeat
	var sink *k8spluginv1alpha1.ResourceBundleState
	BeforeEach(func(ctx SpecContext) {
		s = newSite(ctx)
		beat = monitor(edgeAPI, s.watch)
		sink = newBundleIn(ctx, edgeAPI, s.shop, "1-sink")
		fillIn(ctx, edgeAPI, sink, time.Now(), workload(s.shop, "web", 2))
	})
	connected := func() {
		GinkgoHelper()
		Eventually(s.edge, "30s").Should(HaveField("Reachability", fleet.Connected))
		Expect(s.member("1-sink", "web")()).To(Equal("Ready  "))
	}

	It("come, are followed, and leave nothing behind when they go", func(ctx SpecContext) {
		s.run(ctx)
		Expect(s.Clusters()).To(Equal([]string{"local"}))
		secret := s.secret(ctx, s.account(ctx, "hub", edge.Config().Host), nil)
		connected()
		running := goleak.IgnoreCurrent() // This includes the goroutines of the hub, of the spec and of one member.
		Eventually(s.went).Should(HaveExactElements(fleet.Connected))
		Expect(s.Clusters()).To(Equal([]string{"local", edge01}))
		Eventually(s.edge).Should(HaveField("LastSeen", BeTemporally(">", time.Now())), "it is seen again and again")
		Eventually(s.events(ctx)).Should(ConsistOf(HavePrefix("Normal Connected")))

		b := newBundleIn(ctx, edgeAPI, s.shop, "1-source")
		fillIn(ctx, edgeAPI, b, time.Now(), workload(s.shop, "db", 1))
		Eventually(s.member("1-source", "db")).Should(HavePrefix("Pending"))
		configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.shop, Name: "c"}}
		Expect(edgeAPI.Create(ctx, configMap)).To(Succeed())
		s.objects.Want(someone, map[fleet.Kind]struct{}{{Cluster: edge01, GroupVersionKind: configMaps}: {}})
		look := func() string {
			found := s.objects.Get(edge01, configMaps, types.NamespacedName{Namespace: s.shop, Name: "c"})
			return string(found.Result.State)
		}
		Eventually(look).Should(Equal("Ready"))

		By("removing the Secret")
		Expect(api.Delete(ctx, secret)).To(Succeed())
		Eventually(s.Clusters).Should(Equal([]string{"local"}))
		Expect(s.Named(s.shop, "1-sink")).To(BeEmpty())
		Expect(s.objects.Get(edge01, configMaps, types.NamespacedName{Namespace: s.shop, Name: "c"}).Result.Reason).To(BeEquivalentTo("UnknownCluster"))

		By("making it again, and removing it")
		data := secret.Data[corev1alpha2.KubeconfigKey]
		secret = s.secret(ctx, data, nil)
		connected()
		Expect(api.Delete(ctx, secret)).To(Succeed())
		Eventually(s.Clusters).Should(Equal([]string{"local"}))
		Eventually(func() error { return goleak.Find(running) }).Should(Succeed())
	}, SpecTimeout(3*time.Minute))

	It("are read again however soon their Secret is back", func(ctx SpecContext) {
		s.run(ctx)
		secret := s.secret(ctx, s.account(ctx, "hub", edge.Config().Host), nil)
		connected()
		data := secret.Data[corev1alpha2.KubeconfigKey]
		const rounds = 20
		left := make(chan struct{}, rounds)
		changes, cancel := s.Subscribe(fleet.Clusters)
		DeferCleanup(cancel)
		go changes.Deliver(ctx, func(c fleet.Change) {
			if _, known := s.State(edge01); !known && c == (fleet.ClusterChange{Cluster: edge01}) { // Its removal has a SelectionChange too.
				left <- struct{}{}
			}
		})
		for range rounds {
			gone := time.Now()
			Expect(api.Delete(ctx, secret)).To(Succeed())
			Eventually(left).Should(Receive(), "a Secret that is back before anybody has looked has not been away")
			secret = s.secret(ctx, data, nil)
			Eventually(s.edge).Should(And(HaveField("Reachability", fleet.Connected), HaveField("Since", BeTemporally(">", gone))))
			Eventually(s.member("1-sink", "web")).Should(Equal("Ready  "))
		}
	}, SpecTimeout(4*time.Minute))

	It("leave nothing behind when they go before they have been read", func(ctx SpecContext) {
		s.run(ctx)
		secret := s.secret(ctx, s.account(ctx, "hub", edge.Config().Host, s.shop), map[string]string{corev1alpha2.AnnotationNamespaces: s.shop})
		connected()
		Expect(api.Delete(ctx, secret)).To(Succeed())
		Eventually(s.Clusters).Should(Equal([]string{"local"}))
		running := goleak.IgnoreCurrent()

		By("naming namespaces that may not be read")
		secret = s.secret(ctx, secret.Data[corev1alpha2.KubeconfigKey], map[string]string{corev1alpha2.AnnotationNamespaces: "default, kube-system"})
		Eventually(s.edge, "30s").Should(HaveField("Message", ContainSubstring("the controller may not list and watch ResourceBundleStates")))
		Expect(api.Delete(ctx, secret)).To(Succeed())
		Eventually(s.Clusters).Should(Equal([]string{"local"}))
		Eventually(func() error { return goleak.Find(running) }).Should(Succeed())
	}, SpecTimeout(2*time.Minute))

	It("are served from the old connection until the new one is there", func(ctx SpecContext) {
		s.run(ctx)
		secret := s.secret(ctx, s.account(ctx, "hub", edge.Config().Host), nil)
		connected()
		changes := s.of(s.shop)()

		By("rotating to a token that does not work")
		bad, err := kubeconfig.WithToken(secret.Data[corev1alpha2.KubeconfigKey], "no-such-token")
		Expect(err).NotTo(HaveOccurred())
		setData(ctx, secret, bad)
		Eventually(s.edge, "30s").Should(HaveField("Message", ContainSubstring("the new kubeconfig does not work, and the one before stays in use: the API server does not accept the credentials (401")))
		Eventually(s.events(ctx)).Should(ContainElement(HavePrefix("Warning RotationFailed")))
		Expect(s.edge().Reachability).To(Equal(fleet.Connected))

		By("rotating to a kubeconfig that is refused")
		setData(ctx, secret, []byte(strings.ReplaceAll(string(bad), "token: no-such-token", "exec: {command: /bin/sh, apiVersion: client.authentication.k8s.io/v1}")))
		Eventually(s.edge).Should(HaveField("Message", ContainSubstring("the new kubeconfig is refused, and the one before stays in use")))
		Expect(s.edge().Reachability).To(Equal(fleet.Connected))

		By("rotating to a token that works")
		setData(ctx, secret, s.account(ctx, "hub2", edge.Config().Host))
		Eventually(s.edge).Should(SatisfyAll(HaveField("Reachability", fleet.Connected), HaveField("Message", "")))
		Expect(edgeAPI.Delete(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.watch, Name: "hub"}})).To(Succeed())
		Consistently(s.of(s.shop)).Should(Equal(changes), "nothing has changed for those who look at bundles")
		b := newBundleIn(ctx, edgeAPI, s.shop, "1-source")
		fillIn(ctx, edgeAPI, b, time.Now(), workload(s.shop, "db", 1))
		Eventually(s.member("1-source", "db")).Should(HavePrefix("Pending"))
		Eventually(s.went).Should(HaveExactElements(fleet.Connected))
	}, SpecTimeout(3*time.Minute))

	It("are read in the namespaces that their Secret names", func(ctx SpecContext) {
		s.clock, s.timeout = suite.NewFastClock(4), 40*time.Second
		elsewhere := suite.NewNamespace(ctx, api)
		Expect(edgeAPI.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: elsewhere}})).To(Succeed())
		fillIn(ctx, edgeAPI, newBundleIn(ctx, edgeAPI, elsewhere, "1-hidden"), time.Now(), workload(elsewhere, "web", 2))
		s.run(ctx)
		data := s.account(ctx, "hub", edge.Config().Host, s.shop, elsewhere)
		secret := s.secret(ctx, data, map[string]string{corev1alpha2.AnnotationNamespaces: s.shop + ", " + elsewhere})
		connected()
		Expect(s.Named(elsewhere, "1-hidden")).To(HaveLen(1))

		By("naming one of them")
		setAnnotation(ctx, secret, corev1alpha2.AnnotationNamespaces, s.shop)
		Eventually(func() []*fleet.Bundle { return s.Named(elsewhere, "1-hidden") }).Should(BeEmpty())
		connected()
		s.objects.Want(someone, map[fleet.Kind]struct{}{{Cluster: edge01, GroupVersionKind: configMaps}: {}})
		state := func(namespace string) func() string {
			return func() string {
				found := s.objects.Get(edge01, configMaps, types.NamespacedName{Namespace: namespace, Name: "c"})
				return string(found.Result.State) + " " + string(found.Result.Reason)
			}
		}
		Eventually(state(s.shop)).Should(Equal("NotPresent NotFound"))
		Eventually(state(elsewhere)).Should(Equal("Unknown Forbidden"))

		By("naming one for which there is no right")
		setAnnotation(ctx, secret, corev1alpha2.AnnotationNamespaces, "default")
		Eventually(s.edge, "30s").Should(HaveField("Message", ContainSubstring("the controller may not list and watch ResourceBundleStates")))

		By("naming none")
		setAnnotation(ctx, secret, corev1alpha2.AnnotationNamespaces, " , ")
		Eventually(s.edge).Should(HaveField("Message", ContainSubstring("it names no namespace")))
	}, SpecTimeout(3*time.Minute))

	It("are Unreachable while their API server is away, and right again when it is back", func(ctx SpecContext) {
		s.run(ctx)
		s.secret(ctx, s.account(ctx, "hub", edge.Config().Host), nil)
		connected()
		changes := s.of(s.shop)()

		By("restarting it")
		gone := time.Now()
		Expect(edge.StopAPIServer()).To(Succeed())
		Expect(edge.StartAPIServer(ctx)).To(Succeed())
		another := newBundleIn(ctx, edgeAPI, s.shop, "1-source")
		Eventually(func() []*fleet.Bundle { return s.Named(s.shop, another.Name) }, "90s").Should(HaveLen(1))
		changes++ // Changes before this one are delivered before it.
		// On a slow machine the outage may have been long enough to show.
		if time.Since(gone) < 10*time.Second {
			Expect(s.went()).To(HaveExactElements(fleet.Connected))
			Consistently(s.of(s.shop)).Should(Equal(changes), "a restart changes no bundle")
		}
		went, changes := s.went(), s.of(s.shop)()

		By("killing it")
		seen := s.edge().LastSeen
		Expect(edge.StopAPIServer()).To(Succeed())
		stopped := time.Now()
		Eventually(s.edge, "60s").Should(HaveField("Reachability", fleet.Unreachable))
		Expect(s.edge().Message).To(ContainSubstring("the API server does not answer"))
		Expect(s.edge().LastSeen).To(And(BeTemporally(">=", seen), BeTemporally("<=", stopped)))
		Expect(s.member("1-sink", "web")()).To(Equal("Unknown ClusterUnreachable Ready"))
		Expect(s.Named(s.shop, "1-sink")[0]).To(HaveField("Stale", true))
		lost := s.edge()
		Eventually(s.events(ctx)).Should(ContainElement(HavePrefix("Warning Unreachable")))
		Consistently(s.edge).Should(Equal(lost), "what is lost stands still")
		Expect(s.of(s.shop)()).To(Equal(changes+2), "each of the two bundles was lost")

		By("starting it again")
		Expect(edge.StartAPIServer(ctx)).To(Succeed())
		Eventually(s.edge, "90s").Should(HaveField("Reachability", fleet.Connected))
		Expect(s.member("1-sink", "web")()).To(Equal("Ready  "))
		// An API server that has just started may refuse requests that its roles allow, until it has read the roles.
		refused := func(r fleet.Reachability) bool { return r == fleet.Forbidden }
		Expect(slices.DeleteFunc(s.went(), refused)).To(Equal(append(went, fleet.Unreachable, fleet.Connected)))
		Expect(s.of(s.shop)()).To(Equal(changes+4), "each was lost and came back, and nothing else")
		Expect(s.edge().Since).To(BeTemporally(">", lost.Since))
	}, SpecTimeout(8*time.Minute))

	It("are Unreachable in a black hole, and not for a reset or a connection that is half open", func(ctx SpecContext) {
		w := wire()
		s.timeout = 20 * time.Second // A half-open connection is detected after 13 seconds, and the machine may pause.
		s.run(ctx)
		s.secret(ctx, s.account(ctx, "hub", "https://"+w.Addr()), nil)
		connected()
		b := newBundleIn(ctx, edgeAPI, s.shop, "1-source")

		By("resetting connections")
		w.Reset()
		fillIn(ctx, edgeAPI, b, time.Now(), workload(s.shop, "db", 1))
		Eventually(s.member("1-source", "db"), "30s").Should(HavePrefix("Pending"))

		By("leaving connections half open")
		w.HalfOpen()
		fillIn(ctx, edgeAPI, b, time.Now(), workload(s.shop, "db", 2))
		Eventually(s.member("1-source", "db"), "60s").Should(HavePrefix("Ready"))
		Eventually(s.went).Should(HaveExactElements(fleet.Connected))

		By("swallowing everything")
		w.BlackHole()
		Eventually(s.edge, "60s").Should(HaveField("Reachability", fleet.Unreachable))
		Expect(s.edge().Message).To(ContainSubstring("the API server does not answer"))
		fillIn(ctx, edgeAPI, b, time.Now(), workload(s.shop, "db", 1))
		w.Mend()
		Eventually(s.edge, "60s").Should(HaveField("Reachability", fleet.Connected))
		Expect(s.member("1-source", "db")()).To(HavePrefix("Pending"), "the true state shows at once")
		Eventually(s.went).Should(HaveExactElements(fleet.Connected, fleet.Unreachable, fleet.Connected))
	}, SpecTimeout(5*time.Minute))

	It("are MonitorStale and MonitorMissing without a monitor, but for what no monitor of ours has filled", func(ctx SpecContext) {
		foreign := newBundleIn(ctx, edgeAPI, s.shop, "1-foreign")
		foreign.Status.Ready = true
		foreign.Status.ConfigMapStatuses = []byte(`[{"metadata":{"name":"c","namespace":"` + s.shop + `"}}]`)
		Expect(edgeAPI.Status().Update(ctx, foreign)).To(Succeed())
		s.clock, s.timeout = suite.NewFastClock(10), 10*time.Minute // A pause of the machine does not make the cluster Unreachable.
		s.run(ctx)
		s.secret(ctx, s.account(ctx, "hub", edge.Config().Host), nil)
		Eventually(s.member("1-sink", "web"), "30s").Should(Equal("Ready  "))
		beat.stop()
		Eventually(s.edge, "60s").Should(HaveField("Reachability", fleet.MonitorStale))
		Expect(s.member("1-sink", "web")()).To(Equal("Unknown MonitorStale Ready"))
		Expect(s.member("1-foreign", "c")()).To(HavePrefix("Ready"))

		Expect(edgeAPI.Delete(ctx, leaseOf(s.watch))).To(Succeed())
		Eventually(s.edge).Should(HaveField("Reachability", fleet.MonitorMissing))
		monitor(edgeAPI, s.watch)
		Eventually(s.member("1-sink", "web"), "30s").Should(Equal("Ready  "))
	}, SpecTimeout(4*time.Minute))
})
