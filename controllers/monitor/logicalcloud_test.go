package monitor_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"os"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/controllers/monitor"
)

// settingsForLogicalClouds returns the settings of the monitor in the documentation of the recorder.
func settingsForLogicalClouds() configv1alpha1.Monitor {
	GinkgoHelper()
	page, err := os.ReadFile("../../config/docs/recorder.md")
	Expect(err).NotTo(HaveOccurred())
	_, section, ok := strings.Cut(string(page), "\n## EMCO's logical clouds\n")
	Expect(ok).To(BeTrue())
	_, example, ok := strings.Cut(section, "```yaml\n")
	Expect(ok).To(BeTrue())
	example, _, _ = strings.Cut(example, "```")
	var c configv1alpha1.Configuration
	Expect(yaml.UnmarshalStrict([]byte(example), &c)).To(Succeed())
	return c.Monitor
}

// newSigned returns a request for a certificate in PEM, and a certificate for it.
func newSigned() (request, certificate []byte) {
	GinkgoHelper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	Expect(err).NotTo(HaveOccurred())
	request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err = x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	Expect(err).NotTo(HaveOccurred())
	return request, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

var _ = Describe("A logical cloud", func() {
	It("gets its certificate into the bundle with the settings of the recorder's page, and without them not", func(ctx SpecContext) {
		settings := settingsForLogicalClouds()
		leases := newNamespace(ctx)
		bundle := "4711-logical-cloud"
		request, certificate := newSigned()
		csr := &certificatesv1.CertificateSigningRequest{
			ObjectMeta: meta("", "lc1-user-csr", bundle),
			Spec:       certificatesv1.CertificateSigningRequestSpec{Request: request, SignerName: "example.com/lc", Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth}},
		}
		create(ctx, csr)
		DeferCleanup(discard, csr)
		home := newBundle(settings.TrustedNamespaces[0], bundle)
		create(ctx, home)
		DeferCleanup(discard, home)

		By("leaving the settings out")
		m := start(ctx, monitor.Options{LeaseNamespace: leases, LabelKeys: settings.LabelKeys})
		Eventually(func() bool { return get(ctx, home.Namespace, bundle).Status.Summary != nil }).Should(BeTrue())
		Expect(get(ctx, home.Namespace, bundle).Status.CSRStatuses).To(BeEmpty())
		m.stop()

		By("setting them")
		start(ctx, monitor.Options{LeaseNamespace: leases, LabelKeys: settings.LabelKeys, TrustedNamespaces: settings.TrustedNamespaces})
		Eventually(firstCSR(ctx, home.Namespace, bundle)).Should(HaveField("Name", "lc1-user-csr"))

		By("issuing the certificate")
		csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "LC"}}
		Expect(api.SubResource("approval").Update(ctx, csr)).To(Succeed())
		csr.Status.Certificate = certificate
		Expect(api.Status().Update(ctx, csr)).To(Succeed())
		Eventually(firstCSR(ctx, home.Namespace, bundle)).Should(And(
			HaveField("Status.Certificate", certificate), HaveField("Status.Conditions", ContainElement(HaveField("Type", certificatesv1.CertificateApproved)))))
		Expect(raw(ctx, home.Namespace, bundle)).To(ContainSubstring(`certificate":"LS0t`), "EMCO's dcm looks for this in the text")
	}, SpecTimeout(time.Minute))
})

// firstCSR returns the first request of a bundle, which is the one that EMCO's dcm reads.
func firstCSR(ctx context.Context, namespace, name string) func() certificatesv1.CertificateSigningRequest {
	return func() certificatesv1.CertificateSigningRequest {
		var all []certificatesv1.CertificateSigningRequest
		if list := get(ctx, namespace, name).Status.CSRStatuses; len(list) > 0 {
			Expect(json.Unmarshal(list, &all)).To(Succeed())
		}
		if len(all) == 0 {
			return certificatesv1.CertificateSigningRequest{}
		}
		return all[0]
	}
}
