package scope

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

const (
	// maxDepth is the number of steps from a workload that status.resources is followed.
	maxDepth = 3
	// maxRelated bounds how many objects one reference leads to.
	maxRelated = 50
	// maxKinds bounds the distinct kinds that one scope follows: each is watched, or discovered, in each cluster that a reference names.
	maxKinds = 100
)

// followObjectRef follows a reference to an object that is neither a bundle nor an Application.
func (g *gatherer) followObjectRef(a *app, ref reference, at objectKey) {
	found := g.referred(ref, at)
	ref.UID = cmp.Or(ref.UID, types.UID(found.Result.UID))
	added := g.add(a, ref, g.relatedResults(at.Kind, found)...)
	added.component, added.workloadStatus = cmp.Or(found.Labels.Get(corev1alpha2.LabelComponent), added.component), found.Status
}

// referred returns the object that a reference leads to.
func (g *gatherer) referred(ref reference, at objectKey) fleet.Lookup {
	found := g.object(at)
	r := healthscope.Result{Key: found.Result.Key, Version: found.Result.Version}
	switch uid := found.Result.UID; {
	case ref.UID != "" && uid != "" && string(ref.UID) != uid:
		r.State, r.Reason, r.Message = healthscope.NotPresent, healthscope.ReasonNotFound, uidMismatchMessage(r.Kind, r.Name, uid)
		return fleet.Lookup{Result: r}
	case g.leadsBack(at):
		r.UID = uid
		return fleet.Lookup{Result: unknownFor(r, healthscope.ReasonReferenceCycle, "the reference leads back to this scope")}
	}
	return found
}

// leadsBack reports whether a reference to an object leads back to the scope.
func (g *gatherer) leadsBack(at objectKey) bool {
	return at.GroupKind() == scopeKind && at.Cluster == g.view.Cluster() && (at.Name == g.scope.Name || g.referrers.Has(at.Name))
}

// object returns an object, and makes the scope wait while the object is being read for the first time.
func (g *gatherer) object(at objectKey) fleet.Lookup {
	unknown := resultOf(at.Kind, at.Namespace, at.Name)
	if !g.followsKind(at.GroupVersionKind) {
		return fleet.Lookup{Result: tooManyKindsResult(unknown)}
	}
	g.dependencies.addNamed(at.Kind, at.Namespace, at.Name)
	if _, known := g.clusterState(at.Cluster); !known {
		return fleet.Lookup{Result: unknownClusterResult(unknown)}
	}
	found := g.lookup(at.Cluster, at.GroupVersionKind, at.NamespacedName)
	if state, _ := g.unreadable(at.Cluster); state.Reachability == fleet.Connecting {
		return fleet.Lookup{Result: unreadableResult(unknown, state, "")}
	}
	g.waitForKind(found)
	return found
}

// followsKind reports whether the scope follows objects of a kind, which it does for the first maxKinds kinds.
func (g *gatherer) followsKind(gvk schema.GroupVersionKind) bool {
	if len(g.followedKinds) < maxKinds {
		g.followedKinds.Insert(gvk)
	}
	return g.followedKinds.Has(gvk)
}

// relatedResults returns the results of a workload, of the other versions of its component, and of what these name in
// status.resources. As in OAM, a reference is healthy only if all of them are.
func (g *gatherer) relatedResults(kind fleet.Kind, found fleet.Lookup) []healthscope.Result {
	seen := sets.New(found.Result.Key)
	results := g.withResources(kind.Cluster, found, 0, seen)
	for _, version := range g.versionsOf(kind, componentOf(found.Labels)) {
		if !seen.Has(version.Result.Key) {
			seen.Insert(version.Result.Key)
			results = append(results, g.withResources(kind.Cluster, version, 0, seen)...)
		}
	}
	return results
}

// hasComponent selects the objects that have both labels of a component.
var hasComponent = func() labels.Selector {
	selector, err := labels.Parse(corev1alpha2.LabelApplication + "," + corev1alpha2.LabelComponent)
	if err != nil {
		panic(err) // The labels are constants.
	}
	return selector
}()

// versionsOf returns the workloads of a component. A selection looks at every object of the kind in the namespace, so that there
// is one for all references of the scope, which may be thousands.
func (g *gatherer) versionsOf(kind fleet.Kind, of component) []fleet.Lookup {
	if of.application == "" || of.name == "" {
		return nil
	}
	g.dependencies.addSelected(kind, g.scope.Namespace, labels.SelectorFromSet(labels.Set{corev1alpha2.LabelApplication: of.application, corev1alpha2.LabelComponent: of.name}))
	if _, read := g.versions[kind]; !read {
		g.versions[kind] = map[component][]fleet.Lookup{}
		for _, l := range g.selectObjects(kind.Cluster, kind.GroupVersionKind, g.scope.Namespace, hasComponent).Objects {
			at := componentOf(l.Labels)
			g.versions[kind][at] = append(g.versions[kind][at], l)
		}
	}
	return g.versions[kind][of]
}

