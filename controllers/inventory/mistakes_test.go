package inventory_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/healthscope/healthscope/aai/simulator"
	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
)

var _ = Describe("An operator's mistake", func() {
	var l *lab
	var s *corev1alpha2.HealthScope
	BeforeEach(func(ctx SpecContext) {
		l = newLab(ctx)
		report(ctx, l.namespace, "7-web", service(l.namespace, "web"))
		s = newScope(ctx, l.namespace, "shop", app("web", "7-web"))
	})

	// expect asserts that the mistake has one clear condition and one metric, that A&AI gets few requests, and that no restart
	// is needed after its correction.
	expect := func(ctx SpecContext, reason, words, problem string, asked func() int64, mend func()) {
		GinkgoHelper()
		h := l.start()
		Eventually(synced(ctx, s)).Should(Equal("False " + reason))
		Expect(message(ctx, s)).To(ContainSubstring(words))
		Eventually(h.exposition).Should(ContainSubstring(`healthscope_aai_problem{problem="` + problem + `"} 1`))
		writes, before := h.statusWrites(), asked()
		Consistently(asked).Should(BeNumerically("<=", before+6), "it is not asked in a hot loop")
		Expect(h.statusWrites()).To(Equal(writes), "the status is written once")
		mend()
		Eventually(l.states).Should(HaveKeyWithValue("Service/web", "Ready"))
		Eventually(synced(ctx, s)).Should(Equal("True Synced"))
		Eventually(h.exposition).ShouldNot(ContainSubstring("healthscope_aai_problem{"))
	}

	// counting counts the requests to A&AI.
	counting := func(answer func(http.ResponseWriter) bool) func() int64 {
		var asked atomicCount
		l.between(func(w http.ResponseWriter, _ *http.Request) bool { asked.add(); return answer(w) })
		return asked.get
	}
	through := func(http.ResponseWriter) bool { return false }

	It("is a wrong password", func(ctx SpecContext) {
		l.write("password", "outdated")
		expect(ctx, "Misconfigured", "refuses the user or the password", "credentials", counting(through), func() { l.write("password", password) })
	})

	It("is a schema version that A&AI does not serve", func(ctx SpecContext) {
		older := simulator.New(simulator.Options{Strict: true, Versions: []string{"v25", "v26"}, Users: map[string]string{user: password}})
		var asked atomicCount
		l.between(func(w http.ResponseWriter, r *http.Request) bool {
			asked.add()
			older.ServeHTTP(w, r)
			return true
		})
		words := `A&AI does not serve schema version "v32"; it serves v25 to v26; set inventory.schemaVersion to one that A&AI serves, or upgrade A&AI`
		expect(ctx, "Misconfigured", words, "version", asked.get, func() { l.between(nil) })
		Expect(older.Violations()).To(BeEmpty())
	})

	It("is an address at which there is something else than A&AI", func(ctx SpecContext) {
		var asked atomicCount
		l.between(func(w http.ResponseWriter, _ *http.Request) bool {
			asked.add()
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte("<html>Welcome</html>"))
			return true
		})
		expect(ctx, "Misconfigured", "set inventory.url to the scheme, host and port", "server", asked.get, func() { l.between(nil) })
	})

	It("is a certificate that is not trusted", func(ctx SpecContext) {
		server := httptest.NewTLSServer(l)
		DeferCleanup(server.Close)
		l.write("ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: newCertificate().certificate.Raw})))
		l.config.URL, l.config.CAFile = server.URL, filepath.Join(l.dir, "ca.crt")
		expect(ctx, "Misconfigured", "certificate cannot be trusted", "certificate", counting(through), func() {
			l.write("ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
		})
	})

	It("is a namespace without a region", func(ctx SpecContext) {
		correct := l.config.Regions
		l.config.Regions = []configv1alpha1.Region{{Cluster: "local", Namespace: "elsewhere", CloudOwner: owner, CloudRegionID: region, TenantID: tenant}}
		h := l.start()
		Eventually(synced(ctx, s)).Should(Equal("False NoRegion"))
		Expect(message(ctx, s)).To(And(ContainSubstring("inventory.regions"), ContainSubstring(l.namespace), ContainSubstring(`"local"`)))
		Expect(l.states()).To(BeEmpty())
		Expect(h.exposition()).To(ContainSubstring(`healthscope_aai_problem{problem="region"} 1`))
		h.stop()

		l.config.Regions = correct
		h = l.start()
		Eventually(l.states).Should(HaveKeyWithValue("Service/web", "Ready"))
		Eventually(synced(ctx, s)).Should(Equal("True Synced"))
		Expect(h.exposition()).NotTo(ContainSubstring("healthscope_aai_problem{"))
	})

	It("is a certificate of ours that A&AI does not take", func(ctx SpecContext) {
		server := httptest.NewUnstartedServer(l)
		good, stranger := newCertificate(), newCertificate()
		pool := x509.NewCertPool()
		pool.AddCert(good.certificate)
		// With TLS 1.3 a client may complete its handshake before the server has checked its certificate. It then sees a broken
		// connection about as often as the reason.
		server.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool, MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12}
		server.Config.ErrorLog = log.New(GinkgoWriter, "", 0)
		server.StartTLS()
		DeferCleanup(server.Close)
		use := func(c *ownCertificate) {
			l.write("tls.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.certificate.Raw})))
			l.write("tls.key", c.key)
			l.secrets = append(l.secrets, strings.Split(c.key, "\n")[1])
		}
		use(stranger)
		l.write("ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
		l.config.URL, l.config.CAFile = server.URL, filepath.Join(l.dir, "ca.crt")
		l.config.CertFile, l.config.KeyFile = filepath.Join(l.dir, "tls.crt"), filepath.Join(l.dir, "tls.key")
		expect(ctx, "Misconfigured", "A&AI refuses our certificate", "certificate", counting(through), func() { use(good) })
	})
})

// ownCertificate is a self-signed certificate, and its key in PEM.
type ownCertificate struct {
	certificate *x509.Certificate
	key         string
}

// newCertificate returns a certificate for a client of A&AI.
func newCertificate() *ownCertificate {
	GinkgoHelper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	Expect(err).NotTo(HaveOccurred())
	certificate, err := x509.ParseCertificate(der)
	Expect(err).NotTo(HaveOccurred())
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	Expect(err).NotTo(HaveOccurred())
	return &ownCertificate{certificate: certificate, key: string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))}
}
