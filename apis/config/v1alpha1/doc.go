// Package v1alpha1 owns the configuration file of the healthscope program: its types, its defaults (SetDefaults) and its
// validation (Validate). The program calls it when it reads the file, and the generators of the documentation and of the
// chart's schema read its types. It must never read a file itself, nor import anything but the standard library,
// apimachinery and the types beside it.
//
// Readers decode the file strictly: an unknown field is an error.
//
// +kubebuilder:object:generate=true
package v1alpha1
