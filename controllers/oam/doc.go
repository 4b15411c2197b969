// Package oam owns the references of HealthScopes to the workloads of ApplicationConfigurations (core.oam.dev/v1alpha2),
// and the label of the scope on their Services, in clusters where no OAM runtime sets them. Package app sets it up. It
// must never render a component, and never change a reference or label that another client has written.
//
// The controller records the references that it adds in an annotation of the scope, by ApplicationConfiguration, and
// sets labels with one field manager for each ApplicationConfiguration. It leaves what other clients have written
// alone, and keeps what two ApplicationConfigurations share until both are gone.
package oam
