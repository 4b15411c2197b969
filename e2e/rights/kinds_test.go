package rights

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
)

// The aggregated ClusterRoles, whose rules come from ClusterRoles that others label.
const (
	monitorKinds    = "healthscope-monitor-kinds"
	controllerKinds = "healthscope-controller-kinds"
)

// example writes the example of the page on rights to a file, and returns its path.
func example() string {
	GinkgoHelper()
	page, err := os.ReadFile(filepath.Join(root, "config", "docs", "rights.md"))
	Expect(err).NotTo(HaveOccurred())
	_, after, _ := strings.Cut(string(page), "```yaml\n")
	text, _, found := strings.Cut(after, "```")
	Expect(found).To(BeTrue(), "the page has an example in YAML")
	path := filepath.Join(GinkgoT().TempDir(), "example.yaml")
	Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
	return path
}

// certificates returns a CRD with the kind of the example.
func certificates() *unstructured.Unstructured {
	return definition("cert-manager.io", "v1", "Certificate", "certificates")
}

// definition returns a CRD with a kind whose objects may have any fields.
func definition(group, version, kind, plural string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiextensionsv1.SchemeGroupVersion.String(),
		"kind":       "CustomResourceDefinition",
		"metadata":   map[string]any{"name": plural + "." + group},
		"spec": map[string]any{
			"group": group,
			"names": map[string]any{"kind": kind, "plural": plural},
			"scope": "Namespaced",
			"versions": []any{map[string]any{
				"name": version, "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	}}
}

// certificate returns a Certificate that is Ready.
func (a application) certificate() *unstructured.Unstructured {
	ready := map[string]any{"type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cert-manager.io/v1", "kind": "Certificate", "status": map[string]any{"conditions": []any{ready}},
	}}
	u.SetNamespace(string(a))
	u.SetName("tls")
	u.SetLabels(a.meta("tls", single).Labels)
	return u
}

// defineCertificates creates the CRD. It deletes the CRD at the end of the spec, and waits until the CRD and all of its objects
// are gone.
func defineCertificates(ctx context.Context) {
	GinkgoHelper()
	Expect(k8s.Create(ctx, certificates())).To(Succeed())
	DeferCleanup(func(ctx context.Context) {
		Expect(k8s.Delete(ctx, certificates())).To(Succeed())
		Eventually(ctx, func() error { return k8s.Get(ctx, client.ObjectKeyFromObject(certificates()), certificates()) }).Should(MatchError(apierrors.IsNotFound, "NotFound"))
	})
}

// grantCertificates applies the example of the page on rights, and waits until both programs may read the kind. It deletes the
// example at the end of the spec.
func grantCertificates(ctx context.Context) {
	GinkgoHelper()
	path := example()
	kubectl(ctx, "apply", "-f", path)
	DeferCleanup(func(ctx context.Context) {
		kubectl(ctx, "delete", "-f", path)
		for _, role := range []string{controllerKinds, monitorKinds} {
			Eventually(ctx, filled).WithArguments(role).Should(BeFalse())
		}
	})
	for _, role := range []string{controllerKinds, monitorKinds} {
		Eventually(ctx, filled).WithArguments(role).Should(BeTrue())
	}
	for _, account := range []string{controller, monitor} {
		for _, verb := range []string{"list", "watch"} {
			Eventually(ctx, may).WithArguments(account, verb).Should(BeTrue(), "the API server notices a role a moment later")
		}
	}
}

// may reports whether an account has the right for a verb on Certificates in all namespaces.
func may(ctx context.Context, account, verb string) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               userPrefix + home + ":" + account,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Group: "cert-manager.io", Resource: "certificates", Verb: verb},
	}}
	err := k8s.Create(ctx, review)
	return review.Status.Allowed, err
}

// filled reports whether an aggregated role has rules.
func filled(ctx context.Context, name string) (bool, error) {
	var role rbacv1.ClusterRole
	err := k8s.Get(ctx, client.ObjectKey{Name: name}, &role)
	return len(role.Rules) > 0, err
}

var _ = Describe("The rights of the controller", func() {
	It("grow by what the page on rights shows, without a restart, and it uses them when a scope refers to the kind", func(ctx context.Context) {
		defineCertificates(ctx)
		hs := start(ctx, listing, "")
		a := application("tls")
		Expect(k8s.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: string(a)}})).To(Succeed())
		Eventually(func() error { return client.IgnoreAlreadyExists(k8s.Create(ctx, a.certificate())) }).Should(Succeed())

		By("granting")
		Expect(of(granted(ctx), controllerKinds, monitorKinds)).To(BeEmpty())
		grantCertificates(ctx)

		By("referring to a Certificate")
		since := time.Now()
		Expect(k8s.Create(ctx, a.scope("tls", workload("cert-manager.io/v1", "Certificate", "tls")))).To(Succeed())
		a.is(ctx, "tls", corev1alpha2.Healthy, "1/1")

		By("comparing")
		grants := granted(ctx)
		Eventually(func() []string { return Compare(audit(since).Uses, of(grants, controllerKinds)) }).Should(BeEmpty())
		Expect(hs.Stop()).To(Succeed())
		Expect(audit(since).Refused).To(BeEmpty())
		kubectl(ctx, "delete", "namespace", string(a))
	}, SpecTimeout(3*time.Minute))
})
