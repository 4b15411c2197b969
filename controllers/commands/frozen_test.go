package commands_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/healthscope/healthscope/aai/simulator"
	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/e2e/suite"
	"github.com/healthscope/healthscope/healthscope/bundle"
)

var _ = Describe("a controller that is frozen while it writes to A&AI, and thawed when another one leads", func() {
	BeforeEach(func() {
		if !suite.IsExtended() {
			Skip("it takes a Lease's time; make test-extended runs it")
		}
	})
	DescribeTable("leaves A&AI as the other one has written it", func(ctx SpecContext, kill bool) {
		const services = 300
		namespace := suite.NewNamespace(ctx, api)
		inventory := simulator.New(simulator.Options{})
		Expect(inventory.Seed(simulator.CloudRegion("o", "r"), simulator.Tenant("o", "r", "t"))).To(Succeed())
		server := httptest.NewServer(inventory)
		DeferCleanup(server.Close)
		Expect(inventory.AddFaults(simulator.Fault{Method: http.MethodPost, Delay: 2 * time.Second})).To(Succeed())

		b := &k8spluginv1alpha1.ResourceBundleState{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "7-web"}}
		Expect(api.Create(ctx, b)).To(Succeed())
		report := func(kind string) {
			GinkgoHelper()
			all := make([]*unstructured.Unstructured, 0, services)
			for n := range services {
				s := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"type": kind}}}
				s.SetAPIVersion("v1")
				s.SetKind("Service")
				s.SetNamespace(namespace)
				s.SetName(fmt.Sprintf("web-%d", n))
				all = append(all, s)
			}
			b.Status = bundle.Build(all, nil, time.Now(), bundle.Options{})
			Expect(api.Status().Update(ctx, b)).To(Succeed())
		}
		report("ClusterIP")
		createMonitorLease(ctx, namespace)
		s := &corev1alpha2.HealthScope{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shop"}, Spec: corev1alpha2.HealthScopeSpec{
			WorkloadReferences: []corev1alpha2.WorkloadReference{{APIVersion: k8spluginv1alpha1.GroupVersion.String(), Kind: k8spluginv1alpha1.ResourceBundleStateKind, Name: "7-web"}},
		}}
		Expect(api.Create(ctx, s)).To(Succeed())
		DeferCleanup(api.Delete, s)
		launchOne := func(kubeconfig string) *running {
			return start(namespace, "controller", "--kubeconfig", kubeconfig, "--config", configuration(GinkgoT().TempDir(), `
metrics: {bindAddress: '0'}
api: {bindAddress: '0'}
fleet: {monitorNamespace: %[1]s}
inventory:
  url: %[2]s
  regions:
  - {cluster: local, namespace: %[1]s, cloudOwner: o, cloudRegionId: r, tenantId: t}
`, namespace, server.URL))
		}
		states := func() map[string]int {
			counts := map[string]int{}
			for _, d := range inventory.List("/cloud-infrastructure/cloud-regions/cloud-region/o/r/tenants/tenant/t/k8s-resources") {
				labels, _ := d["labels"].([]string)
				for _, state := range []string{"Ready", "Pending", "Failed"} {
					if slices.Contains(labels, "healthscope.core.oam.dev/status="+state) {
						counts[state]++
					}
				}
			}
			return counts
		}

		proxy, kubeconfig := startProxy()
		first := launchOne(kubeconfig)
		Eventually(states).Should(HaveKeyWithValue("Ready", BeNumerically("<", services)))
		leader := leaseHolder(ctx, namespace, "healthscope-controller")()
		Expect(syscall.Kill(first.PID(), syscall.SIGSTOP)).To(Succeed())
		proxy.Cut() // Its connections end, so that it does not receive the missed changes at once.
		frozen := time.Now()
		report("LoadBalancer")
		launchOne(plane.KubeconfigPath())
		all := Equal(map[string]int{"Pending": services})
		Eventually(states).WithTimeout(2 * time.Minute).Should(all)
		Expect(leaseHolder(ctx, namespace, "healthscope-controller")()).NotTo(Equal(leader))
		GinkgoWriter.Printf("taken over after %s\n", time.Since(frozen))

		Expect(syscall.Kill(first.PID(), syscall.SIGCONT)).To(Succeed())
		if kill {
			Consistently(states).WithTimeout(3 * time.Second).Should(all)
			Expect(first.Kill()).To(Succeed())
		} else {
			Eventually(first.LogTail).Should(ContainSubstring("This replica no longer leads"))
		}
		Consistently(states).WithTimeout(3 * time.Second).Should(all)
	},
		Entry("when it lives on", NodeTimeout(5*time.Minute), false),
		Entry("when it is killed then", NodeTimeout(5*time.Minute), true),
	)
})
