package scope

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

var (
	containerized = schema.GroupVersionKind{Group: "core.oam.dev", Version: "v1alpha2", Kind: "ContainerizedWorkload"}
	services      = schema.GroupVersionKind{Version: "v1", Kind: "Service"}
)

// objectLookup returns an object as fleet.Objects returns it.
func objectLookup(gvk schema.GroupVersionKind, name string, state healthscope.State, reason healthscope.Reason) fleet.Lookup {
	return fleet.Lookup{Result: healthscope.Result{
		Key:     healthscope.Key{Cluster: hub, Group: gvk.Group, Kind: gvk.Kind, Namespace: "shop", Name: name},
		Version: gvk.Version, UID: "uid-" + name, State: state, Reason: reason,
	}}
}

// withStatusResources makes the status.resources of an object name other objects.
func withStatusResources(l fleet.Lookup, resources ...fleet.Resource) fleet.Lookup {
	l.Resources, l.Named = resources, len(resources)
	return l
}

// versioned gives an object the labels of a component of Application "first".
func versioned(l fleet.Lookup, component string) fleet.Lookup {
	l.Labels = fleet.NewLabelSet(map[string]string{corev1alpha2.LabelApplication: "first", corev1alpha2.LabelComponent: component})
	return l
}

func resource(gvk schema.GroupVersionKind, name string) fleet.Resource {
	return fleet.Resource{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Name: name}
}

// worldOf returns a world in which all kinds of these tests are served, and objects exist.
func worldOf(objects ...fleet.Lookup) world {
	w := world{objects: map[schema.GroupVersionKind]map[string]fleet.Lookup{deployments: {}, containerized: {}, services: {}, databases: {}}}
	for _, o := range objects {
		w.objects[schema.GroupVersionKind{Group: o.Result.Group, Version: o.Result.Version, Kind: o.Result.Kind}][o.Result.Name] = o
	}
	return w
}

// refTo returns a reference to an object.
func refTo(gvk schema.GroupVersionKind, name string) corev1alpha2.WorkloadReference {
	return corev1alpha2.WorkloadReference{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Name: name}
}

