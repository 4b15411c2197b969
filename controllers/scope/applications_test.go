package scope

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/kubevela"
)

var (
	cloneSets = schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1alpha1", Kind: "CloneSet"}
	rollouts  = schema.GroupVersionKind{Group: "standard.oam.dev", Version: "v1alpha1", Kind: "Rollout"}
)

// withApplication returns a world with Application "store" and the given objects, by kind.
func withApplication(a kubevela.Application, objects map[schema.GroupVersionKind][]fleet.Lookup) world {
	store := healthscope.Result{
		Key:     healthscope.Key{Cluster: hub, Group: "core.oam.dev", Kind: "Application", Namespace: "shop", Name: "store"},
		Version: "v1beta1", UID: "uid-store", State: healthscope.Ready, // KubeVela reports this state even when no pod runs.
	}
	w := world{clusters: []string{edge1}, objects: map[schema.GroupVersionKind]map[string]fleet.Lookup{
		kubevela.ApplicationKind: {"store": {Result: store, Application: &a}},
	}}
	for gvk, list := range objects {
		w.objects[gvk] = map[string]fleet.Lookup{}
		for _, l := range list {
			l.Result.Group, l.Result.Version, l.Result.Kind = gvk.Group, gvk.Version, gvk.Kind
			w.objects[gvk][l.Result.Name] = l
		}
	}
	return w
}

// velaObject returns an object with KubeVela's labels of a component.
func velaObject(r healthscope.Result, c kubevela.Component) fleet.Lookup {
	return fleet.Lookup{Result: r, Component: &c}
}

// appliedIn returns an object that an Application has applied into namespace "shop" of a cluster.
func appliedIn(cluster string, gvk schema.GroupVersionKind, name string) kubevela.Applied {
	return kubevela.Applied{GroupVersionKind: gvk, Cluster: cluster, Namespace: "shop", Name: name}
}

