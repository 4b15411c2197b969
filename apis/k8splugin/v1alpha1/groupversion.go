package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of EMCO's and ONAP's monitor.
var GroupVersion = schema.GroupVersion{Group: "k8splugin.io", Version: "v1alpha1"}

// ResourceBundleStateKind is the kind name of a ResourceBundleState.
const ResourceBundleStateKind = "ResourceBundleState"

// AddToScheme registers the types of this package with a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &ResourceBundleState{}, &ResourceBundleStateList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
