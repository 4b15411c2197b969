package main

import (
	"maps"
	"slices"

	"github.com/healthscope/healthscope/controllers/scope"
)

// conditionTables are two tables of the reasons of each condition of a HealthScope, below its heading: what they mean, and where to look when one is seen.
func conditionTables() (meanings, remedies map[string]table) {
	meanings, remedies = map[string]table{}, map[string]table{}
	for condition, explanations := range scope.Explanations {
		means, mends := table{{"reason", "status", "meaning", "what to do"}}, table{{"reason", "look", "mend"}}
		for _, e := range explanations {
			reason := code(string(e.Reason))
			means = append(means, []string{reason, string(e.Status), e.Meaning, e.Advice})
			mends = append(mends, []string{reason, e.Look, e.Mend})
		}
		meanings[condition], remedies[condition] = means, mends
	}
	return meanings, remedies
}

// eventTable is the table of the events that tell of the health of a HealthScope.
func eventTable() table {
	events := table{{"reason", "type", "when"}}
	for _, health := range slices.Sorted(maps.Keys(scope.Events)) {
		e := scope.Events[health]
		events = append(events, []string{code(string(e.Reason)), e.Type, e.Meaning})
	}
	return events
}
