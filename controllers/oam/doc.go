// Package oam keeps the references of HealthScopes to the workloads of
// ApplicationConfigurations (core.oam.dev/v1alpha2), and the label of the scope
// on their Services, where there is no OAM runtime that does it. It reads
// ApplicationConfigurations for their scopes alone, and renders no components.
//
// References are noted in an annotation of the scope, by ApplicationConfiguration,
// and labels belong to a field manager for each ApplicationConfiguration: what
// others have written is left alone, and what two have in common stays until the last one goes.
package oam