func TestApplications(t *testing.T) {
	t.Parallel()
	front, back := kubevela.Component{Name: "front", Workload: "webservice"}, kubevela.Component{Name: "back", Workload: "webservice"}
	readyFront, pendingBack := deployment("front", healthscope.Ready, 1, 1), deployment("back", healthscope.Pending, 0, 1)
	inStore := func(key string, state healthscope.State, reason healthscope.Reason) []found {
		return []found{{"store", hub, key, state, reason}}
	}
	manages := kubevela.Component{Name: "back", Trait: "rollout", Manages: &kubevela.Managed{GroupVersionKind: deployments, Name: "back"}}
	elsewhere := kubevela.Applied{GroupVersionKind: deployments, Namespace: "other", Name: "front"}
	cases := map[string]struct {
		reason      string
		application kubevela.Application
		objects     map[schema.GroupVersionKind][]fleet.Lookup
		components  []corev1alpha2.CompReference
		trusted     []string
		want        [][]found
	}{
		"Workloads": {
			application: kubevela.Application{Others: 2, Applied: []kubevela.Applied{appliedIn("", deployments, "front"), appliedIn("", deployments, "back")}},
			objects:     map[schema.GroupVersionKind][]fleet.Lookup{deployments: {velaObject(readyFront, front), velaObject(pendingBack, back)}},
			want: [][]found{
				inStore("Deployment/front", healthscope.Ready, ""), inStore("Deployment/back", healthscope.Pending, healthscope.ReasonReplicasNotReady),
			},
		},
		"WorkloadThatIsGone": {
			reason:      "KubeVela left it out, and called the rest healthy.",
			application: kubevela.Application{Applied: []kubevela.Applied{appliedIn("", deployments, "front"), appliedIn("", deployments, "back")}},
			objects:     map[schema.GroupVersionKind][]fleet.Lookup{deployments: {velaObject(readyFront, front)}},
			want: [][]found{
				inStore("Deployment/front", healthscope.Ready, ""), inStore("Deployment/back", healthscope.NotPresent, healthscope.ReasonNotFound),
			},
		},
		"TraitsDoNotCount": {
			application: kubevela.Application{Applied: []kubevela.Applied{appliedIn("", deployments, "front"), appliedIn("", rollouts, "front"), appliedIn("", deployments, "helper")}},
			objects: map[schema.GroupVersionKind][]fleet.Lookup{
				deployments: {velaObject(readyFront, front), {Result: deployment("helper", healthscope.Pending, 0, 1)}},
				rollouts:    {velaObject(deployment("front", healthscope.Failed, 0, 1), kubevela.Component{Name: "front", Trait: "scaler"})},
			},
			want: [][]found{inStore("Deployment/front", healthscope.Ready, "")},
		},
		"TraitThatManagesTheWorkload": {
			application: kubevela.Application{Applied: []kubevela.Applied{appliedIn("", rollouts, "back")}},
			objects: map[schema.GroupVersionKind][]fleet.Lookup{
				deployments: {{Result: pendingBack}},
				rollouts:    {velaObject(deployment("back", healthscope.Ready, 1, 1), manages)},
			},
			want: [][]found{inStore("Deployment/back", healthscope.Pending, healthscope.ReasonReplicasNotReady)},
		},
		"KindThatCannotBeRead": {
			reason:      "Whether it is a workload nobody can tell: that is no reason to call the scope healthy.",
			application: kubevela.Application{Applied: []kubevela.Applied{appliedIn("", cloneSets, "front")}},
			want:        [][]found{inStore("CloneSet/front", healthscope.Unknown, healthscope.ReasonKindNotFound)},
		},
		"OtherClusters": {
			application: kubevela.Application{Applied: []kubevela.Applied{appliedIn(edge1, deployments, "front"), appliedIn("acme+moon", deployments, "front")}},
			objects:     map[schema.GroupVersionKind][]fleet.Lookup{deployments: {velaObject(readyFront, front)}},
			want: [][]found{
				{{"store", edge1, "Deployment/front", healthscope.Ready, ""}},
				{{"store", "acme+moon", "Deployment/front", healthscope.Unknown, healthscope.ReasonUnknownCluster}},
			},
		},
		"OtherNamespace": {
			reason:      "A scope is no window into other namespaces, unless the operator makes it one.",
			application: kubevela.Application{Applied: []kubevela.Applied{elsewhere}},
			objects:     map[schema.GroupVersionKind][]fleet.Lookup{deployments: {velaObject(readyFront, front)}},
			want:        [][]found{inStore("Deployment/front", healthscope.Unknown, healthscope.ReasonCrossNamespace)},
		},
		"OtherNamespaceThatIsAllowed": {
			application: kubevela.Application{Applied: []kubevela.Applied{elsewhere}},
			objects:     map[schema.GroupVersionKind][]fleet.Lookup{deployments: {velaObject(readyFront, front)}},
			trusted:     []string{"shop"},
			want:        [][]found{inStore("Deployment/front", healthscope.Ready, "")},
		},
		"OneComponent": {
			application: kubevela.Application{Applied: []kubevela.Applied{appliedIn("", deployments, "front"), appliedIn("", deployments, "back")}},
			objects:     map[schema.GroupVersionKind][]fleet.Lookup{deployments: {velaObject(readyFront, front), velaObject(pendingBack, back)}},
			components:  []corev1alpha2.CompReference{{CompName: "back"}},
			want:        [][]found{inStore("Deployment/back", healthscope.Pending, healthscope.ReasonReplicasNotReady)},
		},
		"ComponentThatIsNotThere": {
			application: kubevela.Application{Applied: []kubevela.Applied{appliedIn("", deployments, "front")}},
			objects:     map[schema.GroupVersionKind][]fleet.Lookup{deployments: {velaObject(readyFront, front)}},
			components:  []corev1alpha2.CompReference{{CompName: "back"}},
			want:        [][]found{inStore("Application/store", healthscope.NotPresent, healthscope.ReasonNoResources)},
		},
		"NothingApplied": {
			reason: "KubeVela said HEALTHY before its workflow had begun.",
			want:   [][]found{inStore("Application/store", healthscope.NotPresent, healthscope.ReasonNoResources)},
		},
		"NoWorkloads": {
			application: kubevela.Application{Others: 1},
			want:        [][]found{inStore("Application/store", healthscope.Unknown, healthscope.ReasonNoResources)},
		},
		"MalformedStatus": {
			application: kubevela.Application{Problem: "cannot read it"},
			want:        [][]found{inStore("Application/store", healthscope.Unknown, healthscope.ReasonInvalidObject)},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := withApplication(c.application, c.objects)
			scope := scopeOf(corev1alpha2.HealthScopeSpec{AppReferences: []corev1alpha2.AppReference{{AppName: "store", CompReferences: c.components}}})
			g := gathererIn(w, scope, noon)
			g.trusted = c.trusted
			if diff := cmp.Diff(c.want, summaryOfFindings(g.gather())); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", c.reason, diff)
			}
		})
	}
}

