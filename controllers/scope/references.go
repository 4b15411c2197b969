package scope

import (
	"cmp"
	"fmt"
	"iter"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/kubevela"
)

// appsOf returns the apps of a scope. References outside apps belong to the app with the empty name, which is the first.
func appsOf(spec *corev1alpha2.HealthScopeSpec) []*gatheredApp {
	apps := []*gatheredApp{newApp(corev1alpha2.ScopeApp{WorkloadReferences: spec.WorkloadReferences})}
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

// kubevelaApp returns the app of a reference to an Application. Where that names no components, or a component without its
// workload, the Application says which workloads there are.
func kubevelaApp(a corev1alpha2.AppReference) *gatheredApp {
	app := newApp(corev1alpha2.ScopeApp{Name: a.AppName})
	application := corev1alpha2.WorkloadReference{Name: a.AppName}
	application.APIVersion, application.Kind = kubevela.ApplicationKind.ToAPIVersionAndKind()
	add := func(ref corev1alpha2.WorkloadReference, component string) {
		app.WorkloadReferences = append(app.WorkloadReferences, ref)
		app.origins = append(app.origins, origin{application: a.AppName, component: component})
	}
	for _, c := range a.CompReferences {
		if c.Workload == (corev1alpha2.WorkloadReference{}) && c.CompName != "" {
			add(application, c.CompName)
		} else {
			add(c.Workload, c.CompName)
		}
	}
	if len(a.CompReferences) == 0 {
		add(application, "")
	}
	return app
}

// references returns the references of a scope that can be followed, each with the kind that it leads to.
func references(scope *corev1alpha2.HealthScope) iter.Seq2[schema.GroupVersionKind, corev1alpha2.WorkloadReference] {
	return func(yield func(schema.GroupVersionKind, corev1alpha2.WorkloadReference) bool) {
		for _, app := range appsOf(&scope.Spec) {
			for _, ref := range app.WorkloadReferences {
				if gvk, problem := parseRef(scope.Namespace, ref); problem == nil && !yield(gvk, ref) {
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

// bundleKind is the kind of bundles. References may name another version of it.
var bundleKind = k8spluginv1alpha1.GroupVersion.WithKind(k8spluginv1alpha1.ResourceBundleStateKind)

func bundleReference(name, cluster string) corev1alpha2.WorkloadReference {
	return corev1alpha2.WorkloadReference{
		APIVersion: k8spluginv1alpha1.GroupVersion.String(), Kind: k8spluginv1alpha1.ResourceBundleStateKind, Name: name, Cluster: cluster,
	}
}

// maxKinds bounds the distinct kinds that one scope follows: each is watched, or discovered, in each cluster that a reference names.
const maxKinds = 100

// tooManyKindsResult returns the result of a reference to a kind that the scope does not follow.
func tooManyKindsResult(unknown healthscope.Result) healthscope.Result {
	return unknownFor(unknown, healthscope.ReasonTooManyKinds, "the scope refers to more than %d kinds, and only the first %d are followed", maxKinds, maxKinds)
}
