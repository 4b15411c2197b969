package scope_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	probes "github.com/healthscope/healthscope/controllers/probe"
	"github.com/healthscope/healthscope/e2e/suite"
	"github.com/healthscope/healthscope/healthscope/probe"
)

// listener is a target of probes, or a victim that must not be reached.
type listener struct {
	host string
	port int32
	// connections counts the accepted connections. requests are the received requests.
	connections atomic.Int64
	mu          sync.Mutex
	requests    []*http.Request
	answer      func(http.ResponseWriter, *http.Request)
}

// listen starts a target at an address.
func listen(address string, answer func(http.ResponseWriter, *http.Request)) *listener {
	GinkgoHelper()
	l := &listener{answer: answer}
	ctx, cancel := suite.Lasting()
	defer cancel()
	socket, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(address, "0"))
	Expect(err).NotTo(HaveOccurred())
	at, ok := socket.Addr().(*net.TCPAddr)
	Expect(ok).To(BeTrue())
	l.host, l.port = address, int32(at.Port)
	server := &http.Server{Handler: l, ReadHeaderTimeout: time.Minute, ConnState: func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			l.connections.Add(1)
		}
	}}
	go func() { _ = server.Serve(socket) }()
	DeferCleanup(server.Close)
	return l
}

// ServeHTTP implements http.Handler.
func (l *listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	l.requests = append(l.requests, r)
	answer := l.answer
	l.mu.Unlock()
	answer(w, r)
}

// set changes the response of the target.
func (l *listener) set(answer func(http.ResponseWriter, *http.Request)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answer = answer
}

// asked returns the methods and URIs of the received requests.
func (l *listener) asked() (paths []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.requests {
		paths = append(paths, r.Method+" "+r.RequestURI)
	}
	return paths
}

// header returns the header of the first request.
func (l *listener) header() http.Header {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.requests[0].Header
}

// code returns a handler that responds with a status code.
func code(status int) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "the body of the target")
	}
}

// backend is a Service with a pod and an EndpointSlice, as Kubernetes' controllers and a kubelet leave them.
type backend struct {
	service *corev1.Service
	pod     *corev1.Pod
	slice   *discoveryv1.EndpointSlice
}

// newBackend returns a Service of a scope whose only endpoint is a listener. The caller may change it before create.
func newBackend(namespace, name, scope string, l *listener) *backend {
	b := &backend{
		service: &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{corev1alpha2.LabelScopePrefix + scope: "true"}},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "web", Port: 80, TargetPort: intstr.FromInt32(l.port)}}},
		},
		pod: &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
			Status:     corev1.PodStatus{Phase: corev1.PodRunning, PodIP: l.host, PodIPs: []corev1.PodIP{{IP: l.host}}},
		},
		slice: &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: name}},
			AddressType: discoveryv1.AddressTypeIPv4,
			Ports:       []discoveryv1.EndpointPort{{Name: new("web"), Port: new(l.port), Protocol: new(corev1.ProtocolTCP)}},
			Endpoints: []discoveryv1.Endpoint{{
				Addresses: []string{l.host}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
				TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: name},
			}},
		},
	}
	return b
}

// create creates the objects. The pod and the EndpointSlice are left out if they are nil.
func (b *backend) create(ctx context.Context) {
	GinkgoHelper()
	if b.pod != nil {
		status := b.pod.Status
		Expect(api.Create(ctx, b.pod)).To(Succeed())
		b.pod.Status = status
		Expect(api.Status().Update(ctx, b.pod)).To(Succeed())
	}
	if b.slice != nil {
		Expect(api.Create(ctx, b.slice)).To(Succeed())
	}
	Expect(api.Create(ctx, b.service)).To(Succeed())
}

// oneCluster is a fleet of one cluster that is always Connected.
type oneCluster struct{ config *rest.Config }

func (oneCluster) State(string) (fleet.ClusterState, bool) {
	return fleet.ClusterState{Name: "local", Local: true, Reachability: fleet.Connected}, true
}

func (c oneCluster) Access(string) (fleet.Access, bool) {
	client, err := rest.HTTPClientFor(c.config)
	return fleet.Access{Config: c.config, Client: client}, err == nil
}

func (oneCluster) Subscribe(fleet.Topic) (*fleet.Subscription, func()) {
	return fleet.NewSubscription(), func() {}
}

