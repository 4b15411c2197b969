// Package labelservices has the rights of a controller with
// oam.labelServices. It holds nothing else; the role in
// config/rbac/oam/labelservices is generated from it.
package labelservices

// Services get the label of the scopes that their components are in.
//
// +kubebuilder:rbac:groups="",resources=services,verbs=patch
