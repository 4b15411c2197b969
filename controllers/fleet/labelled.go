package fleet

import (
	"iter"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope/status"
)

// identifying are the keys of labels that tell what a bundle is of, whatever its namespace.
var identifying = map[string]bool{k8spluginv1alpha1.LabelDeploymentID: true, status.InstanceLabel: true}

// places returns where the labels of a bundle lead to it: in its namespace, and those that identify it in no namespace in particular.
func (b *Bundle) places() iter.Seq[label] {
	return func(yield func(label) bool) {
		for key, value := range b.Labels {
			if !yield(label{b.Namespace, key, value}) || identifying[key] && !yield(label{"", key, value}) {
				return
			}
		}
	}
}

// Labelled returns the bundles with a label in all namespaces of a cluster, or with
// an empty name of all clusters, sorted. The label is one that tells what a bundle
// is of: emco/deployment-id, or k8splugin.io/rb-instance-id; by others nothing is found.
func (v *View) Labelled(cluster, key, value string) []*Bundle {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return sortedBundles(func(yield func(*Bundle) bool) {
		for _, b := range v.labelled[label{"", key, value}] {
			if (cluster == "" || b.Cluster == cluster) && !yield(b) {
				return
			}
		}
	})
}
