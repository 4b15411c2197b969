package charted

import (
	"context"
	"encoding/json"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/e2e/suite"
)

// bundle reads the sink's bundle with every field that the API server stores.
func bundle(ctx context.Context) *unstructured.Unstructured {
	GinkgoHelper()
	b := &unstructured.Unstructured{}
	b.SetGroupVersionKind(k8spluginv1alpha1.GroupVersion.WithKind(k8spluginv1alpha1.ResourceBundleStateKind))
	Expect(k8s.Get(ctx, client.ObjectKey{Namespace: "default", Name: "171887448792644816-sink"}, b)).To(Succeed())
	return b
}

// write changes the status of the sink's bundle as a monitor of another version would.
func write(ctx context.Context, change func(status map[string]any)) {
	GinkgoHelper()
	Expect(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		b := bundle(ctx)
		status, ok := b.Object["status"].(map[string]any)
		Expect(ok).To(BeTrue())
		change(status)
		return k8s.Status().Update(ctx, b, client.FieldOwner("healthscope-monitor"))
	})).To(Succeed())
}

// older returns a change to the status that an older monitor writes, which knows only the lists. The Deployment has the given replicas and ready replicas.
func older(replicas, ready int64) func(status map[string]any) {
	return func(status map[string]any) {
		GinkgoHelper()
		for _, field := range []string{"resources", "summary", "truncated"} {
			delete(status, field)
		}
		for field, value := range map[string]int64{"replicas": replicas, "readyReplicas": ready} {
			Expect(unstructured.SetNestedField(deploymentOf(status), value, "status", field)).To(Succeed())
		}
	}
}

// newer returns a change to the status that a newer monitor writes, which knows more fields. The Deployment has the given state and reason.
func newer(state, reason string) func(status map[string]any) {
	return func(status map[string]any) {
		GinkgoHelper()
		status["mood"] = "good"
		resources, ok := status["resources"].([]any)
		Expect(ok).To(BeTrue())
		for _, r := range resources {
			resource, ok := r.(map[string]any)
			Expect(ok).To(BeTrue())
			resource["mood"] = "good"
			if resource["kind"] == "Deployment" {
				resource["state"], resource["reason"] = state, reason
			}
		}
	}
}

// patchCRD adds the fields of a newer version to the CRD of bundles, or removes them.
func patchCRD(ctx context.Context, operation string) {
	GinkgoHelper()
	var patch []map[string]any
	for _, parent := range []string{"", "/resources/items/properties"} {
		path := "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties" + parent + "/mood"
		patch = append(patch, map[string]any{"op": operation, "path": path, "value": map[string]string{"type": "string"}})
	}
	text, err := json.Marshal(patch)
	Expect(err).NotTo(HaveOccurred())
	kubectl(ctx, "patch", "crd", "resourcebundlestates.k8splugin.io", "--type", "json", "--patch", string(text))
}

// mood returns the value that the API server stores for the field of a newer version.
func mood(ctx context.Context) string {
	GinkgoHelper()
	text, _, err := unstructured.NestedString(bundle(ctx).Object, "status", "mood")
	Expect(err).NotTo(HaveOccurred())
	return text
}

// resources returns the length of the bundle's list of resources, which older monitors do not write.
func resources(ctx context.Context) int {
	GinkgoHelper()
	list, _, err := unstructured.NestedSlice(bundle(ctx).Object, "status", "resources")
	Expect(err).NotTo(HaveOccurred())
	return len(list)
}

// deploymentOf returns the Deployment in the lists of a bundle.
func deploymentOf(status map[string]any) map[string]any {
	GinkgoHelper()
	list, ok := status["deploymentStatuses"].([]any)
	Expect(ok).To(BeTrue())
	Expect(list).To(HaveLen(1))
	d, ok := list[0].(map[string]any)
	Expect(ok).To(BeTrue())
	return d
}

var _ = Describe("A hub and a monitor of different versions", func() {
	BeforeEach(func(ctx context.Context) {
		suite.ExtendedSpec()
		isHealthy(ctx)
		Expect(hs.StopMonitor()).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(hs.StartMonitor(ctx)).To(Succeed())
			Eventually(ctx, resources).Should(BeNumerically(">", 0), "the monitor of this version makes the bundle its own again")
			Eventually(ctx, mood).Should(BeEmpty())
			isHealthy(ctx)
		})
	})

	It("agree when the monitor is older and writes lists only", func(ctx context.Context) {
		write(ctx, older(1, 0))
		Eventually(ctx, says).Should(HavePrefix("unhealthy 8/9 Deployment"))
		write(ctx, older(1, 1))
		isHealthy(ctx)
	}, SpecTimeout(2*time.Minute))

	It("agree when the monitor is newer and writes fields that the hub does not know", func(ctx context.Context) {
		By("having the CRD of a newer version, which has more fields")
		patchCRD(ctx, "add")
		DeferCleanup(patchCRD, "remove")
		Eventually(ctx, func() string { // The API server keeps the new fields only after a short delay.
			write(ctx, newer("Failed", "ReasonOfTomorrow"))
			return mood(ctx)
		}).Should(Equal("good"))
		Eventually(ctx, says).Should(Equal("unhealthy 8/9 Deployment ReasonOfTomorrow"))
		write(ctx, newer("Ready", ""))
		isHealthy(ctx)
	}, SpecTimeout(2*time.Minute))
})
