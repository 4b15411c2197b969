package bundle_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/bundle"
)

// places is an application with objects in three namespaces, and with cluster-scoped objects. The workloads of the namespaces a
// and b have the same name, and one of them fails.
var places = []string{
	`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: web, namespace: a, uid: a-s}, status: {observedGeneration: 1, replicas: 1, readyReplicas: 1}}`,
	`{apiVersion: v1, kind: Pod, metadata: {name: web-0, namespace: a, uid: a-p, ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: web, controller: true}]}, status: {phase: Running, containerStatuses: [{name: web, ready: true}]}}`,
	`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: web, namespace: b, uid: b-s}, spec: {replicas: 1}, status: {observedGeneration: 1, replicas: 1, readyReplicas: 0}}`,
	`{apiVersion: v1, kind: Pod, metadata: {name: web-0, namespace: b, uid: b-p, ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: web, controller: true}]},
	  status: {phase: Running, containerStatuses: [{name: web, ready: false, state: {waiting: {reason: CrashLoopBackOff}}}]}}`,
	// A pod whose owner's name exists only in another namespace counts itself, and so does a pod that a Node owns.
	`{apiVersion: v1, kind: Pod, metadata: {name: web-1, namespace: c, uid: c-p, ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: web, controller: true}]}, status: {phase: Running, containerStatuses: [{name: web, ready: true}]}}`,
	`{apiVersion: v1, kind: Pod, metadata: {name: proxy-node1, namespace: a, uid: n-p, ownerReferences: [{apiVersion: v1, kind: Node, name: node1, controller: true}]}, status: {phase: Running, containerStatuses: [{name: web, ready: true}]}}`,
	`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: web, uid: r}}`,
	`{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {name: web, uid: c}, spec: {signerName: example.com/serving}, status: {conditions: [{type: Approved, status: "True"}], certificate: YQ==}}`,
}

// TestObjectsOfManyNamespacesAreKeptApart asserts that every object is judged together with the objects in its own namespace, whichever
// monitor writes the bundle.
func TestObjectsOfManyNamespacesAreKeptApart(t *testing.T) {
	status := bundle.Build(parseAll(places...), nil, noon, bundle.Options{})
	if status.ResourceCount != 8 || status.Summary.Total != 6 || status.Summary.Failed != 1 {
		t.Errorf("resourceCount %d, summary %+v", status.ResourceCount, status.Summary)
	}
	own, other := &k8spluginv1alpha1.ResourceBundleState{Status: roundTrip(status)}, &k8spluginv1alpha1.ResourceBundleState{Status: roundTrip(status)}
	other.Status.Summary, other.Status.Resources = nil, nil
	type place struct {
		Kind, Namespace, Name string
		State                 healthscope.State
		Owned                 bool
	}
	want := []place{
		{"Pod", "a", "proxy-node1", healthscope.Ready, false}, {"Pod", "a", "web-0", healthscope.Ready, true},
		{"Pod", "b", "web-0", healthscope.Failed, true}, {"Pod", "c", "web-1", healthscope.Ready, false},
		{"StatefulSet", "a", "web", healthscope.Ready, false}, {"StatefulSet", "b", "web", healthscope.Failed, false},
		{"CertificateSigningRequest", "", "web", healthscope.Ready, false}, {"ClusterRole", "", "web", healthscope.Ready, false},
	}
	for monitor, b := range map[string]*k8spluginv1alpha1.ResourceBundleState{"HealthScope's": own, "another": other} {
		for _, when := range []string{"before", "after"} {
			var got []place
			for _, m := range healthscope.Judge(bundle.Read("edge", b).Results, healthscope.DefaultPolicy(), noon).Members {
				got = append(got, place{m.Kind, m.Namespace, m.Name, m.State, m.Owned})
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s monitor, %s Trim (-want +got):\n%s", monitor, when, diff)
			}
			bundle.Trim(b, nil)
		}
	}
}
