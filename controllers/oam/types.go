package oam

import (
	"cmp"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
)

// ApplicationConfigurationKind is the kind of ApplicationConfigurations.
var ApplicationConfigurationKind = corev1alpha2.GroupVersion.WithKind("ApplicationConfiguration")

// newObject returns an empty object of a kind.
func newObject(kind schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	return u
}

// newList returns an empty list of objects of a kind.
func newList(kind schema.GroupVersionKind) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind)
	return list
}

// reference is a reference to a workload. Those of this controller have an apiVersion, a kind and a name only, as those that
// oam-kubernetes-runtime writes into scopes.
type reference = corev1alpha2.WorkloadReference

func kindOf(r reference) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)
}

// component is a component of an ApplicationConfiguration that has health scopes.
type component struct {
	// name is the name of the component, or that of its revision while the component's own name is not known.
	name   string
	scopes []string
	// workload is the workload in status.workloads, or else the one that was found; nil when there is none.
	workload *reference
	// services are the names of the workload's Services.
	services []string
}

// content holds the fields of an ApplicationConfiguration that the controller reads.
type content struct {
	Spec struct {
		Components []declaration `json:"components"`
	} `json:"spec"`
	Status struct {
		Workloads []workloadStatus `json:"workloads"`
	} `json:"status"`
}

// declaration is a component of an ApplicationConfiguration. It names scopes in scopeRef, or inline as in early drafts of OAM.
type declaration struct {
	ComponentName string `json:"componentName"`
	RevisionName  string `json:"revisionName"`
	Scopes        []struct {
		reference `json:",inline"`

		ScopeRef reference `json:"scopeRef"`
	} `json:"scopes"`
}

// workloadStatus is the workload of a component, as a runtime reports it.
type workloadStatus struct {
	ComponentName         string    `json:"componentName"`
	ComponentRevisionName string    `json:"componentRevisionName"`
	Reference             reference `json:"workloadRef"`
}

// components returns the components of an ApplicationConfiguration that have health scopes.
func components(object *unstructured.Unstructured) ([]component, error) {
	var c content
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &c); err != nil {
		return nil, errors.Wrap(err, "cannot read ApplicationConfiguration")
	}
	var all []component
	for _, declared := range c.Spec.Components {
		found := component{name: cmp.Or(declared.ComponentName, declared.RevisionName), scopes: declared.healthScopes()}
		if len(found.scopes) == 0 {
			continue
		}
		for _, w := range c.Status.Workloads {
			if w.belongsTo(declared) {
				found.name = w.ComponentName
				found.workload = &reference{APIVersion: w.Reference.APIVersion, Kind: w.Reference.Kind, Name: w.Reference.Name}
			}
		}
		all = append(all, found)
	}
	return all, nil
}

// healthScopes returns the names of the HealthScopes of a component.
func (d declaration) healthScopes() (names []string) {
	for _, s := range d.Scopes {
		for _, ref := range []reference{s.ScopeRef, s.reference} {
			if gvk := kindOf(ref); gvk.Group == ApplicationConfigurationKind.Group && gvk.Kind == corev1alpha2.HealthScopeKind && ref.Name != "" {
				names = appendNew(names, ref.Name)
			}
		}
	}
	return names
}

// belongsTo reports whether the workload is that of a component, which is declared by its name or by the name of its revision.
func (w workloadStatus) belongsTo(d declaration) bool {
	named := d.ComponentName != "" && w.ComponentName == d.ComponentName || d.RevisionName != "" && w.ComponentRevisionName == d.RevisionName
	return named && w.Reference.Name != ""
}
