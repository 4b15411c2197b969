package status_test

import (
	"strings"
	"testing"
	"time"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/status"
)

// instance returns a report of a bundle of a k8splugin instance that the hub has read whole.
func instance(t *testing.T, text string) status.Report {
	t.Helper()
	r := status.SavedReport(status.DecodeBundle("west+berlin", text, nil), healthscope.DefaultPolicy(), noon, noon)
	r.Saved = false
	return r
}

const instanceBundle = `{"ready":true,"resourceCount":2,
"serviceStatuses":[{"kind":"Service","apiVersion":"v1","metadata":{"name":"sink","namespace":"store","annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}"}},"spec":{"type":"ClusterIP","clusterIP":"10.0.0.1"},"status":{"loadBalancer":{}}}],
"deploymentStatuses":[{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"sink","namespace":"store"},"spec":{"replicas":1},"status":{"replicas":1,"readyReplicas":1,"updatedReplicas":1,"availableReplicas":1}}]}`

func TestInstance(t *testing.T) {
	want := strings.ReplaceAll(`{"id":"fnKPvVAL","ready":true,"resourceCount":2,"resourcesStatus":[
{"name":"sink","GVK":{"Group":"","Version":"v1","Kind":"Service"},"status":{"apiVersion":"v1","kind":"Service","metadata":{"name":"sink","namespace":"store"},"spec":{"clusterIP":"10.0.0.1","type":"ClusterIP"},"status":{"loadBalancer":{}}}},
{"name":"sink","GVK":{"Group":"apps","Version":"v1","Kind":"Deployment"},"status":{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"sink","namespace":"store"},"spec":{"replicas":1},"status":{"availableReplicas":1,"readyReplicas":1,"replicas":1,"updatedReplicas":1}}}]}`, "\n", "") + "\n"
	check(t, "document", want, wire(t, status.NewInstance("fnKPvVAL", []status.Report{instance(t, instanceBundle)}, nil)))
}

// TestAnInstanceInDoubtIsNotReady checks that an instance that is not fully known is not Ready, and shows what is known.
func TestAnInstanceInDoubtIsNotReady(t *testing.T) {
	well := func() status.Report { return instance(t, instanceBundle) }
	change := func(f func(*status.Report)) status.Report {
		r := well()
		f(&r)
		return r
	}
	gone := lost(well().Members...)
	tests := map[string]struct {
		reports  []status.Report
		count    int
		listed   int
		lastSeen string
	}{
		"never filled":  {[]status.Report{well(), {}}, 2, 2, ""},
		"nothing in it": {[]status.Report{seen()}, 0, 0, ""},
		"one fails":     {[]status.Report{well(), seen(member("west+bonn", "", "Pod", "x", healthscope.Failed))}, 3, 3, ""},
		"malformed":     {[]status.Report{change(func(r *status.Report) { r.Malformed = []string{"podStatuses"} })}, 2, 2, ""},
		"unlisted fails": {[]status.Report{change(func(r *status.Report) {
			r.Truncated, r.Unlisted = true, healthscope.Summary{Total: 3, Ready: 2, Failed: 1}
		})}, 5, 2, ""},
		"lost, and empty":  {[]status.Report{well(), {Observed: true, Unreachable: true, LastSeen: noon.Add(-time.Minute)}}, 2, 2, since(time.Minute)},
		"lost":             {[]status.Report{gone}, 2, 2, since(time.Minute)},
		"one of two, lost": {[]status.Report{gone, seen(member("west+bonn", "", "Pod", "x", healthscope.Ready))}, 3, 3, since(time.Minute)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			d := status.NewInstance("fnKPvVAL", tt.reports, nil)
			if d.Ready || d.ResourceCount != tt.count || len(d.Resources) != tt.listed || d.LastSeen != tt.lastSeen || d.Resources == nil {
				t.Errorf("document %s", wire(t, d))
			}
		})
	}
}

