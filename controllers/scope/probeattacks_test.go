package scope_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/e2e/suite"
)

// onceADay returns the spec of a scope with an interval of one day, so that each attack is probed once.
func onceADay() corev1alpha2.HealthScopeSpec {
	return corev1alpha2.HealthScopeSpec{ProbeMethod: "GET", ProbeEndpoint: "/health", ProbeInterval: new(int32(86400)), ProbeTimeout: new(int32(5))}
}

// The results of a prober for a Service after one probe.
const (
	noEndpoint  = "blocked: it has no ready endpoint that is a pod of its namespace"
	passing     = "passing: "
	notProbable = "undecided: it is an ExternalName, which leads out of the cluster"
)

// leadsTo makes the EndpointSlice lead to an address and a port.
func (b *backend) leadsTo(family discoveryv1.AddressType, address string, port int32) {
	b.slice.AddressType, b.slice.Endpoints[0].Addresses, b.slice.Ports[0].Port = family, []string{address}, &port
}

// attack makes a Service lead to a victim, which must not be reached, instead of to a pod of its namespace.
type attack struct {
	// victim is the address at which the victim listens; empty where nothing can listen.
	victim string
	// change turns a correct Service into the attack.
	change func(ctx context.Context, b *backend, victim *listener)
	// refused is true if the API server rejects the EndpointSlice.
	refused bool
	// want is the expected result of the prober for the Service.
	want string
}

const loopback = "127.0.0.1"

// own stands for an address of the machine, on which the hub, the node and the API server run.
const own = "own"

