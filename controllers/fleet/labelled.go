package fleet

import (
	"iter"
	"maps"
	"slices"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope/status"
)

// identifying are the keys of labels that identify what a bundle reports, whatever its namespace.
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

// Labelled returns the bundles with a label in all namespaces of all clusters, sorted. The label is one that
// identifies what a bundle reports: emco/deployment-id, or k8splugin.io/rb-instance-id. Others find nothing.
func (v *View) Labelled(key, value string) []*Bundle {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return sortedBundles(maps.Values(v.labelled[label{"", key, value}]))
}

// LabelledIn is Labelled for one cluster.
func (v *View) LabelledIn(cluster, key, value string) []*Bundle {
	return slices.DeleteFunc(v.Labelled(key, value), func(b *Bundle) bool { return b.Cluster != cluster })
}
