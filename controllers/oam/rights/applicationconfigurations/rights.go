// Package applicationconfigurations has the rights of a controller with
// oam.applicationConfigurations. It holds nothing else; the role in
// config/rbac/oam/applicationconfigurations is generated from it.
package applicationconfigurations

// The controller searches for the workloads of components among the kinds of OAM and of group apps, which it may read anyway.
//
// +kubebuilder:rbac:groups=core.oam.dev,resources=applicationconfigurations,verbs=list;watch
// +kubebuilder:rbac:groups=core.oam.dev,resources=applicationconfigurations/status,verbs=patch
// +kubebuilder:rbac:groups=core.oam.dev,resources=healthscopes,verbs=patch
