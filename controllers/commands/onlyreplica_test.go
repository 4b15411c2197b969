package commands_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/e2e/faults"
	"github.com/healthscope/healthscope/e2e/suite"
)

// onlyReplica is a controller without other replicas. It connects to its API server through a proxy.
type onlyReplica struct {
	*running

	proxy     *faults.Proxy
	namespace string
	scope     *corev1alpha2.HealthScope
}

// isLeader is the metric of a controller that is the leader.
const isLeader = `leader_election_master_status{name="healthscope-controller"} 1`

// startOnlyReplica starts a controller while its API server is down, and returns it once it leads.
func startOnlyReplica(ctx context.Context, proxy *faults.Proxy, kubeconfig string) *onlyReplica {
	GinkgoHelper()
	namespace := suite.NewNamespace(ctx, api)
	scope := &corev1alpha2.HealthScope{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}, Spec: corev1alpha2.HealthScopeSpec{
		WorkloadReferences: []corev1alpha2.WorkloadReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}},
	}}
	Expect(api.Create(ctx, scope)).To(Succeed())
	proxy.Cut()
	r := &onlyReplica{start(namespace, "controller", "--kubeconfig", kubeconfig), proxy, namespace, scope}
	Eventually(getting(ctx, r.probes, "/healthz")).Should(Equal("200 ok"))
	Expect(getting(ctx, r.probes, "/readyz")()).To(HavePrefix("500 "))
	Eventually(getting(ctx, r.api, "/scopes/"+namespace+"/web")).Should(HavePrefix("503 "))
	Eventually(getting(ctx, r.metrics, "/metrics")).Should(HavePrefix("200 "))
	proxy.Mend()
	r.judges(ctx)
	Eventually(getting(ctx, r.probes, "/readyz")).WithTimeout(outageTime).Should(Equal("200 ok"))
	Expect(getting(ctx, r.metrics, "/metrics")()).To(ContainSubstring(isLeader))
	return r
}

// judges waits until the controller has judged the current version of its scope. No other controller may run.
func (r *onlyReplica) judges(ctx context.Context) {
	GinkgoHelper()
	Eventually(func() string {
		var now corev1alpha2.HealthScope
		if err := api.Get(ctx, client.ObjectKeyFromObject(r.scope), &now); err != nil || now.Status.ObservedGeneration != now.Generation {
			return ""
		}
		return string(now.Status.Health)
	}).WithTimeout(outageTime).Should(Equal("unhealthy"))
}

// losesLease waits until the controller no longer leads, in an outage.
func (r *onlyReplica) losesLease(ctx context.Context) {
	GinkgoHelper()
	Eventually(getting(ctx, r.metrics, "/metrics")).WithTimeout(outageTime).Should(And(HavePrefix("200 "), Not(ContainSubstring(isLeader))), "leadership is given up")
	Eventually(getting(ctx, r.api, "/scopes/"+r.namespace+"/web")).WithTimeout(outageTime).Should(And(HavePrefix("503 "), ContainSubstring(`"lastSeen":"`), ContainSubstring(`"reason":"`)))
	Eventually(getting(ctx, r.metrics, "/metrics")).Should(And(HavePrefix("200 "), Not(ContainSubstring("healthscope_scope_state"))), "what only the leader knows is gone with its term")
}

// leadsAgain changes the scope during the outage, ends the outage, waits until the controller leads again, and stops it.
func (r *onlyReplica) leadsAgain(ctx context.Context) {
	GinkgoHelper()
	other := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"workloadRefs":[{"apiVersion":"apps/v1","kind":"Deployment","name":"other"}]}}`))
	Expect(api.Patch(ctx, r.scope, other)).To(Succeed())
	r.proxy.Mend()
	r.judges(ctx)
	Expect(r.Running()).To(BeTrue())
	Expect(r.Stop(grace)).To(Succeed())
	Expect(leaseHolder(ctx, r.namespace, "healthscope-controller")()).To(BeEmpty(), "the Lease is given back")
}