// attacks returns the attacks, by the target that must not be reached.
func attacks() map[string]attack {
	return map[string]attack{
		"not loopback": {victim: loopback, refused: true, want: noEndpoint, change: func(_ context.Context, b *backend, v *listener) {
			b.leadsTo(discoveryv1.AddressTypeIPv4, loopback, v.port)
		}},
		"not another address of loopback": {victim: "127.0.0.2", refused: true, want: noEndpoint, change: func(_ context.Context, b *backend, v *listener) {
			b.leadsTo(discoveryv1.AddressTypeIPv4, "127.0.0.2", v.port)
		}},
		"not loopback of which a pod has the address": {victim: loopback, refused: true, want: noEndpoint, change: func(_ context.Context, b *backend, v *listener) {
			b.pod.Status.PodIP, b.pod.Status.PodIPs = loopback, []corev1.PodIP{{IP: loopback}}
			b.leadsTo(discoveryv1.AddressTypeIPv4, loopback, v.port)
		}},
		"not loopback in IPv6": {victim: loopback, refused: true, want: noEndpoint, change: func(_ context.Context, b *backend, v *listener) {
			b.leadsTo(discoveryv1.AddressTypeIPv6, "::1", v.port)
		}},
		"not loopback as an IPv4-mapped address": {victim: loopback, refused: true, want: noEndpoint, change: func(_ context.Context, b *backend, v *listener) {
			b.leadsTo(discoveryv1.AddressTypeIPv6, "::ffff:127.0.0.1", v.port)
		}},
		"not the unspecified address": {victim: loopback, refused: true, want: noEndpoint, change: func(_ context.Context, b *backend, v *listener) {
			b.leadsTo(discoveryv1.AddressTypeIPv4, "0.0.0.0", v.port)
		}},
		"not the unspecified address in IPv6": {victim: loopback, refused: true, want: noEndpoint, change: func(_ context.Context, b *backend, v *listener) {
			b.leadsTo(discoveryv1.AddressTypeIPv6, "::", v.port)
		}},
		"not a service of metadata": {refused: true, want: noEndpoint, change: func(_ context.Context, b *backend, _ *listener) {
			b.leadsTo(discoveryv1.AddressTypeIPv4, "169.254.169.254", 80)
		}},
		"not link-local addresses in IPv6": {refused: true, want: noEndpoint, change: func(_ context.Context, b *backend, _ *listener) {
			b.leadsTo(discoveryv1.AddressTypeIPv6, "fe80::1", 80)
		}},
		"not multicast": {refused: true, want: noEndpoint, change: func(_ context.Context, b *backend, _ *listener) {
			b.leadsTo(discoveryv1.AddressTypeIPv4, "224.0.0.1", 80)
		}},
		"not the hub, by an EndpointSlice made by hand": {victim: own, want: noEndpoint, change: func(_ context.Context, b *backend, v *listener) {
			b.leadsTo(discoveryv1.AddressTypeIPv4, v.host, v.port)
			b.slice.Endpoints[0].TargetRef, b.pod = nil, nil
		}},
		"not the hub, as an IPv4-mapped address": {victim: own, refused: true, want: noEndpoint, change: func(_ context.Context, b *backend, v *listener) {
			b.leadsTo(discoveryv1.AddressTypeIPv6, "::ffff:"+v.host, v.port)
		}},
		"not an address of a pod that does not exist": {victim: own, want: noEndpoint, change: func(_ context.Context, b *backend, v *listener) {
			b.leadsTo(discoveryv1.AddressTypeIPv4, v.host, v.port)
			b.slice.Endpoints[0].TargetRef.Name = "gone"
		}},
		"not an address that the pod does not have": {victim: own, want: noEndpoint, change: func(_ context.Context, b *backend, v *listener) {
			b.pod.Status.PodIP, b.pod.Status.PodIPs = "10.1.2.3", []corev1.PodIP{{IP: "10.1.2.3"}}
			b.leadsTo(discoveryv1.AddressTypeIPv4, v.host, v.port)
		}},
		"not a pod without an address": {victim: own, want: noEndpoint, change: func(_ context.Context, b *backend, v *listener) {
			b.pod.Status = corev1.PodStatus{}
			b.leadsTo(discoveryv1.AddressTypeIPv4, v.host, v.port)
		}},
		"not a pod of another namespace": {victim: own, want: noEndpoint, change: func(ctx context.Context, b *backend, v *listener) {
			other := newBackend(newNamespace(ctx), "other", "other", v)
			other.create(ctx)
			b.slice.Endpoints = other.slice.Endpoints
			b.slice.Ports[0].Port = &v.port
		}},
		"not a pod of another namespace with the name of one here": {victim: own, want: noEndpoint, change: func(ctx context.Context, b *backend, v *listener) {
			other := newBackend(newNamespace(ctx), "front", "other", v)
			other.create(ctx)
			b.pod.Status.PodIP, b.pod.Status.PodIPs = "10.1.2.3", []corev1.PodIP{{IP: "10.1.2.3"}}
			b.leadsTo(discoveryv1.AddressTypeIPv4, v.host, v.port)
		}},
		"not what refers to no namespace": {victim: own, want: noEndpoint, change: func(_ context.Context, b *backend, v *listener) {
			b.leadsTo(discoveryv1.AddressTypeIPv4, v.host, v.port)
			b.slice.Endpoints[0].TargetRef.Namespace = ""
		}},
		"not a node": {victim: own, want: noEndpoint, change: func(_ context.Context, b *backend, v *listener) {
			b.leadsTo(discoveryv1.AddressTypeIPv4, v.host, v.port)
			b.slice.Endpoints[0].TargetRef = &corev1.ObjectReference{Kind: "Node", Name: "node"}
		}},
		"not a name": {victim: loopback, want: noEndpoint, change: func(_ context.Context, b *backend, v *listener) {
			b.leadsTo(discoveryv1.AddressTypeFQDN, "localhost.localdomain", v.port)
		}},
		"not a name that a DNS server answers otherwise each time": {victim: loopback, want: noEndpoint, change: func(_ context.Context, b *backend, v *listener) {
			b.leadsTo(discoveryv1.AddressTypeFQDN, "rebind.example.com", v.port)
			b.slice.Endpoints[0].TargetRef = nil
		}},
		"not an endpoint that is not ready": {victim: own, want: noEndpoint, change: func(_ context.Context, b *backend, v *listener) {
			b.leadsTo(discoveryv1.AddressTypeIPv4, v.host, v.port)
			b.slice.Endpoints[0].Conditions.Ready = new(false)
		}},
		"not a port of another name": {victim: own, want: noEndpoint, change: func(_ context.Context, b *backend, v *listener) {
			b.leadsTo(discoveryv1.AddressTypeIPv4, v.host, v.port)
			b.slice.Ports[0].Name = new("admin")
		}},
		"not an EndpointSlice of another Service": {victim: own, want: noEndpoint, change: func(_ context.Context, b *backend, v *listener) {
			b.leadsTo(discoveryv1.AddressTypeIPv4, v.host, v.port)
			b.slice.Labels[discoveryv1.LabelServiceName] = "back"
		}},
		"not a second EndpointSlice that is made by hand": {victim: own, want: passing, change: func(ctx context.Context, b *backend, v *listener) {
			second := newBackend(b.service.Namespace, "front", "web", v).slice
			second.Name, second.Endpoints[0].TargetRef = "second", nil
			Expect(api.Create(ctx, second)).To(Succeed())
		}},
		"not a second endpoint that is made by hand": {victim: own, want: passing, change: func(_ context.Context, b *backend, v *listener) {
			b.slice.Endpoints = append(b.slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{"10.9.9.9"}})
		}},
		"not an ExternalName": {victim: loopback, want: notProbable, change: func(_ context.Context, b *backend, v *listener) {
			b.service.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost", Ports: []corev1.ServicePort{{Name: "web", Port: v.port}}}
			b.slice, b.pod = nil, nil
		}},
		"not an ExternalName with endpoints": {victim: own, want: notProbable, change: func(_ context.Context, b *backend, v *listener) {
			b.service.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost", Ports: []corev1.ServicePort{{Name: "web", Port: v.port}}}
		}},
		"not an ExternalName of the API server": {want: notProbable, change: func(_ context.Context, b *backend, _ *listener) {
			b.service.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "kubernetes.default.svc", Ports: []corev1.ServicePort{{Name: "web", Port: 443}}}
		}},
		"not an external address": {victim: own, want: noEndpoint, change: func(_ context.Context, b *backend, v *listener) {
			b.service.Spec.ExternalIPs, b.service.Spec.Ports[0].Port, b.slice, b.pod = []string{v.host}, v.port, nil, nil
		}},
		"not the address of a load balancer": {victim: own, want: noEndpoint, change: func(_ context.Context, b *backend, v *listener) {
			b.service.Spec.Type, b.service.Spec.Ports[0].Port = corev1.ServiceTypeLoadBalancer, v.port
			b.service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: v.host}}
			b.slice, b.pod = nil, nil
		}},
		"not a port of the node": {victim: own, want: noEndpoint, change: func(_ context.Context, b *backend, v *listener) {
			b.service.Spec.Type, b.service.Spec.Ports[0].Port = corev1.ServiceTypeNodePort, v.port
			b.slice, b.pod = nil, nil
		}},
		"not the target port of a Service without endpoints": {victim: own, want: noEndpoint, change: func(_ context.Context, b *backend, v *listener) {
			b.service.Spec.Ports[0].TargetPort, b.slice, b.pod = intstr.FromInt32(v.port), nil, nil
		}},
		"not a headless Service whose endpoints are made by hand": {victim: own, want: noEndpoint, change: func(_ context.Context, b *backend, v *listener) {
			b.service.Spec.ClusterIP = corev1.ClusterIPNone
			b.leadsTo(discoveryv1.AddressTypeIPv4, v.host, v.port)
			b.slice.Endpoints[0].TargetRef, b.pod = nil, nil
		}},
	}
}

