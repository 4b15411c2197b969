package main

import (
	"maps"
	"slices"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/rules"
)

// reasonTables returns two tables, by heading: the reasons of HealthScope, and the terminal waiting reasons of containers in
// Kubernetes.
func reasonTables() map[string]table {
	reasons := table{{"reason", "state", "meaning", "what to do"}}
	for _, e := range healthscope.Explanations {
		reasons = append(reasons, []string{code(string(e.Reason)), e.States, e.Meaning, e.Advice})
	}
	waiting := table{{"reason", "what to do"}}
	for _, reason := range slices.Sorted(maps.Keys(rules.TerminalWaitingReasons)) {
		waiting = append(waiting, []string{code(reason), rules.TerminalWaitingReasons[reason]})
	}
	return map[string]table{"Reasons of HealthScope": reasons, "Reasons of Kubernetes": waiting}
}
