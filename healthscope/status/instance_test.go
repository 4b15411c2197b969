package status_test

import (
	"slices"
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

// instanceBundle is a bundle of another monitor, whose resourceCount is not that of its objects.
const instanceBundle = `{"ready":true,"resourceCount":9,
"serviceStatuses":[{"kind":"Service","apiVersion":"v1","metadata":{"name":"sink","namespace":"store","annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}"}},"spec":{"type":"ClusterIP","clusterIP":"10.0.0.1"},"status":{"loadBalancer":{}}}],
"deploymentStatuses":[{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"sink","namespace":"store"},"spec":{"replicas":1},"status":{"replicas":1,"readyReplicas":1,"updatedReplicas":1,"availableReplicas":1}}]}`

func TestInstance(t *testing.T) {
	want := strings.ReplaceAll(`{"id":"fnKPvVAL","ready":true,"resourceCount":2,"resourcesStatus":[
{"name":"sink","GVK":{"Group":"","Version":"v1","Kind":"Service"},"status":{"apiVersion":"v1","kind":"Service","metadata":{"name":"sink","namespace":"store"},"spec":{"clusterIP":"10.0.0.1","type":"ClusterIP"},"status":{"loadBalancer":{}}}},
{"name":"sink","GVK":{"Group":"apps","Version":"v1","Kind":"Deployment"},"status":{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"sink","namespace":"store"},"spec":{"replicas":1},"status":{"availableReplicas":1,"readyReplicas":1,"replicas":1,"updatedReplicas":1}}}]}`, "\n", "") + "\n"
	check(t, "document", want, wire(t, status.NewInstance("fnKPvVAL", []status.Report{instance(t, instanceBundle)}, nil)))
}

// TestWhenAnInstanceIsReady checks that an instance that is not fully known is not Ready, and shows what is known, in any order of its
// bundles. An empty instance has a message, because the monitor follows the label of EMCO by default, and not that of k8splugin.
func TestWhenAnInstanceIsReady(t *testing.T) {
	change := func(f func(*status.Report)) status.Report {
		r := instance(t, instanceBundle)
		f(&r)
		return r
	}
	well := change(func(r *status.Report) { r.Namespace = "store" })
	other, failed := seen(member("west+bonn", "", "Pod", "x", healthscope.Ready)), seen(member("west+bonn", "", "Pod", "x", healthscope.Failed))
	gone := lost(well.Members...)
	tests := map[string]struct {
		reports   []status.Report
		unread    []string
		ready     bool
		count     int
		listed    int
		namespace string
		lastSeen  string
		message   string
	}{
		"all is known":           {[]status.Report{well}, nil, true, 2, 2, "store", "", ""},
		"in two clusters":        {[]status.Report{well, other}, nil, true, 3, 3, "", "", ""},
		"a cluster is unread":    {[]status.Report{well}, []string{"east+tokyo"}, false, 2, 2, "store", "", ""},
		"never filled":           {[]status.Report{{Namespace: "store"}}, nil, false, 0, 0, "store", "", "1 of 1 bundles"},
		"one of two, not filled": {[]status.Report{well, {}}, nil, false, 2, 2, "", "", "1 of 2 bundles"},
		"nothing in it":          {[]status.Report{seen()}, nil, false, 0, 0, "", "", ""},
		"one fails":              {[]status.Report{well, failed}, nil, false, 3, 3, "", "", ""},
		"malformed":              {[]status.Report{change(func(r *status.Report) { r.Malformed = []string{"podStatuses"} })}, nil, false, 2, 2, "", "", ""},
		"unlisted fails": {[]status.Report{change(func(r *status.Report) {
			r.Truncated, r.Unlisted, r.Bundle = true, healthscope.Summary{Total: 3, Ready: 2, Failed: 1}, nil
		})}, nil, false, 5, 2, "", "", ""},
		"lost, and empty":  {[]status.Report{well, {Namespace: "store", Observed: true, Unreachable: true, LastSeen: noon.Add(-time.Minute)}}, nil, false, 2, 2, "store", since(time.Minute), ""},
		"lost":             {[]status.Report{gone}, nil, false, 2, 2, "", since(time.Minute), ""},
		"one of two, lost": {[]status.Report{gone, other}, nil, false, 3, 3, "", since(time.Minute), ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			d := status.NewInstance("fnKPvVAL", tt.reports, tt.unread)
			text := wire(t, d)
			if d.Ready != tt.ready || d.ResourceCount != tt.count || len(d.Resources) != tt.listed || d.Resources == nil || d.LastSeen != tt.lastSeen || d.Namespace != tt.namespace {
				t.Errorf("document %s", text)
			}
			if !strings.HasPrefix(d.Message, tt.message) || (d.Message == "") != (tt.message == "") || d.Message != "" && !strings.Contains(d.Message, status.InstanceLabel+" in monitor.labelKeys") {
				t.Errorf("message %q", d.Message)
			}
			check(t, "unread", tt.unread, d.UnreadClusters)
			slices.Reverse(tt.reports)
			check(t, "in another order", text, wire(t, status.NewInstance("fnKPvVAL", tt.reports, tt.unread)))
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
