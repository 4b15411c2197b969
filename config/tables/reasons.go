package main

import (
	"github.com/healthscope/healthscope/healthscope"
)

// reasonTables are the reasons of HealthScope, below their heading.
func reasonTables() map[string]table {
	reasons := table{{"reason", "state", "meaning", "what to do"}}
	for _, e := range healthscope.Explanations {
		reasons = append(reasons, []string{code(string(e.Reason)), e.States, e.Meaning, e.Advice})
	}
	return map[string]table{"Reasons of HealthScope": reasons}
}
