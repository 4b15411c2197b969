package e2e

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
)

// rulesOf returns a configuration with two health checks for the objects of a namespace: one for the objects that the
// monitor reads and one for those that the controller reads. In both, the label makes an object fail.
func rulesOf(namespace string) string {
	return fmt.Sprintf(`%s
healthCheckExprs:
- {name: maps, apiVersion: v1, kind: ConfigMap, match: {namespace: %[2]s}, current: "true", failed: "metadata.labels['app'] == 'web'"}
- {name: workloads, apiVersion: apps/v1, kind: Deployment, match: {namespace: %[2]s}, current: "true", failed: "metadata.labels['app'] == 'web'"}
`, suiteConfiguration, namespace)
}

var _ = Describe("Health checks of the configuration", func() {
	It("take effect without a restart, and a bad one is named and disturbs nothing", func(ctx context.Context) {
		a := deploy(ctx, 1)
		direct := &corev1alpha2.HealthScope{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "direct"}, Spec: corev1alpha2.HealthScopeSpec{
			WorkloadReferences: []corev1alpha2.WorkloadReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}},
		}}
		Expect(k8s.Create(ctx, direct)).To(Succeed())
		culprits := func(name string) func() []string {
			return func() []string {
				var s corev1alpha2.HealthScope
				Expect(k8s.Get(ctx, client.ObjectKey{Namespace: a.namespace, Name: name}, &s)).To(Succeed())
				found := []string{string(s.Status.Health)}
				for _, c := range s.Status.Culprits {
					found = append(found, c.Kind+" "+c.Reason)
				}
				return found
			}
		}
		condition := func() *metav1.Condition {
			var s corev1alpha2.HealthScope
			Expect(k8s.Get(ctx, client.ObjectKeyFromObject(direct), &s)).To(Succeed())
			return meta.FindStatusCondition(s.Status.Conditions, corev1alpha2.ConditionHealthChecksInvalid)
		}
		Eventually(culprits("direct")).Should(Equal([]string{"healthy"}))
		pids := hs.PIDs()

		By("adding rules")
		DeferCleanup(func(ctx context.Context) error { return hs.Configure(ctx, suiteConfiguration) })
		Expect(hs.Configure(ctx, rulesOf(a.namespace))).To(Succeed())
		Eventually(culprits("direct")).Should(Equal([]string{"unhealthy", "Deployment HealthCheckFailed"}))
		Eventually(culprits("web")).Should(Equal([]string{"unhealthy", "ConfigMap HealthCheckFailed", "Deployment HealthCheckFailed"}))
		Expect(condition()).To(BeNil())

		By("adding one that cannot be used")
		Expect(hs.Configure(ctx, rulesOf(a.namespace)+"- {name: typo, apiVersion: v1, kind: Service, current: status.conditons.exists(}\n")).To(Succeed())
		Eventually(condition).Should(And(HaveField("Status", metav1.ConditionTrue), HaveField("Message", ContainSubstring("typo"))))
		_, text, err := hs.Text(ctx, hs.Metrics)
		Expect(err).NotTo(HaveOccurred())
		Expect(text).To(ContainSubstring(`healthscope_health_rule_errors{rule="typo"} 1`))
		Expect(culprits("direct")()).To(Equal([]string{"unhealthy", "Deployment HealthCheckFailed"}))

		By("taking all rules away")
		Expect(hs.Configure(ctx, suiteConfiguration)).To(Succeed())
		Eventually(culprits("direct")).Should(Equal([]string{"healthy"}))
		Eventually(culprits("web")).Should(Equal([]string{"healthy"}))
		Eventually(condition).Should(BeNil())
		Expect(hs.PIDs()).To(Equal(pids))
	})
})