var _ = Describe("A probe", Ordered, func() {
	var p *prober
	var address string

	BeforeAll(func() {
		address = suite.OwnAddress()
	})
	BeforeEach(func() {
		p = startProber()
	})

	It("reaches pods of the Service's namespace only", func(ctx SpecContext) {
		type begun struct {
			says           func() string
			want           string
			target, victim *listener
		}
		all := map[string]begun{}
		for name, a := range attacks() {
			namespace := newNamespace(ctx)
			target := listen(address, code(http.StatusOK))
			victim := &listener{host: "192.0.2.254", port: 80}
			if a.victim != "" {
				victim = listen(strings.Replace(a.victim, own, address, 1), code(http.StatusOK))
			}
			b := newBackend(namespace, "front", "web", target)
			a.change(ctx, b, victim)
			if a.refused {
				Expect(api.Create(ctx, b.slice)).NotTo(Succeed(), name)
				b.slice = nil
			}
			b.create(ctx)
			all[name] = begun{p.report(namespace, "front", onceADay()), a.want, target, victim}
		}
		for name, a := range all {
			Eventually(a.says).Should(Equal(a.want), name)
			Expect(a.victim.connections.Load()).To(BeZero(), "%s: the victim was reached", name)
			if a.want != passing {
				Expect(a.target.connections.Load()).To(BeZero(), name)
			}
		}
	})

	It("follows no redirect", func(ctx SpecContext) {
		victims := []*listener{listen(loopback, code(http.StatusOK)), listen(address, code(http.StatusOK))}
		places := strings.NewReplacer("LOOPBACK", strconv.Itoa(int(victims[0].port)), "HUB", fmt.Sprintf("%s:%d", address, victims[1].port))
		type redirect struct {
			status         int
			location, want string
		}
		redirects := map[string]redirect{
			"to loopback":                           {302, "http://127.0.0.1:LOOPBACK/", passing},
			"to loopback by name":                   {307, "http://localhost:LOOPBACK/", passing},
			"to loopback as an IPv4-mapped address": {301, "http://[::ffff:127.0.0.1]:LOOPBACK/", passing},
			"to loopback without a scheme":          {302, "//127.0.0.1:LOOPBACK/", passing},
			"to the hub":                            {308, "http://HUB/", passing},
			"to a service of metadata":              {303, "http://169.254.169.254/latest/meta-data/", passing},
			"to the API server":                     {302, "/api/v1/namespaces/kube-system/secrets", passing},
			"out of the proxy":                      {302, "../../../../../../../api/v1/secrets", passing},
			"with a user":                           {302, "http://user:password@HUB/", passing},
			"to what is no URL":                     {302, "http://%zz/", "undecided: malformed redirect"},
		}
		says, targets := map[string]func() string{}, map[string]*listener{}
		for name, to := range redirects {
			targets[name] = listen(address, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", places.Replace(to.location))
				w.WriteHeader(to.status)
			})
			namespace := newNamespace(ctx)
			newBackend(namespace, "front", "web", targets[name]).create(ctx)
			says[name] = p.report(namespace, "front", onceADay())
		}
		for name, to := range redirects {
			Eventually(says[name]).Should(Equal(to.want), name)
			Expect(targets[name].asked()).To(Equal([]string{"GET /health"}), name)
		}
		for _, victim := range victims {
			Expect(victim.connections.Load()).To(BeZero(), "a victim was reached")
		}
	})

	DescribeTable("is bounded, whatever the target does",
		func(ctx SpecContext, serve func(net.Conn), want ...string) {
			namespace := newNamespace(ctx)
			port := listenRaw(ctx, address, serve)
			newBackend(namespace, "front", "web", &listener{host: address, port: port}).create(ctx)
			spec := onceADay()
			spec.ProbeTimeout = new(int32(1))
			Eventually(p.report(namespace, "front", spec)).Should(BeElementOf(want))
		},
		Entry("it never ends its answer", func(c net.Conn) { flood(c, "HTTP/1.1 200 OK\r\n\r\n", "endless ") }, passing),
		Entry("it never ends an answer in HTML", func(c net.Conn) { flood(c, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n", "<p>endless ") }, "undecided: timeout"),
		// The API server may reach its limit for the size of the header before the timeout.
		Entry("it never ends its header", func(c net.Conn) { flood(c, "HTTP/1.1 200 OK\r\n", "X-Endless: yes\r\n") }, "undecided: timeout", "undecided: no connection"),
		Entry("it answers a byte a minute", func(c net.Conn) { trickle(c, "HTTP/1.1 200 OK\r\n\r\n") }, "undecided: timeout"),
		Entry("it answers, and writes the rest a byte a minute", func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
			trickle(c, strings.Repeat("x", 100))
		}, "undecided: timeout"),
		Entry("it accepts, and says nothing", func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }, "undecided: timeout"),
		Entry("it hangs up", func(net.Conn) {}, "undecided: connection closed without an answer"),
		Entry("it writes what is no HTTP", func(c net.Conn) { _, _ = io.WriteString(c, "SSH-2.0-secret\r\n") }, "undecided: malformed answer"),
		Entry("it promises more than it writes", func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nx") }, "undecided: the answer breaks off"),
		Entry("it puts a secret into its status line", func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 500 secret\r\nContent-Length: 6\r\n\r\nsecret") }, "undecided: status code 500"),
	)

	It("sends nothing that a user has chosen but the path", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		target := listen(address, code(http.StatusOK))
		newBackend(namespace, "front", "web", target).create(ctx)
		Eventually(p.report(namespace, "front", onceADay())).Should(Equal(passing))
		header := target.header()
		Expect(header).NotTo(HaveKey("Authorization"))
		Expect(header).NotTo(HaveKey("Cookie"))
		Expect(header.Get("Accept")).To(HaveSuffix("*/*;q=0.9"))
	})

	It("does not ask the API server's own Service", func(ctx SpecContext) {
		label := func(ctx context.Context, value string) {
			Expect(kubectl(ctx, "-n", "default", "label", "service/kubernetes", corev1alpha2.LabelScopePrefix+"web"+value)).Error().NotTo(HaveOccurred())
		}
		label(ctx, "=true")
		DeferCleanup(label, "-")
		spec := onceADay()
		spec.ProbeScheme, spec.ProbeEndpoint = "HTTPS", "/healthz"
		Eventually(p.report("default", "kubernetes", spec)).Should(Equal(noEndpoint))
	})
})

var _ = Describe("A scope whose endpoint leads elsewhere", func() {
	It("probes nothing", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		grantProbes(ctx, namespace)
		target := listen(suite.OwnAddress(), code(http.StatusOK))
		b := newBackend(namespace, "front", "web", target)
		var scopes []*corev1alpha2.HealthScope
		start(withProbes)
		for i, endpoint := range []string{
			"/../../../../../api/v1/secrets", "/a/../../b", "/..", "/%2e%2e/%2e%2e/secrets", "/..%2f..%2fsecrets", "//127.0.0.1:8080/", "http://169.254.169.254/", "@127.0.0.1/",
			"/@127.0.0.1:8080/", "/%2f%2f127.0.0.1", "127.0.0.1:8080", "/health?url=http://127.0.0.1", "/health#x", `/\127.0.0.1\`, "/[::ffff:127.0.0.1]/", "/a\r\nX-Header: x", "/;@127.0.0.1",
		} {
			spec := everySecond()
			spec.ProbeEndpoint = endpoint
			scopes = append(scopes, newScope(ctx, namespace, fmt.Sprintf("web%d", i), spec))
		}
		for _, port := range []intstr.IntOrString{intstr.FromInt32(0), intstr.FromInt32(65536), intstr.FromString("80/proxy/../../secrets"), intstr.FromString("http:80")} {
			spec := everySecond()
			spec.ProbePort = &port
			scopes = append(scopes, newScope(ctx, namespace, fmt.Sprintf("web%d", len(scopes)), spec))
		}
		for _, s := range scopes {
			b.service.Labels[corev1alpha2.LabelScopePrefix+s.Name] = "true"
		}
		b.create(ctx)
		for _, s := range scopes {
			Eventually(probesReady(ctx, s)).Should(HavePrefix("False InvalidProbe: "), "%q", s.Spec.ProbeEndpoint)
		}
		Consistently(target.connections.Load).Should(BeZero())
	})
})

// listenRaw starts a target without HTTP, and returns its port. serve is called for each connection after the first data from
// it.
func listenRaw(ctx context.Context, address string, serve func(net.Conn)) int32 {
	GinkgoHelper()
	socket, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(address, "0"))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(socket.Close)
	at, ok := socket.Addr().(*net.TCPAddr)
	Expect(ok).To(BeTrue())
	go func() {
		for {
			c, err := socket.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				_, _ = c.Read(make([]byte, 4096))
				serve(c)
			}()
		}
	}()
	return int32(at.Port)
}

// flood writes a text, and then another one repeatedly until the other side closes the connection.
func flood(c net.Conn, first, then string) {
	_, err := io.WriteString(c, first)
	for err == nil {
		_, err = io.WriteString(c, then)
	}
}

// trickle writes a text, one byte per minute, until the other side closes the connection.
func trickle(c net.Conn, text string) {
	for i := range text {
		if _, err := io.WriteString(c, text[i:i+1]); err != nil {
			return
		}
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := c.Read(make([]byte, 1)); errors.Is(err, io.EOF) {
			return
		}
	}
}
