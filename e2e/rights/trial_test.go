package rights

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

// trial is an option of the monitor, with a function that uses it.
type trial struct {
	// option is the folder of the option's role.
	option string
	// configuration turns the option on.
	configuration string
	// use uses the option in two namespaces, and waits until it has worked.
	use func(ctx context.Context, namespaces []application)
	// also are other roles that the option needs.
	also []string
}

var _ = DescribeTable("The rights of the monitor with an option", func(ctx context.Context, t trial) {
	dir, role := filepath.Join(root, "config", "rbac", "options", t.option), monitor+"-"+t.option
	kubectl(ctx, "apply", "-k", dir)
	DeferCleanup(func(ctx SpecContext) { kubectl(ctx, "delete", "-k", dir) })
	namespaces := []application{application(t.option + "-a"), application(t.option + "-b")}
	for _, a := range namespaces {
		Expect(k8s.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: string(a)}})).To(Succeed())
		Expect(k8s.Create(ctx, a.bundle(single))).To(Succeed())
	}
	if t.also != nil {
		grantCertificates(ctx)
	}
	since := time.Now()
	hs := start(ctx, listing, t.configuration)
	t.use(ctx, namespaces)
	grants := granted(ctx)
	Eventually(func() []string {
		return Compare(audit(since).Uses, of(grants, append(t.also, role)...))
	}).Should(BeEmpty())
	Expect(hs.Stop()).To(Succeed())
	Expect(audit(since).Refused).To(BeEmpty())
},
	Entry("that creates bundles", SpecTimeout(3*time.Minute), trial{option: "createbundles", configuration: "monitor:\n  createBundles: {}\n", use: func(ctx context.Context, namespaces []application) {
		for _, a := range namespaces {
			object := &corev1.ConfigMap{ObjectMeta: a.meta("web", single)}
			object.Labels = map[string]string{corev1alpha2.LabelScopeName: "web"}
			Expect(k8s.Create(ctx, object)).To(Succeed())
			a.hasKinds(ctx, "web", "ConfigMap")
		}
	}}),
	Entry("that reads Secrets", SpecTimeout(3*time.Minute), trial{option: "secrets", configuration: "monitor:\n  kinds: [{apiVersion: v1, kind: Secret}]\n", use: func(ctx context.Context, namespaces []application) {
		for _, a := range namespaces {
			Expect(k8s.Create(ctx, &corev1.Secret{ObjectMeta: a.meta("web", single)})).To(Succeed())
			a.hasKinds(ctx, single, "Secret")
		}
	}}),
	Entry("that reads what has no namespace", SpecTimeout(3*time.Minute), trial{option: "trusted", configuration: "monitor:\n  trustedNamespaces: [trusted-a]\n", use: func(ctx context.Context, namespaces []application) {
		request := &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{k8spluginv1alpha1.LabelDeploymentID: single}},
			Spec: certificatesv1.CertificateSigningRequestSpec{
				Request: signingRequest(), SignerName: "example.org/signer", Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature},
			},
		}
		Expect(k8s.Create(ctx, request)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(k8s.Delete(ctx, request))).To(Succeed()) })
		namespaces[0].hasKinds(ctx, single, "CertificateSigningRequest")
	}}),
	Entry("of a kind that is not built in", SpecTimeout(3*time.Minute), trial{
		option: "discovery", also: []string{monitorKinds},
		configuration: "monitor:\n  kinds: [{apiVersion: cert-manager.io/v1, kind: Certificate}]\n",
		use: func(ctx context.Context, namespaces []application) {
			defineCertificates(ctx)
			for _, a := range namespaces {
				Eventually(func() error { return client.IgnoreAlreadyExists(k8s.Create(ctx, a.certificate())) }).Should(Succeed())
				a.hasKinds(ctx, single, "Certificate")
			}
		},
	}),
)

// signingRequest returns a request for a certificate that the API server accepts.
func signingRequest() []byte {
	GinkgoHelper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	Expect(err).NotTo(HaveOccurred())
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request})
}
