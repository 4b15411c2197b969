package scope

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
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

// followApplicationRef follows a reference to an Application to the workloads that it has applied; with a component in from,
// to the workloads of that component only.
//
// The Application's own status is not used: KubeVela updates the health in it only while its workflow runs.
func (g *gatherer) followApplicationRef(app *gatheredApp, ref corev1alpha2.WorkloadReference, from *origin, application objectKey) {
	found := g.object(application)
	if ref.UID != "" && found.Result.UID != "" && string(ref.UID) != found.Result.UID {
		found = fleet.Lookup{Result: uidMismatchResult(found.Result)}
	}
	content := found.Application
	switch {
	case content == nil:
		g.add(app, ref, found.Result).from(from)
		return
	case content.Problem != "":
		g.add(app, ref, unknownFor(found.Result, healthscope.ReasonInvalidObject, "%s", shorten(content.Problem))).from(from)
	}
	of := origin{application: application.Name}
	if from != nil {
		of.component = from.component
	}
	workloads := false
	for _, a := range content.Applied {
		of.env = a.Env
		workloads = g.addApplied(app, objectKey{
			fleet.Kind{Cluster: cmp.Or(a.Cluster, application.Cluster), GroupVersionKind: a.GroupVersionKind},
			types.NamespacedName{Namespace: cmp.Or(a.Namespace, application.Namespace), Name: a.Name},
		}, of) || workloads
	}
	if !workloads && content.Problem == "" {
		of.env = ""
		g.add(app, ref, noWorkloadsResult(found, of.component)).from(&of)
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
func (g *gatherer) addApplied(app *gatheredApp, at objectKey, from origin) bool {
	found := g.lookUp(at)
	switch c := found.Component; {
	case from.component != "" && (c == nil || c.Name != from.component):
		return false
	case c != nil && c.Manages != nil:
		from.component = c.Name
		at.GroupVersionKind, at.Name = c.Manages.GroupVersionKind, c.Manages.Name
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
	g.add(app, g.refTo(at, found.Result), results...).from(&from).workloadStatus = found.Status
	return true
}

// lookUp returns an object that the scope does not refer to itself.
func (g *gatherer) lookUp(at objectKey) fleet.Lookup {
	if at.Namespace != g.scope.Namespace && !slices.Contains(g.trusted, g.scope.Namespace) {
		return fleet.Lookup{Result: unknownFor(resultOf(at.Kind, at.Namespace, at.Name), healthscope.ReasonCrossNamespace,
			"the Application leads to namespace %q, which is not followed; to allow it, add %q to oam.trustedNamespaces in the configuration", at.Namespace, g.scope.Namespace)}
	}
	return g.object(at)
}

func (g *gatherer) refTo(at objectKey, r healthscope.Result) corev1alpha2.WorkloadReference {
	apiVersion, kind := at.ToAPIVersionAndKind()
	ref := corev1alpha2.WorkloadReference{APIVersion: apiVersion, Kind: kind, Namespace: at.Namespace, Name: at.Name, UID: types.UID(r.UID)}
	if at.Cluster != g.view.Cluster() {
		ref.Cluster = at.Cluster
	}
	return ref
}
