package kubevela

import (
	"cmp"
	"encoding/json"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
)

// The labels and annotations of objects that KubeVela applies.
const (
	labelWorkload   = "workload.oam.dev/type"
	labelTrait      = "trait.oam.dev/type"
	labelManages    = "trait.oam.dev/manage-workload"
	annotationGVK   = "trait.oam.dev/workload-gvk"
	annotationNamed = "trait.oam.dev/workload-name"
)

// Component is the role of an object in an Application, as its labels and annotations describe it.
type Component struct {
	// Name is the name of the component.
	Name string
	// Workload is the type of the component, of an object that is its workload; empty for others.
	Workload string
	// Trait is the type of the trait that the object is of; empty for others.
	Trait string
	// Manages is the workload that the trait manages in place of the component, in its own namespace; nil for others.
	Manages *Managed
}

// Managed is a workload that a trait manages.
type Managed struct {
	schema.GroupVersionKind

	Name string
}

// ReadComponent reads the labels and annotations of an object; nil when it is neither a workload nor a trait.
func ReadComponent(object metav1.Object) *Component {
	labels := object.GetLabels()
	c := Component{Name: intern(labels[corev1alpha2.LabelComponent]), Workload: intern(labels[labelWorkload]), Trait: intern(labels[labelTrait])}
	if c.Workload == "" && c.Trait == "" {
		return nil
	}
	if c.Workload == "" && labels[labelManages] == "true" {
		c.Manages = managed(object.GetAnnotations(), c.Name)
	}
	return &c
}

// managed returns the workload that the annotations of a trait name. It returns nil when they cannot be read, as KubeVela does.
func managed(annotations map[string]string, component string) *Managed {
	var named struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := json.Unmarshal([]byte(annotations[annotationGVK]), &named); err != nil || named.Kind == "" {
		return nil
	}
	return &Managed{GroupVersionKind: schema.FromAPIVersionAndKind(named.APIVersion, named.Kind), Name: cmp.Or(annotations[annotationNamed], component)}
}

// intern returns a shared copy of text, because many objects have the same labels.
func intern(text string) string { return unique.Make(text).Value() }
