package main

import (
	"maps"
	"slices"

	"github.com/healthscope/healthscope/controllers/scope"
)

// conditionTables returns two tables for each condition of a HealthScope, by heading: the meanings of its reasons, and their
// diagnosis and mitigation.
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

// eventTable returns the table of the events that report changes of the health of a HealthScope.
func eventTable() table {
	events := table{{"reason", "type", "when"}}
	for _, health := range slices.Sorted(maps.Keys(scope.Events)) {
		e := scope.Events[health]
		events = append(events, []string{code(string(e.Reason)), e.Type, eventTexts[health]})
	}
	return events
}