// TestABundleThatIsTooLargeIsCountedWhole checks that the resource count of a truncated bundle includes its unlisted objects.
func TestABundleThatIsTooLargeIsCountedWhole(t *testing.T) {
	var b k8spluginv1alpha1.ResourceBundleState
	b.Status = k8spluginv1alpha1.ResourceBundleStateStatus{
		Ready: true, ResourceCount: 900, Truncated: true, Summary: &k8spluginv1alpha1.ResourceCounts{State: "Ready", Total: 300, Ready: 300},
		ServiceStatuses: k8spluginv1alpha1.RawList("[]"),
		Resources:       []k8spluginv1alpha1.ResourceHealth{{Kind: "Service", Version: "v1", Namespace: "store", Name: "sink", State: "Ready"}},
	}
	whole := status.NewBundle("west+berlin", &b, nil)
	r := status.SavedReport(whole, healthscope.DefaultPolicy(), noon, noon)
	r.Saved = false
	d := status.NewInstance("fnKPvVAL", []status.Report{r}, nil)
	if !d.Ready || d.ResourceCount != 900 || len(d.Resources) != 1 || d.Resources[0].Status != nil {
		t.Errorf("document %s", wire(t, d))
	}
	if string(b.Status.ServiceStatuses) != "[]" {
		t.Errorf("the bundle was changed: %+v", b.Status)
	}
}

// TestOrderOfBundlesMakesNoDifference covers an instance in several clusters.
func TestOrderOfBundlesMakesNoDifference(t *testing.T) {
	a := seen(member("west+bonn", "", "Pod", "a", healthscope.Ready), member("west+bonn", "", "Pod", "b", healthscope.Ready))
	b := seen(member("west+berlin", "", "Pod", "c", healthscope.Ready))
	check(t, "document", wire(t, status.NewInstance("fnKPvVAL", []status.Report{a, b}, nil)), wire(t, status.NewInstance("fnKPvVAL", []status.Report{b, a}, nil)))
}

// An instance is not ready while a cluster that has not been read yet may hold more of it.
func TestAnInstanceIsNotReadyAsLongAsAClusterIsUnread(t *testing.T) {
	t.Parallel()
	reports := []status.Report{seen(member("west+bonn", "apps", "Deployment", "web", healthscope.Ready))}
	if d := status.NewInstance("fnKPvVAL", reports, nil); !d.Ready {
		t.Errorf("not ready though all is known: %+v", d)
	}
	if d := status.NewInstance("fnKPvVAL", reports, []string{"east+tokyo"}); d.Ready || len(d.UnreadClusters) != 1 {
		t.Errorf("ready though a cluster has not been read: %+v", d)
	}
}

// TestAnInstanceThatNoMonitorFollowsSaysWhy checks that an empty instance has a message. By default, the monitor follows the label of
// EMCO, and not that of k8splugin.
func TestAnInstanceThatNoMonitorFollowsSaysWhy(t *testing.T) {
	empty := status.Report{Namespace: "store"}
	text := wire(t, status.NewInstance("fnKPvVAL", []status.Report{empty}, nil))
	for _, want := range []string{`"id":"fnKPvVAL"`, `"namespace":"store"`, `"ready":false`, "k8splugin.io/rb-instance-id in monitor.labelKeys"} {
		if !strings.Contains(text, want) {
			t.Errorf("the document has no %s: %s", want, text)
		}
	}
	filled := instance(t, instanceBundle)
	filled.Namespace = "back"
	text = wire(t, status.NewInstance("fnKPvVAL", []status.Report{filled}, nil))
	if strings.Contains(text, `"message"`) || !strings.Contains(text, `"namespace":"back"`) {
		t.Errorf("document %s", text)
	}
	text = wire(t, status.NewInstance("fnKPvVAL", []status.Report{filled, empty}, nil))
	if strings.Contains(text, `"namespace":"back"`) || !strings.Contains(text, `"message":"1 of 2 bundles`) {
		t.Errorf("document %s", text)
	}
}