// TestWorkloadsLeadToTheirResourcesAndVersions: the resources of a workload of OAM count, and are reported as
// oam-kubernetes-runtime does.
func TestWorkloadsLeadToTheirResourcesAndVersions(t *testing.T) {
	t.Parallel()
	ready := func(name string, state healthscope.State, n int32) fleet.Lookup {
		return fleet.Lookup{Result: deployment(name, state, n, 2)}
	}
	workload := withStatusResources(versioned(objectLookup(containerized, "cart", healthscope.Ready, healthscope.ReasonExists), "cart"), resource(deployments, "cart"), resource(services, "cart"))
	service := objectLookup(services, "cart", healthscope.Ready, "")
	unknown := objectLookup(databases, "db", healthscope.Unknown, healthscope.ReasonNoRule)
	unknown.Status = `{"phase":"Odd"}`
	many := withStatusResources(objectLookup(databases, "db", healthscope.Ready, ""), resource(services, "cart"))
	many.Named = 21
	deep := worldOf(service)
	for i := range 5 {
		name := fmt.Sprintf("level-%d", i)
		deep.objects[databases][name] = withStatusResources(objectLookup(databases, name, healthscope.Unknown, healthscope.ReasonNoRule), resource(databases, fmt.Sprintf("level-%d", i+1)))
	}
	for _, c := range []struct {
		name   string
		world  world
		ref    corev1alpha2.WorkloadReference
		want   string
		ready  string
		first  string
		status string
	}{
		{name: "all is ready", world: worldOf(workload, ready("cart", healthscope.Ready, 2), service), ref: refTo(containerized, "cart"), want: "cart HEALTHY Ready:2/2 ", ready: "3/3"},
		{
			name: "its Deployment is not", world: worldOf(workload, ready("cart", healthscope.Pending, 1), service), ref: refTo(containerized, "cart"),
			want: "cart UNHEALTHY Ready:1/2 Deployment/cart: ReplicasNotReady", ready: "2/3", first: "Deployment/cart in local: ReplicasNotReady",
		},
		{
			name: "its Service is missing", world: worldOf(workload, ready("cart", healthscope.Ready, 2)), ref: refTo(containerized, "cart"),
			want: "cart UNHEALTHY Ready:2/2 Service/cart: NotFound", ready: "2/3", first: "Service/cart in local: NotFound",
		},
		{
			name: "a kind that no rule knows is as what it names", world: worldOf(withStatusResources(unknown, resource(deployments, "cart")), ready("cart", healthscope.Ready, 2)), ref: refTo(databases, "db"),
			want: " HEALTHY Ready:2/2 ", ready: "2/2", status: `{"phase":"Odd"}`,
		},
		{
			name: "a kind that no rule knows and that names nothing", world: worldOf(unknown), ref: refTo(databases, "db"),
			want: " UNKNOWN NoRule", ready: "0/1", first: "Database/db in local: NoRule", status: `{"phase":"Odd"}`,
		},
		{
			name: "a workload that names itself", world: worldOf(withStatusResources(objectLookup(databases, "db", healthscope.Unknown, healthscope.ReasonNoRule), resource(databases, "db"))), ref: refTo(databases, "db"),
			want: " HEALTHY Ready:1/1 ", ready: "1/1",
		},
		{
			name: "an object of another namespace", world: worldOf(withStatusResources(objectLookup(databases, "db", healthscope.Ready, ""), fleet.Resource{APIVersion: "v1", Kind: "Service", Namespace: "other", Name: "cart"})), ref: refTo(databases, "db"),
			want: " UNKNOWN Ready:1/2 Service/cart: CrossNamespace", ready: "1/2", first: "Service/cart in local: CrossNamespace",
		},
		{name: "more than are kept", world: worldOf(many, service), ref: refTo(databases, "db"), want: " UNKNOWN status.resources leads to more objects than are followed: it names 21", ready: "0/1", first: "Database/db in local: NoRule"},
		{name: "further than is followed", world: deep, ref: refTo(databases, "level-0"), want: " UNKNOWN Ready:3/4 Database/level-3: NoRule", ready: "3/4", first: "Database/level-3 in local: NoRule"},
		{
			name: "another version is not ready", ref: deploymentRef("web-v2"), ready: "1/2", first: "Deployment/web-v1 in local: ReplicasNotReady",
			world: worldOf(versioned(ready("web-v2", healthscope.Ready, 2), "web"), versioned(ready("web-v1", healthscope.Pending, 0), "web"), versioned(ready("other", healthscope.Pending, 0), "other"), ready("unlabelled", healthscope.Failed, 0)),
			want:  "web UNHEALTHY Ready:2/4 Deployment/web-v1: ReplicasNotReady",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			scope := scopeOf(corev1alpha2.HealthScopeSpec{WorkloadReferences: refs(c.ref)})
			s := statusIn(c.world, scope, noon)
			condition := only(t, s.HealthConditions)
			got := fmt.Sprintf("%s %s %s", condition.ComponentName, condition.HealthStatus, condition.Diagnosis)
			if got != c.want || s.ResourcesReady != c.ready || s.FirstCulprit != c.first || condition.WorkloadStatus != c.status || s.ScopeHealthCondition.Total != 1 {
				t.Errorf("got %q, %s ready, culprit %q, status %q; want %q, %s, %q, %q", got, s.ResourcesReady, s.FirstCulprit, condition.WorkloadStatus, c.want, c.ready, c.first, c.status)
			}
		})
	}
}

