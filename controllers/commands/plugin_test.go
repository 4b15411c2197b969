package commands_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/e2e/suite"
)

var _ = Describe("The plugin of kubectl", func() {
	It("has its name in help and errors", func(ctx SpecContext) {
		code, out, _ := execute(ctx, "", "kubectl-healthscope", "status", "--help")
		Expect(code).To(Equal(0))
		Expect(out).To(And(ContainSubstring("Usage:\n  kubectl healthscope status [SUBJECT] [flags]\n"), ContainSubstring("\n  kubectl healthscope status -A\n"), Not(MatchRegexp(`(?m)^  healthscope`))))
		code, _, errOut := execute(ctx, "", "kubectl-healthscope", "stauts")
		Expect(code).To(Equal(2))
		Expect(errOut).To(HavePrefix(`kubectl healthscope: unknown command "stauts" for "kubectl healthscope"`))
	}, SpecTimeout(time.Minute))

	It("completes scopes, namespaces and clusters", func(ctx SpecContext) {
		namespace := suite.NewNamespace(ctx, api)
		for _, name := range []string{"shop", "web"} {
			Expect(api.Create(ctx, &corev1alpha2.HealthScope{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1alpha2.HealthScopeSpec{WorkloadReferences: []corev1alpha2.WorkloadReference{}},
			})).To(Succeed())
		}
		Expect(api.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "healthscope-clusters"},
			Data:       map[string]string{"clusters.json": `{"clusters": [{"name": "local", "local": true, "state": "Connected"}, {"name": "provider+edge01", "state": "Connected"}]}`},
		})).To(Succeed())
		complete := func(want string, args ...string) {
			GinkgoHelper()
			code, out, errOut := execute(ctx, "", "kubectl_complete-healthscope", args...)
			Expect([]any{code, out}).To(Equal([]any{0, want + "\n:4\n"}), errOut)
		}
		complete("shop\nweb", "status", "--kubeconfig", plane.KubeconfigPath(), "-n", namespace, "")
		complete("web", "status", "--kubeconfig", plane.KubeconfigPath(), "-n", namespace, "w")
		complete(namespace, "status", "--kubeconfig", plane.KubeconfigPath(), "-n", namespace)
		complete("provider+edge01", "clusters", "remove", "--hub-kubeconfig", plane.KubeconfigPath(), "--hub-namespace", namespace, "")
	}, SpecTimeout(time.Minute))
})
