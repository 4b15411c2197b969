package scope

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/kubevela"
)

// origin is where in KubeVela's Applications a workload is from.
type origin struct {
	// application and env are the names of the Application and of its environment.
	application, env string
	// component is the name of the component; empty when that is not known.
	component string
}

// objectAt is an object of a cluster.
type objectAt struct {
	fleet.Kind
	types.NamespacedName
}

// appliedAt returns where an object is that an Application has applied.
func appliedAt(application objectAt, a kubevela.Applied) objectAt {
	return objectAt{
		fleet.Kind{Cluster: cmp.Or(a.Cluster, application.Cluster), GroupVersionKind: a.GroupVersionKind},
		types.NamespacedName{Namespace: cmp.Or(a.Namespace, application.Namespace), Name: a.Name},
	}
}

// managedBy returns where the workload is that a trait manages; false when the object is no such trait.
func managedBy(trait objectAt, c *kubevela.Component) (objectAt, bool) {
	if c == nil || c.Manages == nil {
		return objectAt{}, false
	}
	workload := trait
	workload.GroupVersionKind, workload.Name = c.Manages.GroupVersionKind, c.Manages.Name
	return workload, true
}

// applicationRef follows a reference to an Application to the workloads that it has applied: those of one component, if the
// reference is from one.
//
// The Application is not judged by what it says itself: KubeVela judges it while its workflow runs, and not after that.
func (g *gatherer) applicationRef(app *gatheredApp, ref corev1alpha2.WorkloadReference, from *origin, application objectAt) {
	found := g.object(application.Kind, application.NamespacedName)
	if ref.UID != "" && found.Result.UID != "" && string(ref.UID) != found.Result.UID {
		found = fleet.Lookup{Result: isAnother(found.Result)}
	}
	if found.Application == nil {
		g.addFrom(app, ref, from, found.Result)
		return
	}
	if found.Application.Problem != "" {
		g.addFrom(app, ref, from, unknownFor(found.Result, healthscope.ReasonInvalidObject, "%s", shorten(found.Application.Problem)))
	}
	component, workloads := "", 0
	if from != nil {
		component = from.component
	}
	for _, applied := range found.Application.Applied {
		if g.applied(app, appliedAt(application, applied), origin{application: application.Name, env: applied.Env, component: component}) {
			workloads++
		}
	}
	if workloads == 0 && found.Application.Problem == "" {
		g.addFrom(app, ref, &origin{application: application.Name, component: component}, withoutWorkloads(found, component))
	}
}

// withoutWorkloads returns the result of an Application that has applied no workload, or none of a component.
func withoutWorkloads(application fleet.Lookup, component string) healthscope.Result {
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

// applied adds an object that an Application has applied, if it counts: it is a workload, or it is a trait that manages one, or
// it is not known whether it is. It reports whether it does.
func (g *gatherer) applied(app *gatheredApp, at objectAt, from origin) bool {
	found := g.look(at)
	workload, manages := managedBy(at, found.Component)
	switch c := found.Component; {
	case c != nil && from.component != "" && c.Name != from.component, c == nil && from.component != "":
		return false
	case manages:
		at, from.component = workload, c.Name
		found = g.look(at)
	case c != nil && c.Workload != "":
		from.component = c.Name
	case found.Result.UID != "":
		return false // It exists, and is a trait or belongs to one.
	}
	results := []healthscope.Result{found.Result}
	if at.Namespace == g.scope.Namespace {
		results = g.withResources(at.Cluster, found, 0, map[healthscope.Key]struct{}{found.Result.Key: {}})
	}
	g.addFrom(app, g.refTo(at, found.Result), &from, results...).workloadStatus = found.Status
	return true
}

// look looks up an object that the scope does not refer to itself.
func (g *gatherer) look(at objectAt) fleet.Lookup {
	if at.Namespace != g.scope.Namespace && !slices.Contains(g.trusted, g.scope.Namespace) {
		return fleet.Lookup{Result: g.inOtherNamespace(at)}
	}
	return g.object(at.Kind, at.NamespacedName)
}

// refTo returns a reference to an object, as KubeVela writes them.
func (g *gatherer) refTo(at objectAt, r healthscope.Result) corev1alpha2.WorkloadReference {
	apiVersion, kind := at.ToAPIVersionAndKind()
	ref := corev1alpha2.WorkloadReference{APIVersion: apiVersion, Kind: kind, Namespace: at.Namespace, Name: at.Name, UID: types.UID(r.UID)}
	if at.Cluster != g.bundles.Cluster() {
		ref.Cluster = at.Cluster
	}
	return ref
}

// inOtherNamespace returns the result of an object that an Application has applied in another namespace than its own.
func (g *gatherer) inOtherNamespace(at objectAt) healthscope.Result {
	return unknownFor(resultOf(at.Kind, at.Namespace, at.Name), healthscope.ReasonCrossNamespace,
		"the Application leads to namespace %q, which is not followed; to allow it, add %q to oam.trustedNamespaces in the configuration", at.Namespace, g.scope.Namespace)
}
