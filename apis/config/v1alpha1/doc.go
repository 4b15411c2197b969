// Package v1alpha1 holds the configuration file of the healthscope program,
// with its defaults and its validation.
//
// The file is decoded strictly: a field that is not known is an error. The
// package holds types only and imports nothing but apimachinery.
//
// +kubebuilder:object:generate=true
package v1alpha1
