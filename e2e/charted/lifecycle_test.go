package charted

import (
	"context"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

// identities returns the UIDs of all scopes and bundles, by kind and name.
func identities(ctx context.Context) map[string]string {
	GinkgoHelper()
	var bundles k8spluginv1alpha1.ResourceBundleStateList
	Expect(k8s.List(ctx, &bundles)).To(Succeed())
	scope, err := sample(ctx)
	Expect(err).NotTo(HaveOccurred())
	uids := map[string]string{"scope " + scope.Name: string(scope.UID)}
	for _, b := range bundles.Items {
		uids["bundle "+b.Name] = string(b.UID)
	}
	return uids
}

// copied returns the values of a label of the resources in the sink's bundle.
func copied(ctx context.Context, label string) (map[string]bool, error) {
	var b k8spluginv1alpha1.ResourceBundleState
	err := k8s.Get(ctx, client.ObjectKey{Namespace: "default", Name: "171887448792644816-sink"}, &b)
	values := map[string]bool{}
	for _, r := range b.Status.Resources {
		values[r.Labels[label]] = true
	}
	return values, err
}

// reinstall installs the release and starts its programs.
func reinstall(ctx context.Context, values ...string) {
	GinkgoHelper()
	Expect(hs.Install(ctx, values...)).To(Succeed())
	Expect(hs.StartMonitor(ctx)).To(Succeed())
	Expect(hs.StartController(ctx)).To(Succeed())
}

// restarted returns a function that reports whether monitor and controller run in other processes than before.
func restarted(before map[string]int) func() bool {
	return func() bool {
		now := hs.PIDs()
		return now["monitor"] != before["monitor"] && now["controller"] != before["controller"]
	}
}

// asks returns the status code with which the REST server answers a request for a path.
func asks(ctx context.Context, path string) (int, error) {
	status, _, err := hs.Text(ctx, hs.API+path)
	return status, err
}

var _ = Describe("A release", Ordered, func() {
	var uids map[string]string

	BeforeAll(func(ctx context.Context) { uids = identities(ctx) })

	It("takes up new settings by restarting its containers", func(ctx context.Context) {
		pids := hs.PIDs()
		Eventually(ctx, asks).WithArguments("/scopes/vfw").Should(Equal(http.StatusOK))
		Expect(hs.Upgrade(ctx, withMonitors, `
config:
  api: {defaultNamespace: elsewhere}
  monitor: {allowedLabels: [app]}`)).To(Succeed())
		Eventually(ctx, copied).WithArguments("app").Should(HaveKey("sink"))
		Eventually(ctx, func() int {
			status, _ := asks(ctx, "/scopes/vfw") // While the container restarts, the REST server does not answer.
			return status
		}).Should(Equal(http.StatusNotFound))
		Eventually(ctx, func() int {
			status, _ := asks(ctx, "/scopes/default/vfw")
			return status
		}).Should(Equal(http.StatusOK))
		Expect(restarted(pids)()).To(BeTrue())
	}, SpecTimeout(3*time.Minute))

	It("goes on with the settings it has when new ones cannot be used", func(ctx context.Context) {
		pids := hs.PIDs()
		Expect(hs.Upgrade(ctx, withMonitors)).To(Succeed())
		Eventually(restarted(pids)).Should(BeTrue())
		Eventually(ctx, func() int {
			status, _ := asks(ctx, "/scopes/vfw")
			return status
		}).Should(Equal(http.StatusOK))
		pids = hs.PIDs()
		By("a field that there is not, which Helm refuses")
		Expect(hs.Upgrade(ctx, withMonitors, `config: {policy: {patienceSeconds: 5}}`)).To(MatchError(ContainSubstring("'patienceSeconds' not allowed")))
		By("a name that no namespace can have, which the program refuses")
		Expect(hs.Upgrade(ctx, withMonitors, `config: {api: {defaultNamespace: No_Namespace}}`)).To(Succeed())
		Eventually(logged).WithArguments("controller", "api.defaultNamespace").Should(BeNumerically(">", 0))
		Consistently(ctx, says).Should(Equal("healthy 9/9"))
		Expect(asks(ctx, "/scopes/vfw")).To(Equal(http.StatusOK))
		Expect(hs.PIDs()).To(Equal(pids))
		Expect(hs.Upgrade(ctx, withMonitors)).To(Succeed())
	}, SpecTimeout(3*time.Minute))

	It("replaces the pods whose arguments and environment change, and no others", func(ctx context.Context) {
		pids := hs.PIDs()
		Expect(hs.Upgrade(ctx, withMonitors, `controller: {extraArgs: [--verbosity=0], extraEnv: [{name: GODEBUG, value: "gctrace=1"}]}`)).To(Succeed())
		Eventually(logged).WithArguments("controller", "\ngc 1 @").Should(BeNumerically(">", 0), "the environment reaches the program")
		now := hs.PIDs()
		Expect(now["controller"]).NotTo(Equal(pids["controller"]))
		Expect(now["monitor"]).To(Equal(pids["monitor"]))
		isHealthy(ctx)
		Expect(hs.Upgrade(ctx, withMonitors)).To(Succeed())
		isHealthy(ctx)
	}, SpecTimeout(3*time.Minute))

	It("leaves what its page says when it is uninstalled", func(ctx context.Context) {
		Expect(hs.Uninstall(ctx)).To(Succeed())
		Eventually(ctx, added).WithTimeout(30 * time.Second).WithPolling(time.Second).Should(ConsistOf(
			"apiservices.apiregistration.k8s.io//v1alpha1.k8splugin.io", // The API server creates one for each group of CRDs.
			"apiservices.apiregistration.k8s.io//v1alpha2.core.oam.dev",
			"configmaps/healthscope-clusters/healthscope-clusters",
			"configmaps/healthscope-clusters/kube-root-ca.crt", // As in every namespace.
			"configmaps/healthscope-system/kube-root-ca.crt",
			"customresourcedefinitions.apiextensions.k8s.io//healthscopes.core.oam.dev",
			"customresourcedefinitions.apiextensions.k8s.io//resourcebundlestates.k8splugin.io",
			"leases.coordination.k8s.io/healthscope-system/healthscope-controller",
			"leases.coordination.k8s.io/healthscope-system/healthscope-monitor",
			"namespaces//healthscope-clusters",
			"namespaces//healthscope-system",
			"secrets/healthscope-system/aai", // The user created it.
			"serviceaccounts/healthscope-clusters/default",
			"serviceaccounts/healthscope-system/default",
		))
		Expect(identities(ctx)).To(Equal(uids))
	}, SpecTimeout(3*time.Minute))

	It("is installed again over what was left", func(ctx context.Context) {
		kubectl(ctx, "delete", "configmap", "-n", "default", "sink-configmap")
		DeferCleanup(applySample)
		reinstall(ctx, withMonitors)
		Eventually(ctx, says).Should(Equal("healthy 8/8"))
		Expect(identities(ctx)).To(Equal(uids))
	}, SpecTimeout(3*time.Minute))
})
