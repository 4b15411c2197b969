package fleet_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/controllers/fleet/kubeconfig"
	"github.com/healthscope/healthscope/e2e/faults"
	"github.com/healthscope/healthscope/e2e/suite"
)

// leaseOf returns the Lease of a monitor, with its name only.
func leaseOf(namespace string) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "healthscope-monitor"}}
}

// expired starts a server whose certificate has expired, and returns its address and certificate.
func expired() (server string, authority []byte) {
	GinkgoHelper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "expired"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(-time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	Expect(err).NotTo(HaveOccurred())
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	s.StartTLS()
	DeferCleanup(s.Close)
	return s.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

var _ = Describe("Members that are not as they should be", func() {
	var s *site
	BeforeEach(func(ctx SpecContext) {
		s = newSite(ctx)
		monitor(edgeAPI, s.watch) // Other specs may have left bundles there.
	})

	It("show the labels of their Secrets, also while nothing can be read of them", func(ctx SpecContext) {
		s.run(ctx)
		secret := s.secret(ctx, []byte("apiVersion: v1\nkind: Config\n"), nil)
		label := corev1alpha2.LabelClusterKubeconfig + "=true"
		Eventually(s.edge).Should(SatisfyAll(HaveField("Reachability", fleet.Refused), HaveField("Labels", label)))
		Expect(api.Get(ctx, client.ObjectKeyFromObject(secret), secret)).To(Succeed())
		secret.Labels["tenant"] = "a"
		Expect(api.Update(ctx, secret)).To(Succeed())
		Eventually(s.edge).Should(HaveField("Labels", label+",tenant=a"))
		Expect(s.edge().LabelSet()).To(HaveKeyWithValue("tenant", "a"))
		states := s.history()
		Expect(states[len(states)-1].Labels).To(Equal(label+",tenant=a"), "the change is notified")
	})

	It("are Refused with a kubeconfig that is, until it is corrected", func(ctx SpecContext) {
		s.run(ctx)
		good := s.account(ctx, "hub", edge.Config().Host)
		secret := s.secret(ctx, []byte("apiVersion: v1\nkind: Config\n"), map[string]string{corev1alpha2.AnnotationMaintenance: "it is being built"})
		Eventually(s.edge).Should(SatisfyAll(HaveField("Reachability", fleet.Refused), HaveField("Message", Not(BeEmpty())), HaveField("Maintenance", "it is being built")))
		setAnnotation(ctx, secret, corev1alpha2.AnnotationMaintenance, "")
		Eventually(s.edge).Should(HaveField("Maintenance", ""))
		Consistently(s.events(ctx)).Should(BeEmpty(), "maintenance silences")
		setData(ctx, secret, []byte("apiVersion: v1\nkind: Nothing\n"))
		Eventually(s.events(ctx)).Should(ConsistOf(HavePrefix("Warning KubeconfigRefused")))
		setData(ctx, secret, good)
		Eventually(s.edge).Should(HaveField("Reachability", fleet.Connected))
		Eventually(s.went).Should(HaveExactElements(fleet.Refused, fleet.Connected))
	}, SpecTimeout(2*time.Minute))

	It("cannot have the name of the hub, or of another one", func(ctx SpecContext) {
		s.run(ctx)
		data := s.account(ctx, "hub", edge.Config().Host)
		first := s.secret(ctx, data, nil)
		for name, cluster := range map[string]string{"second": edge01, "hub": "local", "bad": "a b"} {
			Expect(api.Create(ctx, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: s.secrets, Name: name, Labels: map[string]string{corev1alpha2.LabelClusterKubeconfig: "true"},
					Annotations: map[string]string{corev1alpha2.AnnotationClusterName: cluster},
				},
				Data: map[string][]byte{corev1alpha2.KubeconfigKey: data},
			})).To(Succeed())
		}
		Eventually(s.events(ctx)).Should(ContainElements(
			ContainSubstring(`NameRefused cluster "provider+edge01" is that of Secret "edge01", which is older`),
			ContainSubstring(`NameRefused cluster "local" is the controller's own`), ContainSubstring(`NameRefused "a b" is no name for a cluster`)))
		Expect(s.RejectedSecrets()).To(ConsistOf(
			And(HaveField("Name", "second"), HaveField("Message", `cluster "provider+edge01" is that of Secret "edge01", which is older`)),
			And(HaveField("Name", "hub"), HaveField("Message", HavePrefix(`cluster "local" is the controller's own`))),
			And(HaveField("Name", "bad"), HaveField("Message", HavePrefix(`"a b" is no name for a cluster`)))))
		Eventually(s.edge).Should(HaveField("Reachability", fleet.Connected))
		Expect(s.Clusters()).To(Equal([]string{"local", edge01}))
		Eventually(s.went).Should(HaveExactElements(fleet.Connected))

		By("removing the older one: the other one takes its place")
		Expect(api.Delete(ctx, first)).To(Succeed())
		Consistently(s.went).Should(HaveExactElements(fleet.Connected), "it leads to the same cluster in the same way")
		Expect(s.Clusters()).To(Equal([]string{"local", edge01}))
	}, SpecTimeout(2*time.Minute))

	It("are Unreachable when their certificate has expired, and say so", func(ctx SpecContext) {
		s.clock = suite.NewFastClock(10)
		s.run(ctx)
		server, authority := expired()
		data, err := kubeconfig.New(kubeconfig.Member{Name: "edge", Server: server, Authority: authority, Token: "t"})
		Expect(err).NotTo(HaveOccurred())
		s.secret(ctx, data, nil)
		Eventually(s.edge).Should(SatisfyAll(HaveField("Reachability", fleet.Connecting), HaveField("Message", ContainSubstring("expired"))))
		Eventually(s.edge, "60s").Should(SatisfyAll(HaveField("Reachability", fleet.Unreachable), HaveField("Message", ContainSubstring("certificate has expired"))))
	}, SpecTimeout(2*time.Minute))

	It("are Forbidden without the right, and say which", func(ctx SpecContext) {
		s.clock = suite.NewFastClock(10)
		s.run(ctx)
		s.secret(ctx, s.account(ctx, "hub", edge.Config().Host, "default"), nil)
		Eventually(s.edge, "30s").Should(SatisfyAll(HaveField("Reachability", fleet.Forbidden), HaveField("Message", ContainSubstring("may not list and watch ResourceBundleStates"))))
	}, SpecTimeout(2*time.Minute))

	It("are Connected however slow they are, within their time", func(ctx SpecContext) {
		proxy, err := faults.Start(edge.Config())
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(proxy.Stop)
		proxy.Delay(3 * time.Second)
		s.parse = func([]byte) (*rest.Config, error) { return proxy.Config(), nil }
		s.run(ctx)
		s.secret(ctx, []byte("any"), nil)
		Eventually(s.edge, "60s").Should(HaveField("Reachability", fleet.Connected))
		at := s.edge().LastSeen
		Eventually(s.edge, "60s").Should(HaveField("LastSeen", BeTemporally(">", at.Add(s.timeout))), "probes are answered in time")
		Expect(s.went()).To(HaveExactElements(fleet.Connected))
	}, SpecTimeout(4*time.Minute))
})
