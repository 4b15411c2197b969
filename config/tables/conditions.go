package main

import (
	"maps"
	"slices"

	"github.com/healthscope/healthscope/controllers/scope"
)

// conditionTables are two tables of the reasons of each condition of a HealthScope, below its heading: what they mean, and where to look when one is seen.
func conditionTables() (meanings, remedies map[string]table) {
	meanings, remedies = map[string]table{}, map[string]table{}
	for condition, reasons := range scope.Conditions {
		means, remedy := table{{"reason", "status", "meaning", "what to do"}}, table{{"reason", "diagnosis", "mitigation"}}
		for _, r := range reasons {
			reason, text := code(string(r.Reason)), conditionTexts[condition][r.Reason]
			means = append(means, []string{reason, string(r.Status), text.meaning, text.advice})
			remedy = append(remedy, []string{reason, text.diagnosis, text.mitigation})
		}
		meanings[condition], remedies[condition] = means, remedy
	}
	return meanings, remedies
}

// eventTable is the table of the events on changes of the health of a HealthScope.
func eventTable() table {
	events := table{{"reason", "type", "when"}}
	for _, health := range slices.Sorted(maps.Keys(scope.Events)) {
		e := scope.Events[health]
		events = append(events, []string{code(string(e.Reason)), e.Type, eventTexts[health]})
	}
	return events
}
