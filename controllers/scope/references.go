package scope

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/kubevela"
)

// maxScopeReferences bounds how many references from scopes to scopes of one namespace are followed in search of a cycle.
const maxScopeReferences = 10_000

// bundleKind is the kind of bundles. References may name another version of it.
var bundleKind = k8spluginv1alpha1.GroupVersion.WithKind(k8spluginv1alpha1.ResourceBundleStateKind)

// scopeKind is the kind of references that lead to scopes.
var scopeKind = schema.GroupKind{Group: corev1alpha2.GroupVersion.Group, Kind: "HealthScope"}

// reference is a reference of a scope, to a workload or to what leads to workloads.
type reference struct {
	corev1alpha2.WorkloadReference

	// origin is the place in KubeVela's Applications that the reference leads to; nil when it leads to none.
	origin *origin
}

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

// appsOf returns the apps of a scope. References outside apps belong to the app with the empty name, which is the first.
func appsOf(spec *corev1alpha2.HealthScopeSpec) []*app {
	apps := []*app{newApp(corev1alpha2.ScopeApp{WorkloadReferences: spec.WorkloadReferences})}
	if len(spec.WorkloadReferences) == 0 {
		for _, a := range spec.AppReferences {
			apps = append(apps, kubevelaApp(a))
		}
	}
	for _, a := range spec.Apps {
		apps = append(apps, newApp(a))
	}
	return apps
}

func newApp(spec corev1alpha2.ScopeApp) *app {
	a := &app{ScopeApp: spec, bundles: map[fleet.BundleKey]*fleet.Bundle{}}
	for _, ref := range spec.WorkloadReferences {
		a.references = append(a.references, reference{WorkloadReference: ref})
	}
	return a
}

// kubevelaApp returns the app of a reference to an Application. Where that names no components, or a component without its
// workload, the Application says which workloads there are.
func kubevelaApp(of corev1alpha2.AppReference) *app {
	a := newApp(corev1alpha2.ScopeApp{Name: of.AppName})
	components := of.CompReferences
	if len(components) == 0 {
		components = []corev1alpha2.CompReference{{}}
	}
	for _, c := range components {
		ref := c.Workload
		if ref == (corev1alpha2.WorkloadReference{}) && (c.CompName != "" || len(of.CompReferences) == 0) {
			ref.APIVersion, ref.Kind = kubevela.ApplicationKind.ToAPIVersionAndKind()
			ref.Name = of.AppName
		}
		a.references = append(a.references, reference{ref, &origin{application: of.AppName, component: c.CompName}})
	}
	return a
}

// references returns the references of a scope that can be followed, each with the kind that it leads to.
func references(scope *corev1alpha2.HealthScope) iter.Seq2[schema.GroupVersionKind, reference] {
	return func(yield func(schema.GroupVersionKind, reference) bool) {
		for _, a := range appsOf(&scope.Spec) {
			for _, ref := range a.references {
				if gvk, problem := parseRef(scope.Namespace, ref.WorkloadReference); problem == nil && !yield(gvk, ref) {
					return
				}
			}
		}
	}
}

// parseRef returns the kind a reference leads to, or what is wrong with it.
func parseRef(namespace string, ref corev1alpha2.WorkloadReference) (schema.GroupVersionKind, *healthscope.Result) {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	gvk := gv.WithKind(ref.Kind)
	problem := healthscope.Result{
		Key:   healthscope.Key{Cluster: ref.Cluster, Group: gv.Group, Kind: cmp.Or(ref.Kind, "Reference"), Namespace: cmp.Or(ref.Namespace, namespace), Name: ref.Name},
		State: healthscope.Unknown, Reason: healthscope.ReasonInvalidReference,
	}
	switch {
	case err != nil:
		problem.Message = fmt.Sprintf("the reference's apiVersion %q cannot be read", ref.APIVersion)
	case ref.APIVersion == "":
		problem.Message = "the reference has no apiVersion"
	case gv.Group == "" && gv.Version != "v1", gv.Version == "":
		// Only the kinds of the core have no group, and they have one version. Nothing of the kind has to be asked for.
		problem.Group, problem.Message = "", fmt.Sprintf("the reference's apiVersion %q is no <group>/<version>, such as %q", ref.APIVersion, strings.Trim(ref.APIVersion, "/")+"/v1")
	case len(validation.IsDNS1123Subdomain(cmp.Or(gv.Group, "core"))) > 0, len(validation.IsDNS1035Label(gv.Version)) > 0:
		problem.Message = fmt.Sprintf("the reference's apiVersion %q cannot be read; its form is <group>/<version>, such as \"apps/v1\"", ref.APIVersion)
	case ref.Kind == "":
		problem.Message = "the reference has no kind"
	case ref.Name == "":
		problem.Message = "the reference has no name"
	case ref.Namespace != "" && ref.Namespace != namespace:
		problem.Reason = healthscope.ReasonCrossNamespace
		problem.Message = fmt.Sprintf("the reference leads to namespace %q; only the scope's own namespace, %q, is followed", ref.Namespace, namespace)
	default:
		return gvk, nil
	}
	return gvk, &problem
}

// scopeRefs returns the references of a scope to scopes of its own namespace and cluster.
func scopeRefs(scope *corev1alpha2.HealthScope, localCluster string) []reference {
	var found []reference
	for gvk, ref := range references(scope) {
		if gvk.GroupKind() == scopeKind && cmp.Or(ref.Cluster, localCluster) == localCluster {
			found = append(found, ref)
		}
	}
	return found
}

// referrersOf returns those of the scopes of a namespace whose references lead to a scope. localCluster is the name of the
// cluster that the scopes are in.
func referrersOf(scope *corev1alpha2.HealthScope, all []corev1alpha2.HealthScope, localCluster string) sets.Set[string] {
	all = slices.SortedFunc(slices.Values(all), func(a, b corev1alpha2.HealthScope) int { return strings.Compare(a.Name, b.Name) })
	uids := map[string]types.UID{}
	for i := range all {
		uids[all[i].Name] = all[i].UID
	}
	direct, count := map[string][]string{}, 0
	for i := range all {
		if all[i].Name == scope.Name {
			continue // Paths end there.
		}
		for _, ref := range scopeRefs(&all[i], localCluster) {
			if count++; count <= maxScopeReferences && (ref.UID == "" || ref.UID == uids[ref.Name]) {
				direct[ref.Name] = append(direct[ref.Name], all[i].Name)
			}
		}
	}
	referrers := sets.New[string]()
	for queue := []string{scope.Name}; len(queue) > 0; queue = queue[1:] {
		for _, name := range direct[queue[0]] {
			if !referrers.Has(name) {
				referrers.Insert(name)
				queue = append(queue, name)
			}
		}
	}
	return referrers
}
