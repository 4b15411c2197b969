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

// origin is the place in KubeVela's Applications that a workload comes from.
type origin struct {
	// application and env are the names of the Application and of its environment.
	application, env string
	// component is the name of the component; empty when that is not known.
	component string
}

// objectKey identifies an object of a cluster.
type objectKey struct {
	fleet.Kind
	types.NamespacedName
}

// appliedKey returns the key of an object that an Application has applied.
func appliedKey(application objectKey, a kubevela.Applied) objectKey {
	return objectKey{
		fleet.Kind{Cluster: cmp.Or(a.Cluster, application.Cluster), GroupVersionKind: a.GroupVersionKind},
		types.NamespacedName{Namespace: cmp.Or(a.Namespace, application.Namespace), Name: a.Name},
	}
}

// workloadOfTrait returns the key of the workload that a trait manages; false when the object is no such trait.
func workloadOfTrait(trait objectKey, c *kubevela.Component) (objectKey, bool) {
	if c == nil || c.Manages == nil {
		return objectKey{}, false
	}
	workload := trait
	workload.GroupVersionKind, workload.Name = c.Manages.GroupVersionKind, c.Manages.Name
	return workload, true
}

// followApplicationRef follows a reference to an Application to the workloads that it has applied; with a component in from,
// to the workloads of that component only.
//
// The Application's own status is not used: KubeVela updates the health in it only while its workflow runs.
func (g *gatherer) followApplicationRef(app *gatheredApp, ref corev1alpha2.WorkloadReference, from *origin, application objectKey) {
	found := g.object(application.Kind, application.NamespacedName)
	if ref.UID != "" && found.Result.UID != "" && string(ref.UID) != found.Result.UID {
		found = fleet.Lookup{Result: uidMismatchResult(found.Result)}
	}
	if found.Application == nil {
		g.addWithOrigin(app, ref, from, found.Result)
		return
	}
	if found.Application.Problem != "" {
		g.addWithOrigin(app, ref, from, unknownFor(found.Result, healthscope.ReasonInvalidObject, "%s", shorten(found.Application.Problem)))
	}
	component, workloads := "", 0
	if from != nil {
		component = from.component
	}
	for _, applied := range found.Application.Applied {
		if g.addApplied(app, appliedKey(application, applied), origin{application: application.Name, env: applied.Env, component: component}) {
			workloads++
		}
	}
	if workloads == 0 && found.Application.Problem == "" {
		g.addWithOrigin(app, ref, &origin{application: application.Name, component: component}, noWorkloadsResult(found, component))
	}
}

// noWorkloadsResult returns the result of an Application that has applied no workload, or none of a component.
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
func (g *gatherer) addApplied(app *gatheredApp, at objectKey, from origin) bool {
	found := g.lookUp(at)
	workload, manages := workloadOfTrait(at, found.Component)
	switch c := found.Component; {
	case c != nil && from.component != "" && c.Name != from.component, c == nil && from.component != "":
		return false
	case manages:
		at, from.component = workload, c.Name
		found = g.lookUp(at)
	case c != nil && c.Workload != "":
		from.component = c.Name
	case found.Result.UID != "":
		return false // It exists, and is a trait or belongs to one.
	}
	results := []healthscope.Result{found.Result}
	if at.Namespace == g.scope.Namespace {
		results = g.withResources(at.Cluster, found, 0, map[healthscope.Key]struct{}{found.Result.Key: {}})
	}
	g.addWithOrigin(app, g.refTo(at, found.Result), &from, results...).workloadStatus = found.Status
	return true
}

// lookUp returns an object that the scope does not refer to itself.
func (g *gatherer) lookUp(at objectKey) fleet.Lookup {
	if at.Namespace != g.scope.Namespace && !slices.Contains(g.trusted, g.scope.Namespace) {
		return fleet.Lookup{Result: g.crossNamespaceResult(at)}
	}
	return g.object(at.Kind, at.NamespacedName)
}

// refTo returns a reference to an object, as KubeVela writes them.
func (g *gatherer) refTo(at objectKey, r healthscope.Result) corev1alpha2.WorkloadReference {
	apiVersion, kind := at.ToAPIVersionAndKind()
	ref := corev1alpha2.WorkloadReference{APIVersion: apiVersion, Kind: kind, Namespace: at.Namespace, Name: at.Name, UID: types.UID(r.UID)}
	if at.Cluster != g.view.Cluster() {
		ref.Cluster = at.Cluster
	}
	return ref
}

// crossNamespaceResult returns the result of an object that an Application has applied in another namespace than its own.
func (g *gatherer) crossNamespaceResult(at objectKey) healthscope.Result {
	return unknownFor(resultOf(at.Kind, at.Namespace, at.Name), healthscope.ReasonCrossNamespace,
		"the Application leads to namespace %q, which is not followed; to allow it, add %q to oam.trustedNamespaces in the configuration", at.Namespace, g.scope.Namespace)
}
