package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

var _ = Describe("An application", func() {
	It("stays healthy through a rolling update, also while the new pod does not come up", func(ctx context.Context) {
		a := deploy(ctx, 3)
		var list corev1alpha2.HealthScopeList
		watcher, err := k8s.Watch(ctx, &list, client.InNamespace(a.namespace))
		Expect(err).NotTo(HaveOccurred())
		defer watcher.Stop()

		By("rolling out a pod that no node takes, and then one that fits")
		for _, nodes := range []map[string]string{{"no": "such-node"}, nil} {
			var d appsv1.Deployment
			Expect(k8s.Get(ctx, client.ObjectKeyFromObject(a.deployment(3)), &d)).To(Succeed())
			before := d.DeepCopy()
			d.Spec.Template.Spec.NodeSelector = nodes
			Expect(k8s.Patch(ctx, &d, client.MergeFrom(before))).To(Succeed())
			if nodes != nil {
				scope := a.eventually(ctx, corev1alpha2.Healthy, "2/3")
				Expect(scope.Status.Summary.Pending).To(BeEquivalentTo(1))
				Expect(scope.Status.Summary.Failed).To(BeZero())
				Expect(scope.Status.ScopeHealthCondition.HealthStatus).To(Equal(corev1alpha2.StatusHealthy))
				Eventually(ctx, a.inventory).Should(HaveKeyWithValue("Deployment/web", "Pending"))
				continue
			}
			Eventually(ctx, func(g Gomega) {
				g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(&d), &d)).To(Succeed())
				g.Expect(d.Status.UpdatedReplicas).To(BeEquivalentTo(3))
				g.Expect(d.Status.Replicas).To(BeEquivalentTo(3))
			}).Should(Succeed())
			a.eventually(ctx, corev1alpha2.Healthy, "3/3")
		}

		By("looking at every status there was")
		last, err := a.get(ctx)
		Expect(err).NotTo(HaveOccurred())
		for seen := ""; seen != last.ResourceVersion; {
			var event watch.Event
			Eventually(ctx, watcher.ResultChan()).Should(Receive(&event))
			scope, ok := event.Object.(*corev1alpha2.HealthScope)
			Expect(ok).To(BeTrue(), "%v", event)
			Expect(scope.Status.Health).To(Equal(corev1alpha2.Healthy), "culprit: %s", scope.Status.FirstCulprit)
			seen = scope.ResourceVersion
		}
	}, SpecTimeout(2*time.Minute))

	It("is forgotten as far as it is deleted, and altogether with its scope", func(ctx context.Context) {
		a := deploy(ctx, 1)
		Eventually(ctx, a.inventory).Should(Equal(map[string]string{"Deployment/web": "Ready", "Service/web": "Ready"}))
		Expect(k8s.Delete(ctx, a.service())).To(Succeed())
		a.eventually(ctx, corev1alpha2.Healthy, "2/2")
		Eventually(ctx, a.inventory).Should(Equal(map[string]string{"Deployment/web": "Ready"}))
		state := fmt.Sprintf(`healthscope_scope_state{namespace=%q`, a.namespace)
		Eventually(ctx, metric).WithArguments(state).Should(BeTrue())

		By("deleting the scope")
		Expect(k8s.Delete(ctx, a.scope())).To(Succeed())
		Eventually(ctx, a.inventory).Should(BeEmpty())
		Eventually(ctx, metric).WithArguments(state).Should(BeFalse())
	}, SpecTimeout(2*time.Minute))
})

