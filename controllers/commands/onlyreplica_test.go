package commands_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/e2e/suite"
)

var _ = Describe("the only replica of the controller", func() {
	It("starts while its API server is away, and lives through an outage longer than its Lease", func(ctx SpecContext) {
		namespace := suite.NewNamespace(ctx, api)
		scope := &corev1alpha2.HealthScope{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}, Spec: corev1alpha2.HealthScopeSpec{
			WorkloadReferences: []corev1alpha2.WorkloadReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}},
		}}
		Expect(api.Create(ctx, scope)).To(Succeed())
		proxy, kubeconfig := viaProxy()
		proxy.Cut()
		r := start(namespace, "controller", "--kubeconfig", kubeconfig)
		Eventually(asking(ctx, r.probes, "/healthz")).Should(Equal("200 ok"))
		Expect(asking(ctx, r.probes, "/readyz")()).To(HavePrefix("500 "))
		Eventually(asking(ctx, r.api, "/scopes/"+namespace+"/web")).Should(HavePrefix("503 "))
		Eventually(asking(ctx, r.metrics, "/metrics")).Should(HavePrefix("200 "))
		proxy.Mend()

		leads := `leader_election_master_status{name="healthscope-controller"} 1`
		judged := func() string {
			var now corev1alpha2.HealthScope
			if err := api.Get(ctx, client.ObjectKeyFromObject(scope), &now); err != nil || now.Status.ObservedGeneration != now.Generation {
				return ""
			}
			return string(now.Status.Health)
		}
		Eventually(judged).WithTimeout(outageTime).Should(Equal("unhealthy"))
		Eventually(asking(ctx, r.probes, "/readyz")).WithTimeout(outageTime).Should(Equal("200 ok"))
		Expect(asking(ctx, r.metrics, "/metrics")()).To(ContainSubstring(leads))
		proxy.Cut()
		Eventually(asking(ctx, r.metrics, "/metrics")).WithTimeout(outageTime).Should(And(HavePrefix("200 "), Not(ContainSubstring(leads))), "leadership is given up")
		Eventually(asking(ctx, r.api, "/scopes/"+namespace+"/web")).WithTimeout(outageTime).Should(And(HavePrefix("503 "), ContainSubstring(`"lastSeen":"`), ContainSubstring(`"reason":"`)))
		Eventually(asking(ctx, r.metrics, "/metrics")).Should(And(HavePrefix("200 "), Not(ContainSubstring("healthscope_scope_state"))), "what only the leader knows is gone with its term")
		other := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"workloadRefs":[{"apiVersion":"apps/v1","kind":"Deployment","name":"other"}]}}`))
		Expect(api.Patch(ctx, scope, other)).To(Succeed())
		proxy.Mend()
		Eventually(judged).WithTimeout(outageTime).Should(Equal("unhealthy"))
		Expect(r.Running()).To(BeTrue())
		Expect(r.Stop(grace)).To(Succeed())
		Expect(holder(ctx, namespace, "healthscope-controller")()).To(BeEmpty(), "the Lease is given back")
	}, NodeTimeout(5*time.Minute))
})
