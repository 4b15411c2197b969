// Package oam has the rights of a controller whose scopes refer to workloads of
// OAM, which lead to Deployments and Services, and to Applications of KubeVela. It holds nothing else; the role
// in config/rbac/controller_oam.yaml is generated from it.
package oam

// The kinds are watched while a scope refers to a workload of OAM or to an Application.
//
// +kubebuilder:rbac:groups="",resources=services,verbs=list;watch
// +kubebuilder:rbac:groups=core.oam.dev,resources=applications;containerizedworkloads,verbs=list;watch
// +kubebuilder:rbac:groups=standard.oam.dev,resources=podspecworkloads,verbs=list;watch
