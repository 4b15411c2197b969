package fleet

import (
	"testing"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope/status"
)

// TestLabelledFindsBundlesInAllNamespaces asserts that bundles of all namespaces are found by their identifying labels, and no
// longer without these labels.
func TestLabelledFindsBundlesInAllNamespaces(t *testing.T) {
	v := newView("hub")
	v.setState(ClusterState{Name: "hub", Reachability: Connected})
	v.setState(ClusterState{Name: "edge", Reachability: Connected})
	labels := map[string]string{k8spluginv1alpha1.LabelDeploymentID: "1-web", status.InstanceLabel: "fox", "app": "web"}
	for _, key := range []BundleKey{{"hub", "a", "1-web"}, {"hub", "b", "other"}, {"edge", "a", "1-web"}} {
		v.put(key, &Bundle{BundleKey: key, Labels: labels})
	}
	tests := []struct {
		cluster, key, value string
		want                int
	}{
		{"", k8spluginv1alpha1.LabelDeploymentID, "1-web", 3},
		{"hub", k8spluginv1alpha1.LabelDeploymentID, "1-web", 2},
		{"edge", status.InstanceLabel, "fox", 1},
		{"away", status.InstanceLabel, "fox", 0},
		{"", status.InstanceLabel, "cat", 0},
		{"", "app", "web", 0},
	}
	for _, tt := range tests {
		got := v.ListByLabel(tt.key, tt.value)
		if tt.cluster != "" {
			got = v.ListByLabelIn(tt.cluster, tt.key, tt.value)
		}
		if len(got) != tt.want {
			t.Errorf("%d bundles have %s=%s in cluster %q, want %d", len(got), tt.key, tt.value, tt.cluster, tt.want)
		}
	}
	key := BundleKey{"hub", "a", "1-web"}
	v.put(key, &Bundle{BundleKey: key})
	v.removeCluster("edge")
	if got := v.ListByLabel(status.InstanceLabel, "fox"); len(got) != 1 || got[0].Namespace != "b" {
		t.Errorf("after one has lost its labels and a cluster has gone: %v", got)
	}
}