// prober is a Prober under test.
type prober struct{ *probes.Prober }

// startProber starts a Prober with the rights of the administrator.
func startProber() *prober {
	GinkgoHelper()
	p := &prober{probes.New(probes.Options{Clusters: oneCluster{plane.Config()}})}
	ctx, cancel := suite.Lasting()
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	DeferCleanup(func() {
		cancel()
		Eventually(ended).Should(Receive(BeNil()), "the prober ends")
	})
	return p
}

// report returns a function that returns the result and the cause that the prober has for a Service of the scope "web".
func (p *prober) report(namespace, service string, spec corev1alpha2.HealthScopeSpec) func() string {
	GinkgoHelper()
	parsed, err := probe.Parse(&spec)
	Expect(err).NotTo(HaveOccurred())
	want := &probe.Want{Spec: parsed, Clusters: []string{"local"}}
	scope := types.NamespacedName{Namespace: namespace, Name: "web"}
	DeferCleanup(func() { p.Want(scope, nil) })
	return func() string {
		for _, s := range p.Want(scope, want).Services {
			if s.Name == service {
				return fmt.Sprintf("%s: %s", []string{"undecided", "passing", "failing", "blocked"}[s.Result], s.Cause+s.Problem)
			}
		}
		return "not probed"
	}
}

var _ = Describe("A Prober", func() {
	It("asks through the API server", func(ctx SpecContext) {
		target := listen(suite.OwnAddress(), code(http.StatusOK))
		namespace := newNamespace(ctx)
		newBackend(namespace, "front", "web", target).create(ctx)
		p := startProber()
		says := p.report(namespace, "front", corev1alpha2.HealthScopeSpec{ProbeMethod: "GET", ProbeEndpoint: "/health", ProbeInterval: new(int32(1))})
		Eventually(says).Should(Equal("passing: "))
		Expect(target.asked()[0]).To(Equal("GET /health"))
		target.set(code(http.StatusServiceUnavailable))
		Eventually(says).Should(Equal("failing: status code 503"))
		target.set(code(http.StatusTemporaryRedirect))
		Eventually(says).Should(Equal("passing: "))
	})
})

var _ = DescribeTable("A Prober asks as the scope says",
	func(ctx SpecContext, method, scheme string, serve func() *listener, ready bool, want string) {
		namespace := newNamespace(ctx)
		target := serve()
		b := newBackend(namespace, "front", "web", target)
		b.slice.Endpoints[0].Conditions.Ready = &ready
		b.create(ctx)
		spec := corev1alpha2.HealthScopeSpec{ProbeMethod: method, ProbeScheme: scheme, ProbeEndpoint: "/health", ProbeInterval: new(int32(86400))}
		Eventually(startProber().report(namespace, "front", spec)).Should(Equal(want))
	},
	Entry("by HEAD", "HEAD", "HTTP", func() *listener { return listen(suite.OwnAddress(), code(http.StatusOK)) }, true, "passing: "),
	Entry("by HEAD, of what is not well", "HEAD", "", func() *listener { return listen(suite.OwnAddress(), code(http.StatusServiceUnavailable)) }, true, "undecided: status code 503"),
	Entry("by HEAD, without an endpoint", "HEAD", "", func() *listener { return listen(suite.OwnAddress(), code(http.StatusOK)) }, false, "blocked: it has no ready endpoint, or none that can be reached"),
	Entry("over TLS, whoever has signed", "GET", "HTTPS", func() *listener { return listenTLS(suite.OwnAddress(), code(http.StatusOK)) }, true, "passing: "),
	Entry("over TLS, of what speaks none", "GET", "HTTPS", func() *listener { return listen(suite.OwnAddress(), code(http.StatusOK)) }, true, "undecided: no TLS"),
	Entry("where nothing listens", "GET", "HTTP", func() *listener { return &listener{host: suite.OwnAddress(), port: 1} }, true, "undecided: connection refused"),
)

// listenTLS starts a target with a certificate that no authority has signed.
func listenTLS(address string, answer func(http.ResponseWriter, *http.Request)) *listener {
	GinkgoHelper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(answer))
	ctx, cancel := suite.Lasting()
	defer cancel()
	socket, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(address, "0"))
	Expect(err).NotTo(HaveOccurred())
	Expect(server.Listener.Close()).To(Succeed())
	server.Listener = socket
	server.StartTLS()
	DeferCleanup(server.Close)
	at, ok := socket.Addr().(*net.TCPAddr)
	Expect(ok).To(BeTrue())
	return &listener{host: address, port: int32(at.Port)}
}

