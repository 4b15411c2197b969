// Package oam owns the references of HealthScopes to the workloads of ApplicationConfigurations (core.oam.dev/v1alpha2),
// and the label of the scope on their Services, where there is no OAM runtime that does it. Package app sets it up. It
// must never render a component, and never change a reference or label that others have written.
//
// References are noted in an annotation of the scope, by ApplicationConfiguration,
// and labels belong to a field manager for each ApplicationConfiguration: what
// others have written is left alone, and what two have in common stays until the last one goes.
package oam