// TestVersionsAreSelectedOnceForAllReferences: a scope may have thousands of references, and a selection looks at every object of
// the kind.
func TestVersionsAreSelectedOnceForAllReferences(t *testing.T) {
	t.Parallel()
	var objects []fleet.Lookup
	var spec corev1alpha2.HealthScopeSpec
	for i := range 10 {
		name := fmt.Sprintf("web-%d", i)
		objects = append(objects, versioned(fleet.Lookup{Result: deployment(name, healthscope.Ready, 1, 1)}, name))
		spec.WorkloadReferences = append(spec.WorkloadReferences, deploymentRef(name))
	}
	w, selections := worldOf(objects...), 0
	g := gathererIn(w, scopeOf(spec), noon)
	g.selectObjects = func(cluster string, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) fleet.Selection {
		selections++
		return w.selection(cluster, gvk, namespace, selector)
	}
	if found := len(g.gather().findings); found != 10 || selections != 1 {
		t.Errorf("%d references are followed with %d selections; want 10 with 1", found, selections)
	}
}

// TestChangesAffectDependentScopes: a change leads only to the scopes that depend on the changed object, in any order in which
// their dependencies begin and end.
func TestChangesAffectDependentScopes(t *testing.T) {
	t.Parallel()
	kind := func(name string) fleet.Kind {
		return fleet.Kind{Cluster: hub, GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: name}}
	}
	keys := []dependencies{{}, {}, {}}
	keys[0].addNamed(kind("Service"), "shop", "cart")
	keys[1].addNamed(kind("Service"), "other", "cart")
	keys[2].addSelected(kind("Pod"), "shop", labels.SelectorFromSet(labels.Set{corev1alpha2.LabelApplication: "first", corev1alpha2.LabelComponent: "cart"}))
	changes := []fleet.Change{
		fleet.ObjectChange{Kind: kind("Service"), Name: types.NamespacedName{Namespace: "shop", Name: "cart"}},
		fleet.ObjectChange{Kind: kind("Service"), Name: types.NamespacedName{Namespace: "other", Name: "cart"}},
		fleet.ObjectChange{Kind: kind("Pod"), Name: types.NamespacedName{Namespace: "shop", Name: "any"}, Labels: versioned(fleet.Lookup{}, "cart").Labels},
		fleet.ObjectChange{Kind: kind("Pod"), Name: types.NamespacedName{Namespace: "shop", Name: "any"}, Labels: versioned(fleet.Lookup{}, "web").Labels},
		fleet.KindChange{Kind: kind("Service")},
		fleet.KindChange{Kind: kind("Secret")},
	}
	leads := []string{"0", "1", "2", "", "01", ""} // The keys that each change concerns.
	rapid.Check(t, func(t *rapid.T) {
		f, of := newDependencyIndex(), map[string]map[int]bool{}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			who := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "scope")
			what, at := map[int]bool{}, dependencies{}
			for _, key := range rapid.SliceOfDistinct(rapid.IntRange(0, len(keys)-1), rapid.ID[int]).Draw(t, "looks") {
				what[key] = true
				maps.Copy(at, keys[key])
			}
			grows := false
			for key := range what {
				grows = grows || !of[who][key]
			}
			of[who] = what
			if got := f.set(types.NamespacedName{Name: who}, at); got != grows {
				t.Fatalf("it grew: %t, want %t", got, grows)
			}
		}
		for i, c := range changes {
			want, got := map[string]bool{}, map[string]bool{}
			for who, what := range of {
				for key := range what {
					if strings.ContainsRune(leads[i], rune('0'+key)) {
						want[who] = true
					}
				}
			}
			for _, scope := range f.affected(c) {
				got[scope.Name] = true
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%v leads to (-want +got):\n%s", c, diff)
			}
		}
		for who := range of {
			f.set(types.NamespacedName{Name: who}, nil)
		}
		if len(f.byScope)+len(f.dependents) > 0 {
			t.Fatalf("something is left: %v %v", f.byScope, f.dependents)
		}
	})
}