// withProbes enables probes.
func withProbes(s *settings) { s.probes = true }

// grantProbes gives the controller's ServiceAccount the right to probe in a namespace, as the chart does.
func grantProbes(ctx context.Context, namespace string) {
	GinkgoHelper()
	name := metav1.ObjectMeta{Namespace: namespace, Name: "probes"}
	Expect(api.Create(ctx, &rbacv1.Role{ObjectMeta: name, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"services/proxy"}, Verbs: []string{"get"}},
	}})).To(Succeed())
	Expect(api.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: name, Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: home, Name: account}},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "probes"},
	})).To(Succeed())
}

// everySecond returns the spec of a scope that probes /health every second.
func everySecond() corev1alpha2.HealthScopeSpec {
	return corev1alpha2.HealthScopeSpec{ProbeMethod: "GET", ProbeEndpoint: "/health", ProbeInterval: new(int32(1))}
}

// probesReady returns a function that returns the condition ProbesReady of a scope as text: status, reason and message.
func probesReady(ctx context.Context, s *corev1alpha2.HealthScope) func(Gomega) string {
	return func(g Gomega) string {
		now := reading(ctx, s)(g)
		c := meta.FindStatusCondition(now.Status.Conditions, corev1alpha2.ConditionProbesReady)
		if c == nil {
			return "none"
		}
		return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
	}
}

