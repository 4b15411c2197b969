package main

import (
	"maps"
	"slices"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/rules"
)

// reasonTables are the reasons of HealthScope, and those of Kubernetes for which containers wait in vain, below their headings.
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
