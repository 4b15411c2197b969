package v1alpha2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is OAM's API group and version.
var GroupVersion = schema.GroupVersion{Group: "core.oam.dev", Version: "v1alpha2"}

// HealthScopeKind is the kind name of a HealthScope.
const HealthScopeKind = "HealthScope"

// AddToScheme registers the types of this package with a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &HealthScope{}, &HealthScopeList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