var _ = Describe("A scope with probes", func() {
	It("is as healthy as its Services answer", func(ctx SpecContext) {
		target := listen(suite.OwnAddress(), code(http.StatusOK))
		namespace := newNamespace(ctx)
		grantProbes(ctx, namespace)
		b := newBackend(namespace, "front", "web", target)
		b.create(ctx)
		c := start(withProbes)
		s := newScope(ctx, namespace, "web", everySecond())
		Eventually(reading(ctx, s)).Should(haveHealth(healthy, "1/1"))
		Eventually(probesReady(ctx, s)).Should(Equal("True Probing: 1 of 1 Services are probed"))
		Expect(read(ctx, s).Status.ScopeHealthCondition).To(Equal(corev1alpha2.ScopeHealthCondition{HealthStatus: "HEALTHY", Total: 1, HealthyWorkloads: 1}))
		Expect(c.probeSeries(namespace)).To(HaveKeyWithValue("healthscope_probe_success web local front", 1.0))

		By("breaking it")
		target.set(code(http.StatusServiceUnavailable))
		Eventually(reading(ctx, s)).Should(haveHealth(unhealthy, "0/1"))
		culprit := read(ctx, s).Status.Culprits[0]
		Expect(culprit.Reason).To(Equal("ProbeFailed"))
		Expect(culprit.Cause).To(MatchRegexp(`^GET /health on port 80: status code 503; last success \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`))
		Expect(culprit.Since.Time).To(BeTemporally("~", time.Now(), time.Minute))
		Expect(c.probeSeries(namespace)).To(HaveKeyWithValue("healthscope_probe_success web local front", 0.0))

		By("starting the controller again while it is broken")
		since := culprit.Since
		c.stop()
		c = start(withProbes)
		Consistently(reading(ctx, s)).Should(haveHealth(unhealthy, "0/1"))
		Expect(read(ctx, s).Status.Culprits[0].Since).To(Equal(since))

		By("taking the pod away")
		Expect(api.Delete(ctx, b.slice)).To(Succeed())
		Eventually(culpritsOf(ctx, s)).Should(ConsistOf("Service/front Unknown NotProbed"))
		b.slice.ResourceVersion = ""
		Expect(api.Create(ctx, b.slice)).To(Succeed())

		By("healing it")
		target.set(code(http.StatusNoContent))
		Eventually(reading(ctx, s)).Should(haveHealth(healthy, "1/1"))
		Expect(read(ctx, s).Status.Culprits).To(BeEmpty())

		By("taking the label away")
		b.service.Labels = nil
		Expect(api.Update(ctx, b.service)).To(Succeed())
		Eventually(probesReady(ctx, s)).Should(HavePrefix("False NoServices: no Service in namespace"))
		Eventually(reading(ctx, s)).Should(haveHealth(unknown, "0/0"))
		Expect(c.probeSeries(namespace)).To(BeEmpty())
	})

	It("counts a Service that it has otherwise once", func(ctx SpecContext) {
		target := listen(suite.OwnAddress(), code(http.StatusOK))
		namespace := newNamespace(ctx)
		grantProbes(ctx, namespace)
		grant(ctx, "services")
		newBackend(namespace, "front", "other", target).create(ctx)
		start(withProbes)
		spec := everySecond()
		spec.WorkloadReferences = []corev1alpha2.WorkloadReference{{APIVersion: "v1", Kind: "Service", Name: "front"}}
		s := newScope(ctx, namespace, "web", spec)
		Eventually(probesReady(ctx, s)).Should(Equal("True Probing: 1 of 1 Services are probed"))
		Eventually(reading(ctx, s)).Should(haveHealth(healthy, "1/1"))
		Eventually(target.asked).ShouldNot(BeEmpty())
		target.set(code(http.StatusInternalServerError))
		Eventually(culpritsOf(ctx, s)).Should(ConsistOf("Service/front Failed ProbeFailed"))
		Expect(read(ctx, s).Status.ScopeHealthCondition).To(Equal(corev1alpha2.ScopeHealthCondition{HealthStatus: "UNHEALTHY", Total: 1, UnhealthyWorkloads: 1}))
	})

	It("says why it is not probed", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		start(withProbes)
		s := newScope(ctx, namespace, "web", everySecond())
		Eventually(probesReady(ctx, s)).Should(HavePrefix("False ServicesUnread: local: the controller may not list and watch Services in namespace"))

		By("giving the right")
		grantProbes(ctx, namespace)
		Eventually(probesReady(ctx, s)).WithTimeout(2 * suite.Timeout).Should(HavePrefix("False NoServices"))

		By("asking for what cannot be used")
		now := read(ctx, s)
		now.Spec.ProbeMethod, now.Spec.ProbeEndpoint, now.Spec.ProbeTimeout, now.Spec.ProbePort = "get", "//127.0.0.1/", new(int32(1000)), new(intstr.FromInt32(70000))
		now.Spec.ProbeInterval, now.Spec.FailureRateThreshold, now.Spec.HealthyRateThreshold = new(int32(86401)), new(-0.5), new(101.0)
		Expect(api.Update(ctx, &now)).To(Succeed())
		Eventually(probesReady(ctx, s)).Should(Equal(`False InvalidProbe: probe-method: "get" is not known: want GET, httpGet or HEAD; probe-endpoint: "//127.0.0.1/" has two slashes in a row; `+
			`probe-port: "70000" is no port: want the name of one, or 1 to 65535; probe-timeout: 1000 is out of range: want 60 at most; `+
			`probe-interval: 86401 is out of range: want 86400 at most; failure-rate-threshold: -0.5 is out of range: want 0 to 1, or a percentage; `+
			`healthy-rate-threshold: 101 is out of range: want 0 to 1, or a percentage`), "all of it, and nothing is cut")

		By("asking for nothing")
		now = read(ctx, s)
		now.Spec.ProbeMethod, now.Spec.ProbeEndpoint = "kube-get", ".status"
		Expect(api.Update(ctx, &now)).To(Succeed())
		Eventually(probesReady(ctx, s)).Should(Equal("none"))
	})

	It("says that probes are not enabled", func(ctx SpecContext) {
		start()
		s := newScope(ctx, newNamespace(ctx), "web", everySecond())
		Eventually(probesReady(ctx, s)).Should(HavePrefix("False ProbesDisabled: "))
	})
})

// culpritsOf returns a function that returns the culprits of a scope.
func culpritsOf(ctx context.Context, s *corev1alpha2.HealthScope) func(Gomega) []string {
	return func(g Gomega) []string { return culprits(reading(ctx, s)(g)) }
}

// probeSeries returns the values of the series of probes in a namespace, by "<metric> <scope> <cluster> <service>".
func (c *controller) probeSeries(namespace string) map[string]float64 {
	GinkgoHelper()
	all := map[string]float64{}
	for _, s := range c.samples() {
		if s.labels["namespace"] == namespace && s.labels["service"] != "" {
			all[strings.Join([]string{s.name, s.labels["scope"], s.labels["cluster"], s.labels["service"]}, " ")] = s.value
		}
	}
	return all
}