// TestApplicationStatusIsNotUsed asserts that a reference to an Application in workloadRefs also leads to its workloads, and
// that the status of the Application itself is not judged.
func TestApplicationStatusIsNotUsed(t *testing.T) {
	t.Parallel()
	apiVersion, kind := kubevela.ApplicationKind.ToAPIVersionAndKind()
	w := withApplication(kubevela.Application{Applied: []kubevela.Applied{appliedIn("", deployments, "front")}}, map[schema.GroupVersionKind][]fleet.Lookup{
		deployments: {velaObject(deployment("front", healthscope.Failed, 0, 1), kubevela.Component{Name: "front", Workload: "webservice"})},
	})
	scope := scopeOf(corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(corev1alpha2.WorkloadReference{APIVersion: apiVersion, Kind: kind, Name: "store"})})
	status := statusIn(w, scope, noon)
	if status.Health != corev1alpha2.Unhealthy || status.ScopeHealthCondition.Total != 1 {
		t.Errorf("got %q of %d references, want unhealthy of 1: its only workload has failed", status.Health, status.ScopeHealthCondition.Total)
	}
	got := only(t, status.HealthConditions)
	want := corev1alpha2.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "front", UID: "uid-front"}
	if diff := cmp.Diff(want, got.TargetWorkload); diff != "" || got.ComponentName != "front" {
		t.Errorf("component %q, -want +got:\n%s", got.ComponentName, diff)
	}
}