var _ = Describe("Monitor and controller", Serial, func() {
	It("converge to the truth after they were killed, and write nothing when there is nothing to write", func(ctx context.Context) {
		a, b := deploy(ctx, 1), deploy(ctx, 2)
		Eventually(ctx, b.inventory).Should(HaveKeyWithValue("Service/web", "Ready"))

		By("killing both, and changing things behind their backs")
		Expect(hs.KillMonitor()).To(Succeed())
		Expect(hs.KillController()).To(Succeed())
		a.crash(ctx, true)
		Expect(k8s.Delete(ctx, b.service())).To(Succeed())
		Expect(k8s.Delete(ctx, b.configMap())).To(Succeed())
		Expect(hs.StartMonitor(ctx)).To(Succeed())
		Expect(hs.StartController(ctx)).To(Succeed())

		a.eventually(ctx, corev1alpha2.Unhealthy, "2/3")
		b.eventually(ctx, corev1alpha2.Healthy, "1/1")
		Eventually(ctx, a.inventory).Should(HaveKeyWithValue("Deployment/web", "Failed"))
		Eventually(ctx, b.inventory).Should(Equal(map[string]string{"Deployment/web": "Ready"}))
		Eventually(ctx, metric).WithArguments(fmt.Sprintf(`healthscope_scope_state{namespace=%q,scope="web",state="Failed"} 1`, a.namespace)).Should(BeTrue())

		By("referring to a Deployment that is in no bundle")
		plain := b.deployment(1)
		plain.ObjectMeta = metav1.ObjectMeta{Namespace: b.namespace, Name: "plain"}
		plain.Spec.Selector.MatchLabels = map[string]string{"app": "plain"}
		plain.Spec.Template.Labels = plain.Spec.Selector.MatchLabels
		Expect(k8s.Create(ctx, plain)).To(Succeed())
		scope, err := b.get(ctx)
		Expect(err).NotTo(HaveOccurred())
		without := scope.DeepCopy()
		scope.Spec.WorkloadReferences = []corev1alpha2.WorkloadReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "plain"}}
		Expect(k8s.Patch(ctx, scope, client.MergeFrom(without))).To(Succeed())
		b.eventually(ctx, corev1alpha2.Healthy, "2/2")
		Eventually(ctx, b.inventory).Should(HaveKeyWithValue("Deployment/plain", "Ready"))

		By("restarting both with nothing to do")
		a.inventorySynced(ctx)
		b.inventorySynced(ctx)
		before := statuses(ctx)
		Eventually(ctx, func() bool { // Until no write is in progress.
			known := before
			before = statuses(ctx)
			return maps.Equal(known, before)
		}).WithPolling(time.Second).Should(BeTrue())
		_, last := writes(ctx, 0)
		Expect(hs.KillController()).To(Succeed())
		Expect(hs.StopMonitor()).To(Succeed())
		Expect(hs.StartMonitor(ctx)).To(Succeed())
		Expect(hs.StartController(ctx)).To(Succeed())
		Eventually(ctx, metric).WithArguments(`healthscope_aai_requests_total{code="200",operation="list"}`).Should(BeTrue())
		Consistently(ctx, func() string { return cmp.Diff(before, statuses(ctx)) }, "2s").Should(BeEmpty())
		written, _ := writes(ctx, last)
		Expect(written).To(BeEmpty())
	}, SpecTimeout(4*time.Minute))
})

// inventorySynced waits until the scope reports that A&AI holds everything.
func (a app) inventorySynced(ctx context.Context) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		scope, err := a.get(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(scope.Status.Inventory).NotTo(BeNil())
		g.Expect(scope.Status.Inventory.Pending + scope.Status.Inventory.Failed).To(BeZero())
	}).Should(Succeed())
}

// statuses returns the resource version and the status of every bundle and scope, so that a comparison shows what an unexpected
// write changed.
func statuses(ctx context.Context) map[string]string {
	GinkgoHelper()
	var bundles k8spluginv1alpha1.ResourceBundleStateList
	var scopes corev1alpha2.HealthScopeList
	Expect(k8s.List(ctx, &bundles)).To(Succeed())
	Expect(k8s.List(ctx, &scopes)).To(Succeed())
	all := map[string]string{}
	note := func(kind string, o client.Object, status any) {
		text, err := yaml.Marshal(status)
		Expect(err).NotTo(HaveOccurred())
		all[kind+" "+client.ObjectKeyFromObject(o).String()] = "resourceVersion: " + o.GetResourceVersion() + "\n" + string(text)
	}
	for i := range bundles.Items {
		note("bundle", &bundles.Items[i], bundles.Items[i].Status)
	}
	for i := range scopes.Items {
		note("scope", &scopes.Items[i], scopes.Items[i].Status)
	}
	return all
}

// metric reports whether the controller's metrics contain a line with this prefix.
func metric(ctx context.Context, line string) (bool, error) {
	status, text, err := hs.Text(ctx, hs.Metrics)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("status %d", status)
	}
	return strings.Contains(text, "\n"+line), err
}