// withResources returns the results of an object and of what it names in status.resources, without the objects in seen, to which
// it adds. An object that no rule can judge is Ready, so that only the objects that it names decide.
func (g *gatherer) withResources(cluster string, found fleet.Lookup, depth int, seen sets.Set[healthscope.Key]) []healthscope.Result {
	own := found.Result
	switch {
	case found.Named == 0:
		return []healthscope.Result{own}
	case depth >= maxDepth, found.Named > len(found.Resources), len(seen)+found.Named > maxRelated:
		return []healthscope.Result{unknownFor(own, healthscope.ReasonNoRule, "status.resources leads to more objects than are followed: it names %d", found.Named)}
	case own.State == healthscope.Unknown && own.Reason == healthscope.ReasonNoRule:
		own.State, own.Reason, own.Message = healthscope.Ready, healthscope.ReasonExists, fmt.Sprintf("it is as the objects in status.resources, of which there are %d", found.Named)
	}
	results := []healthscope.Result{own}
	for _, r := range found.Resources {
		gvk, problem := parseRef(g.scope.Namespace, corev1alpha2.WorkloadReference{APIVersion: r.APIVersion, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name, Cluster: cluster})
		if problem != nil {
			results = append(results, *problem)
			continue
		}
		at := objectKey{fleet.Kind{Cluster: cluster, GroupVersionKind: gvk}, types.NamespacedName{Namespace: g.scope.Namespace, Name: r.Name}}
		if key := resultOf(at.Kind, at.Namespace, at.Name).Key; !seen.Has(key) {
			seen.Insert(key)
			results = append(results, g.withResources(cluster, g.object(at), depth+1, seen)...)
		}
	}
	return results
}

// followApplicationRef follows a reference to an Application to the workloads that it has applied; if the reference has the
// name of a component, to the workloads of that component only.
//
// The Application's own status is not used: KubeVela updates the health in it only while its workflow runs.
func (g *gatherer) followApplicationRef(a *app, ref reference, application objectKey) {
	found := g.referred(ref, application)
	content := found.Application
	switch {
	case content == nil:
		g.add(a, ref, found.Result)
		return
	case content.Problem != "":
		g.add(a, ref, unknownFor(found.Result, healthscope.ReasonInvalidObject, "%s", shorten(content.Problem)))
	}
	of := origin{application: application.Name}
	if ref.origin != nil {
		of.component = ref.origin.component
	}
	workloads := false
	for _, applied := range content.Applied {
		of.env = applied.Env
		workloads = g.addApplied(a, objectKey{
			fleet.Kind{Cluster: cmp.Or(applied.Cluster, application.Cluster), GroupVersionKind: applied.GroupVersionKind},
			types.NamespacedName{Namespace: cmp.Or(applied.Namespace, application.Namespace), Name: applied.Name},
		}, of) || workloads
	}
	if !workloads && content.Problem == "" {
		of.env = ""
		g.add(a, reference{ref.WorkloadReference, &of}, noWorkloadsResult(found, of.component))
	}
}

func noWorkloadsResult(application fleet.Lookup, component string) healthscope.Result {
	r := application.Result
	r.State, r.Reason = healthscope.NotPresent, healthscope.ReasonNoResources
	switch {
	case component != "":
		r.Message = fmt.Sprintf("the Application has applied no workload of component %q", component)
	case len(application.Application.Applied)+application.Application.Others == 0:
		r.Message = "the Application has applied nothing yet"
	default:
		return unknownFor(r, healthscope.ReasonNoResources, "nothing that the Application has applied is a workload")
	}
	return r
}

// addApplied adds an object that an Application has applied if it is a workload, a trait that manages a workload, or an
// object of which it is not known whether it is one of these. It reports whether it adds the object.
func (g *gatherer) addApplied(a *app, at objectKey, from origin) bool {
	found := g.applied(at)
	switch c := found.Component; {
	case from.component != "" && (c == nil || c.Name != from.component):
		return false
	case c != nil && c.Manages != nil:
		from.component = c.Name
		at.GroupVersionKind, at.Name = c.Manages.GroupVersionKind, c.Manages.Name
		found = g.applied(at)
	case c != nil && c.Workload != "":
		from.component = c.Name
	case found.Result.UID != "":
		return false // It exists, and is a trait or belongs to one.
	}
	results := []healthscope.Result{found.Result}
	if at.Namespace == g.scope.Namespace {
		results = g.withResources(at.Cluster, found, 0, sets.New(found.Result.Key))
	}
	ref := reference{corev1alpha2.WorkloadReference{Namespace: at.Namespace, Name: at.Name, UID: types.UID(found.Result.UID)}, &from}
	ref.APIVersion, ref.Kind = at.ToAPIVersionAndKind()
	if at.Cluster != g.view.Cluster() {
		ref.Cluster = at.Cluster
	}
	g.add(a, ref, results...).workloadStatus = found.Status
	return true
}

// applied returns an object that an Application has applied. In another namespace it is read only if the scope's namespace is trusted.
func (g *gatherer) applied(at objectKey) fleet.Lookup {
	if at.Namespace != g.scope.Namespace && !slices.Contains(g.trusted, g.scope.Namespace) {
		return fleet.Lookup{Result: unknownFor(resultOf(at.Kind, at.Namespace, at.Name), healthscope.ReasonCrossNamespace,
			"the Application leads to namespace %q, which is not followed; to allow it, add %q to oam.trustedNamespaces in the configuration", at.Namespace, g.scope.Namespace)}
	}
	return g.object(at)
}