// TestKindsOfApplicationsAreFollowed asserts that the kinds of the objects of Applications are watched, up to the limit for a
// scope.
func TestKindsOfApplicationsAreFollowed(t *testing.T) {
	t.Parallel()
	a := kubevela.Application{Applied: []kubevela.Applied{appliedIn(edge1, deployments, "front"), appliedIn("", rollouts, "back")}}
	w := withApplication(a, map[schema.GroupVersionKind][]fleet.Lookup{
		rollouts: {velaObject(deployment("back", healthscope.Ready, 1, 1), kubevela.Component{Trait: "rollout", Manages: &kubevela.Managed{GroupVersionKind: cloneSets, Name: "back"}})},
	})
	scope := scopeOf(corev1alpha2.HealthScopeSpec{AppReferences: []corev1alpha2.AppReference{{AppName: "store"}}})
	var got []string
	for at := range gatherIn(w, scope, noon).dependencies {
		if at.name != "" {
			got = append(got, at.Cluster+": "+at.Kind.Kind+"/"+at.name)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{edge1 + ": Deployment/front", hub + ": Application/store", hub + ": CloneSet/back", hub + ": Rollout/back"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	for i := range 2 * maxKinds {
		a.Applied = append(a.Applied, appliedIn("", schema.GroupVersionKind{Group: "acme.io", Version: "v1", Kind: fmt.Sprintf("Widget%d", i)}, "w"))
	}
	w = withApplication(a, nil)
	if kinds := gatherIn(w, scope, noon).dependencies.kinds(); len(kinds) > maxKinds {
		t.Errorf("%d kinds are watched", len(kinds))
	}
	tooMany := 0
	for _, p := range judgeIn(w, scope, noon).Members {
		if p.Reason == healthscope.ReasonTooManyKinds {
			tooMany++
		}
	}
	if want := len(a.Applied) - (maxKinds - 1); tooMany != want { // One of the kinds is Application.
		t.Errorf("%d workloads say that the scope does not follow their kinds, want %d", tooMany, want)
	}
}

// KubeVela's clients find their components by Application and environment.
func TestAppHealthConditions(t *testing.T) {
	t.Parallel()
	inTest := appliedIn("", deployments, "back")
	inTest.Env = "test"
	w := withApplication(kubevela.Application{Applied: []kubevela.Applied{appliedIn("", deployments, "front"), appliedIn("", deployments, "side"), inTest}}, map[schema.GroupVersionKind][]fleet.Lookup{
		deployments: {
			velaObject(deployment("front", healthscope.Ready, 1, 1), kubevela.Component{Name: "front", Workload: "webservice"}),
			velaObject(deployment("side", healthscope.Pending, 0, 2), kubevela.Component{Name: "side-car", Workload: "worker"}),
			velaObject(deployment("back", healthscope.Ready, 1, 1), kubevela.Component{Name: "back", Workload: "webservice"}),
		},
	})
	scope := scopeOf(corev1alpha2.HealthScopeSpec{AppReferences: []corev1alpha2.AppReference{{AppName: "store"}}})
	scope.Status.AppHealthConditions = []corev1alpha2.AppHealthCondition{{AppName: "what KubeVela's own controller has left"}}
	target := func(name string) corev1alpha2.WorkloadReference {
		return corev1alpha2.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: name, UID: types.UID("uid-" + name)}
	}
	want := []corev1alpha2.AppHealthCondition{
		{AppName: "store", Components: []corev1alpha2.WorkloadHealthCondition{
			{ComponentName: "side-car", TargetWorkload: target("side"), HealthStatus: "UNHEALTHY", Diagnosis: "Ready:0/2 Deployment/side: ReplicasNotReady", CustomStatusMsg: "Ready:0/2"},
			{ComponentName: "front", TargetWorkload: target("front"), HealthStatus: "HEALTHY", Diagnosis: "Ready:1/1 ", CustomStatusMsg: "Ready:1/1"},
		}},
		{AppName: "store", EnvName: "test", Components: []corev1alpha2.WorkloadHealthCondition{
			{ComponentName: "back", TargetWorkload: target("back"), HealthStatus: "HEALTHY", Diagnosis: "Ready:1/1 ", CustomStatusMsg: "Ready:1/1"},
		}},
	}
	if diff := cmp.Diff(want, statusIn(w, scope, noon).AppHealthConditions); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestABundleOfAComponent: a component whose workload is a bundle is in the health of its Application, like any other.
func TestABundleOfAComponent(t *testing.T) {
	t.Parallel()
	scope := scopeOf(corev1alpha2.HealthScopeSpec{AppReferences: []corev1alpha2.AppReference{{
		AppName: "store", CompReferences: []corev1alpha2.CompReference{{CompName: "front", Workload: bundleRef("1-sink")}},
	}}})
	s := statusIn(world{bundles: []*fleet.Bundle{bundleOf(hub, "1-sink", readyWeb)}}, scope, noon)
	of := only(t, s.AppHealthConditions)
	if c := only(t, of.Components); of.AppName != "store" || c.ComponentName != "front" || c.HealthStatus != corev1alpha2.StatusHealthy {
		t.Errorf("got Application %q with component %q, %s", of.AppName, c.ComponentName, c.HealthStatus)
	}
}
