package app_test

import (
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/e2e/suite"
)

var _ = Describe("the only replica of a hub", func() {
	It("outlives its API server, and leads again when that is back", func(ctx SpecContext) {
		own, hub := suite.Start(ctx, controlplane.Options{Name: "outage"}, crds)
		Expect(hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "hub"}})).To(Succeed())
		s := &corev1alpha2.HealthScope{ObjectMeta: metav1.ObjectMeta{Namespace: "hub", Name: "web"}}
		s.Spec.WorkloadReferences = []corev1alpha2.WorkloadReference{}
		Expect(hub.Create(ctx, s)).To(Succeed())

		By("starting while the API server is away")
		Expect(own.StopAPIServer()).To(Succeed())
		dir := GinkgoT().TempDir()
		r := &running{api: freeAddress(ctx), metrics: freeAddress(ctx), probes: freeAddress(ctx), guardedMetrics: "0", config: filepath.Join(dir, "config.yaml")}
		r.configure()
		r.Process = launch(dir, program, "controller", "--kubeconfig", own.KubeconfigPath(), "--namespace", "hub", "--config", r.config, "--health-probe-bind-address", r.probes)
		Eventually(asking(ctx, r.probes, "/healthz")).WithTimeout(time.Minute).Should(Equal("200 ok"))
		Expect(asking(ctx, r.probes, "/readyz")()).To(HavePrefix("500 "))
		ask := asking(ctx, r.api, "/scopes/hub/web")
		Expect(own.StartAPIServer(ctx)).To(Succeed())
		Eventually(asking(ctx, r.probes, "/readyz")).WithTimeout(2 * time.Minute).Should(Equal("200 ok"))
		judged := func() int64 {
			var now corev1alpha2.HealthScope
			if err := hub.Get(ctx, client.ObjectKeyFromObject(s), &now); err != nil {
				return -1
			}
			return now.Status.ObservedGeneration
		}
		Eventually(judged).WithTimeout(time.Minute).Should(BeEquivalentTo(1))
		Eventually(ask).WithTimeout(time.Minute).Should(HavePrefix("200 "))
		leads := ContainSubstring(`leader_election_master_status{name="healthscope-controller"} 1`)
		Expect(asking(ctx, r.metrics, "/metrics")()).To(And(leads, ContainSubstring(`healthscope_scope_state{namespace="hub"`)))

		By("losing it")
		Expect(own.StopAPIServer()).To(Succeed())
		Eventually(asking(ctx, r.metrics, "/metrics")).WithTimeout(time.Minute).Should(ContainSubstring(`leader_election_master_status{name="healthscope-controller"} 0`))
		Eventually(ask).WithTimeout(time.Minute).Should(And(HavePrefix("503 "), ContainSubstring(`"lastSeen":"`), ContainSubstring(`"reason":"`)))
		Expect(asking(ctx, r.metrics, "/metrics")()).NotTo(ContainSubstring("healthscope_scope_state"), "nobody knows")
		Expect(asking(ctx, r.probes, "/healthz")()).To(Equal("200 ok"))
		Expect(r.Running()).To(BeTrue())

		By("having it back")
		Expect(own.StartAPIServer(ctx)).To(Succeed())
		Eventually(asking(ctx, r.metrics, "/metrics")).WithTimeout(time.Minute).Should(leads)
		change := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"workloadRefs":[{"apiVersion":"apps/v1","kind":"Deployment","name":"absent"}]}}`))
		Expect(hub.Patch(ctx, s, change)).To(Succeed())
		Eventually(judged).WithTimeout(time.Minute).Should(BeEquivalentTo(2))
		Eventually(ask).WithTimeout(time.Minute).Should(Equal("200 unhealthy\n"))
		Expect(r.Running()).To(BeTrue())
		Expect(r.Stop(grace)).To(Succeed())
		var lease coordinationv1.Lease
		Expect(hub.Get(ctx, client.ObjectKey{Namespace: "hub", Name: "healthscope-controller"}, &lease)).To(Succeed())
		Expect(*lease.Spec.HolderIdentity).To(BeEmpty(), "the Lease is given back")
	}, SpecTimeout(8*time.Minute))
})
