package charted

import (
	"context"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"github.com/healthscope/healthscope/e2e/chart"
	"github.com/healthscope/healthscope/e2e/installation"
)

// passing are the resources whose objects Kubernetes creates and deletes automatically, also for Services of others.
var passing = []string{"events", "endpoints", "endpointslices", "componentstatuses", "ipaddresses"}

// objects returns objects in the cluster, as resource.group/namespace/name: those without a namespace, those in a namespace of
// HealthScope, and those with the label of the release.
func objects(ctx context.Context) map[string]bool {
	GinkgoHelper()
	kinds, err := discovery.NewDiscoveryClientForConfig(plane.Config())
	Expect(err).NotTo(HaveOccurred())
	lists, err := kinds.ServerPreferredResources()
	Expect(err).NotTo(HaveOccurred())
	api, err := dynamic.NewForConfig(plane.Config())
	Expect(err).NotTo(HaveOccurred())
	found := map[string]bool{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		Expect(err).NotTo(HaveOccurred())
		for _, r := range list.APIResources {
			if !slices.Contains(r.Verbs, "list") || slices.Contains(passing, r.Name) {
				continue
			}
			resource := gv.WithResource(r.Name)
			all, err := api.Resource(resource).List(ctx, metav1.ListOptions{})
			Expect(err).NotTo(HaveOccurred(), "%s", resource)
			for _, o := range all.Items {
				ours := slices.Contains([]string{"", installation.Namespace, "healthscope-clusters"}, o.GetNamespace())
				if ours || o.GetLabels()["app.kubernetes.io/instance"] == chart.Release {
					found[strings.Join([]string{resource.GroupResource().String(), o.GetNamespace(), o.GetName()}, "/")] = true
				}
			}
		}
	}
	return found
}

// added returns the objects that were not in the cluster before the first installation, sorted.
func added(ctx context.Context) []string {
	GinkgoHelper()
	var names []string
	for name := range objects(ctx) {
		if !before[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
