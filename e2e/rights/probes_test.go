package rights

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/e2e/chart"
)

var _ = Describe("The rights of the controller for probes", func() {
	It("are, where the chart gives them, those that it uses", func(ctx context.Context) {
		probed := application("probed")
		Expect(k8s.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: string(probed)}})).To(Succeed())
		upgrade := func(ctx context.Context, value string) {
			_, err := helm.Run(ctx, cp.KubeconfigPath(), nil, "upgrade", chart.Release, helm.Chart(), "--namespace", home, "--set", "probeNamespaces="+value)
			Expect(err).NotTo(HaveOccurred())
		}
		upgrade(ctx, "{"+string(probed)+"}")
		DeferCleanup(upgrade, "null")

		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: string(probed), Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
		service.Labels = map[string]string{corev1alpha2.LabelScopeName: "web"}
		Expect(k8s.Create(ctx, service)).To(Succeed())
		s := probed.scope("web")
		s.Spec.ProbeMethod, s.Spec.ProbeEndpoint = "GET", "/health"
		Expect(k8s.Create(ctx, s)).To(Succeed())
		since := time.Now()
		hs := start(ctx, listing, "probes:\n  enabled: true\n")
		Eventually(ctx, func(g Gomega) string {
			g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(s), s)).To(Succeed())
			return s.Status.FirstCulprit
		}).Should(Equal("Service/web in local: NotProbed"), "it has no endpoints")
		Eventually(func() []string {
			return Compare(audit(since).Uses, of(granted(ctx), controller+"-probes"))
		}).Should(BeEmpty())
		Expect(hs.Stop()).To(Succeed())
		Expect(audit(since).Refused).To(BeEmpty())
	}, SpecTimeout(3*time.Minute))
})
