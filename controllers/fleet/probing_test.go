package fleet_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	probes "github.com/healthscope/healthscope/controllers/probe"
	"github.com/healthscope/healthscope/e2e/suite"
	"github.com/healthscope/healthscope/healthscope/probe"
)

// newTarget creates a Service "web" of scope "shop" in the member, whose only endpoint is a listener that responds with a status
// code. It returns the counter of its requests.
func newTarget(ctx SpecContext, namespace string, code *atomic.Int32) *atomic.Int64 {
	GinkgoHelper()
	requests, address := &atomic.Int64{}, suite.OwnAddress()
	socket, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(address, "0"))
	Expect(err).NotTo(HaveOccurred())
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		w.WriteHeader(int(code.Load()))
	}))
	Expect(server.Listener.Close()).To(Succeed())
	server.Listener = socket
	server.Start()
	DeferCleanup(server.Close)
	at, ok := socket.Addr().(*net.TCPAddr)
	Expect(ok).To(BeTrue())

	web := metav1.ObjectMeta{Namespace: namespace, Name: "web"}
	labelled := *web.DeepCopy()
	labelled.Labels = map[string]string{corev1alpha2.LabelScopePrefix + "shop": "true"}
	ofWeb := *web.DeepCopy()
	ofWeb.Labels = map[string]string{discoveryv1.LabelServiceName: "web"}
	pod := &corev1.Pod{ObjectMeta: web, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	for _, o := range []client.Object{
		pod,
		&corev1.Service{ObjectMeta: labelled, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
		&discoveryv1.EndpointSlice{
			ObjectMeta: ofWeb, AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Port: new(int32(at.Port)), Protocol: new(corev1.ProtocolTCP)}},
			Endpoints: []discoveryv1.Endpoint{{
				Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: "web"},
			}},
		},
	} {
		Expect(edgeAPI.Create(ctx, o)).To(Succeed())
	}
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}}}
	Expect(edgeAPI.Status().Update(ctx, pod)).To(Succeed())
	return requests
}

var _ = Describe("Probes in a member", func() {
	It("go by its API server, with the rights that are given there", func(ctx SpecContext) {
		s := newSite(ctx)
		monitor(edgeAPI, s.watch)
		var code atomic.Int32
		code.Store(http.StatusOK)
		requests := newTarget(ctx, s.shop, &code)
		s.run(ctx)
		s.secret(ctx, s.account(ctx, "hub", edge.Config().Host), nil)
		Eventually(s.edge, "30s").Should(HaveField("Reachability", fleet.Connected))

		prober := probes.New(probes.Options{Clusters: s.View})
		life, cancel := suite.Lasting()
		ended := make(chan error, 1)
		go func() { ended <- prober.Run(life) }()
		DeferCleanup(func() {
			cancel()
			Eventually(ended).Should(Receive(BeNil()))
		})
		spec, err := probe.Parse(&corev1alpha2.HealthScopeSpec{ProbeMethod: "GET", ProbeEndpoint: "/health", ProbeInterval: new(int32(1)), FailureRateThreshold: new(0.1)})
		Expect(err).NotTo(HaveOccurred())
		result := func() (all []string) {
			report := prober.Want(types.NamespacedName{Namespace: s.shop, Name: "shop"}, &probe.Want{Spec: spec, Clusters: s.Clusters()})
			for _, u := range report.Unread {
				if u.Cluster == edge01 && u.Problem != "" {
					all = append(all, "unread")
				}
			}
			for _, p := range report.Services {
				all = append(all, strings.TrimSpace(fmt.Sprintf("%s %s %t %s", p.Cluster, p.Name, p.Result == probe.Passing, p.Cause)))
			}
			return all
		}
		Eventually(result).Should(Equal([]string{"unread"}), "without the right")
		Expect(requests.Load()).To(BeZero())

		apply := edge.KubectlCommand(ctx, "apply", "-n", s.shop, "-k", "../../config/rbac/member/probes")
		out, err := apply.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(out))
		Expect(edgeAPI.Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.shop, Name: "probes"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "healthscope-hub-probes"},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: s.watch, Name: "hub"}},
		})).To(Succeed())
		Eventually(result, "40s").Should(Equal([]string{edge01 + " web true"}))
		Expect(requests.Load()).To(BeNumerically(">", 0))
		code.Store(http.StatusServiceUnavailable)
		Eventually(result).Should(Equal([]string{edge01 + " web false status code 503"}))
	}, SpecTimeout(2*time.Minute))
})
