package commands_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/e2e/suite"
)

// runClusters runs the command clusters.
func runClusters(args ...string) (code int, out, errOut string) {
	GinkgoHelper()
	return execute(GinkgoT().Context(), "", program, append([]string{"clusters"}, args...)...)
}

var _ = Describe("The command clusters", func() {
	var namespace string
	BeforeEach(func(ctx SpecContext) { namespace = suite.NewNamespace(ctx, api) })
	list := func(args ...string) (code int, out, errOut string) {
		return runClusters(append([]string{"--hub-kubeconfig", plane.KubeconfigPath(), "--hub-namespace", namespace}, args...)...)
	}
	publish := func(ctx context.Context, state string, renewed time.Time) {
		GinkgoHelper()
		Expect(api.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "healthscope-clusters"},
			Data: map[string]string{"clusters.json": fmt.Sprintf(
				`{"lease": {"namespace": %q, "name": "healthscope-controller"}, "clusters": [{"name": "provider+edge01", "state": %q}]}`, namespace, state)},
		})).To(Succeed())
		holder, seconds, at := "hub-0", int32(600), metav1.NewMicroTime(renewed)
		Expect(api.Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "healthscope-controller"},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &at},
		})).To(Succeed())
	}

	It("ends with 0 when all are connected", func(ctx SpecContext) {
		publish(ctx, "Connected", time.Now())
		code, out, errOut := list()
		Expect([]any{code, out, errOut}).To(Equal([]any{0, "NAME              STATE       AGE         LAST SEEN   MESSAGE\nprovider+edge01   Connected   <unknown>   now         -\n", ""}))
	}, SpecTimeout(time.Minute))

	It("ends with 1 when one is not", func(ctx SpecContext) {
		publish(ctx, "Forbidden", time.Now())
		code, out, errOut := list("-o", "json")
		Expect(code).To(Equal(1))
		Expect(out).To(ContainSubstring(`"state": "Forbidden"`))
		Expect(errOut).To(BeEmpty(), "the table says it")
	}, SpecTimeout(time.Minute))

	It("ends with 1 and says so when there is no controller that could tell", func(ctx SpecContext) {
		publish(ctx, "Connected", time.Now().Add(-time.Hour))
		code, out, errOut := runClusters("list", "--hub-kubeconfig", plane.KubeconfigPath(), "--hub-namespace", namespace)
		Expect(code).To(Equal(1))
		Expect(out).To(ContainSubstring("60m ago"))
		Expect(errOut).To(Equal(fmt.Sprintf("warning: the controller does not run: it does not renew its Lease %s/healthscope-controller; what follows is 60m old\n", namespace)))
	}, SpecTimeout(time.Minute))

	It("ends with 3 when nothing is published", func() {
		code, out, errOut := list()
		Expect([]any{code, out}).To(Equal([]any{3, ""}))
		Expect(errOut).To(ContainSubstring(fmt.Sprintf("cannot list the clusters: there is no ConfigMap %q", namespace+"/healthscope-clusters")))
	})

	It("removes a cluster from the hub though it says nothing", func(ctx SpecContext) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "edge01", Labels: map[string]string{corev1alpha2.LabelClusterKubeconfig: "true"}}}
		secret.StringData = map[string]string{"kubeconfig": `{"current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
			"users": [{"name": "c", "user": {"token": "e30.eyJzdWIiOiJzeXN0ZW06c2VydmljZWFjY291bnQ6YTpiIiwia3ViZXJuZXRlcy5pbyI6eyJzZXJ2aWNlYWNjb3VudCI6eyJ1aWQiOiJ1In19fQ.x"}}]}`}
		Expect(api.Create(ctx, secret)).To(Succeed())
		// It accepts connections, and sends nothing.
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(listener.Close)
		file := filepath.Join(GinkgoT().TempDir(), "member")
		Expect(os.WriteFile(file, fmt.Appendf(nil, `{"clusters": [{"name": "c", "cluster": {"server": "https://%s"}}], "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
			"users": [{"name": "c", "user": {"token": "t"}}]}`, listener.Addr()), 0o600)).To(Succeed())
		code, out, errOut := runClusters("remove", "edge01", "--kubeconfig", file, "--context", "c", "--hub-kubeconfig", plane.KubeconfigPath(), "--hub-namespace", namespace, "--timeout", "12s")
		Expect(code).To(Equal(1))
		Expect(out).To(Equal(fmt.Sprintf("hub: secret/edge01 -n %s deleted\n", namespace)))
		Expect(errOut).To(ContainSubstring("when the cluster can be reached, run the command again with --force"))
	}, SpecTimeout(90*time.Second))
})
