package rights

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
)

// workloadsOfOAM are the kinds of OAM's own workloads, by their apiVersions.
var workloadsOfOAM = map[string]string{"core.oam.dev/v1alpha2": "ContainerizedWorkload", "standard.oam.dev/v1alpha1": "PodSpecWorkload"}

// defineOAM makes the CRDs of OAM's own workloads, until the spec is over.
func defineOAM(ctx context.Context) {
	GinkgoHelper()
	for apiVersion, kind := range workloadsOfOAM {
		group, version, _ := strings.Cut(apiVersion, "/")
		crd := definition(group, version, kind, strings.ToLower(kind)+"s")
		Expect(k8s.Create(ctx, crd)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(k8s.Delete(ctx, crd)).To(Succeed()) })
	}
}

// deployOAM makes a workload of OAM of each kind, which both lead to Deployment and Service web, and a scope "oam" that refers to them.
func (a application) deployOAM(ctx context.Context) {
	GinkgoHelper()
	var refs []corev1alpha2.WorkloadReference
	for apiVersion, kind := range workloadsOfOAM {
		w := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": apiVersion, "kind": kind,
			"status": map[string]any{"resources": []any{
				map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
				map[string]any{"apiVersion": "v1", "kind": "Service", "name": "web"},
			}},
		}}
		w.SetNamespace(string(a))
		w.SetName("web")
		Eventually(func() error { return client.IgnoreAlreadyExists(k8s.Create(ctx, w)) }).Should(Succeed(), "the CRD is served a moment after it was made")
		refs = append(refs, workload(apiVersion, kind, "web"))
	}
	Expect(k8s.Create(ctx, a.scope("oam", refs...))).To(Succeed())
}
