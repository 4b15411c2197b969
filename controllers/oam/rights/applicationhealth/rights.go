// Package applicationhealth has the rights of a controller with
// oam.writeApplicationHealth. It holds nothing else; the role in
// config/rbac/oam/applicationhealth is generated from it.
package applicationhealth

// The controller may read Applications anyway.
//
// +kubebuilder:rbac:groups=core.oam.dev,resources=applications/status,verbs=patch
