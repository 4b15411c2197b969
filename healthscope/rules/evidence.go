package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/healthscope/healthscope/healthscope"
)

// Bounds of the search for evidence: how deep below status it goes, and how many values it looks at.
const (
	evidenceDepth  = 5
	evidenceValues = 5000
)

// evidence is a part of a status that says that an object is not as well as its condition or phase says.
type evidence struct {
	state   healthscope.State
	reason  healthscope.Reason
	message string
	serving bool
}

// worse reports whether e says more against an object than other does: Failed, then Pending, then Pending and serving.
func (e evidence) worse(other evidence) bool { return e.weight() > other.weight() }

// weight orders evidence; that of none is 0.
func (e evidence) weight() int {
	switch {
	case e.state == healthscope.Failed:
		return 3
	case e.state == healthscope.Pending && !e.serving:
		return 2
	case e.state == healthscope.Pending:
		return 1
	}
	return 0
}

// search looks through a status for evidence and keeps the worst, of equal ones the first in the order of the fields.
type search struct {
	o *object
	// values is how many values it may still look at.
	values int
	// counting is false for an object that is suspended, of which fewer may be ready than are wanted.
	counting bool
	found    evidence
}

// doubt reports whether a status in which one good condition or phase has decided, or that no rule understands, holds evidence
// against that. The worst evidence then is the result.
func doubt(o *object, result *healthscope.Result) bool {
	open := result.State == healthscope.Ready && result.Reason != healthscope.ReasonNoStatus || result.Reason == healthscope.ReasonNoRule
	if !open || summing[groupKind{result.Group, result.Kind}] || o.ended() || o.scaledToZero() {
		return false
	}
	s := search{o: o, values: evidenceValues, counting: !result.Suspended && !halted(o)}
	s.conditions(o.conditions, true)
	if s.counting {
		s.counts(o.status, o.spec, "status")
	}
	s.words(o.status, "status", 0)
	if s.found.weight() == 0 {
		return false
	}
	result.State, result.Reason, result.Message = s.found.state, s.found.reason, s.found.message
	result.Serving = s.found.serving
	return true
}

// ended reports whether an object has come to its end well, so that what went wrong on the way, such as a step that was tried again, no longer counts.
func (o *object) ended() bool {
	for _, kind := range deciding {
		if c := find(o.conditions, kind); c.exists() {
			return kind == "Succeeded" && c.is("True")
		}
	}
	for _, field := range phaseFields {
		switch normal(word(o.status[field])) {
		case "succeeded", "success", "successful", "complete", "completed":
			return true
		}
	}
	return false
}

// scaledToZero reports whether Knative has scaled an object to zero, for lack of traffic.
func (o *object) scaledToZero() bool {
	active := find(o.conditions, "Active")
	return active.is("False") && active.reason == "NoTraffic"
}

// note keeps evidence when it is the worst so far.
func (s *search) note(e evidence) {
	if e.worse(s.found) {
		s.found = e
	}
}

// conditions looks at conditions that say how well the object, or a part of it, is. top is true for those of the object
// itself. A part's conditions do not have the generation of the object.
func (s *search) conditions(conditions []condition, top bool) {
	aggregated := find(conditions, "Ready").exists()
	for _, c := range conditions {
		bad := badStatus(c.kind, top && aggregated)
		if bad == "" || !c.is(bad) || top && s.o.outdated(c) {
			continue
		}
		reason := healthscope.ReasonConditionFalse
		switch {
		case !top || c.is("True"):
			reason = healthscope.ReasonNotHealthy
		case c.kind == "Available":
			reason = healthscope.ReasonAvailableFalse
		}
		s.note(evidence{state: healthscope.Pending, reason: reason, message: c.sentence()})
	}
}

// badStatus returns the status by which a condition says that something is not well; "" when the condition does not speak of
// health. A condition *Ready besides Ready itself is one that the controller has taken into account: aggregated is true then.
func badStatus(kind string, aggregated bool) string {
	stem, positive := "", false
	for _, suffix := range [...]string{"Healthy", "Available", "Reachable", "Ready"} {
		if stem, positive = strings.CutSuffix(kind, suffix); positive {
			if suffix == "Ready" && aggregated && kind != "NotReady" {
				return ""
			}
			break
		}
	}
	for _, suffix := range [...]string{"Unhealthy", "Unavailable", "Unreachable"} {
		if strings.HasSuffix(kind, suffix) {
			return "True"
		}
	}
	switch {
	case !positive, novelty(stem):
		return ""
	case strings.HasSuffix(stem, "Not"), strings.HasSuffix(stem, "Non"):
		return "True"
	}
	return "False"
}

// novelty reports whether a condition *Available speaks of something new that could be had, such as UpdateAvailable, not of health.
func novelty(stem string) bool {
	for _, suffix := range [...]string{"Update", "Updates", "Upgrade", "Upgrades", "Version", "Versions", "Release", "Patch", "Reboot", "Rollback"} {
		if strings.HasSuffix(stem, suffix) {
			return true
		}
	}
	return false
}

// skipped are the beginnings of the names of fields that speak of another time, or of what is wanted.
var skipped = []string{
	"last", "previous", "prev", "old", "history", "past", "desired", "target", "wanted", "spec", "template", "operation", "event",
	"revision", "retr", "initial", "prior", "managedfields", "former", "backup", "restore",
}

// skip reports whether a field is one that says nothing of how its object is now.
func skip(name string) bool {
	lower := strings.ToLower(name)
	return slices.ContainsFunc(skipped, func(prefix string) bool { return strings.HasPrefix(lower, prefix) }) || strings.HasSuffix(lower, "history")
}

// words looks through an object within the status, and what is in it, for words for health, numbers and conditions.
func (s *search) words(object map[string]any, path string, depth int) {
	if depth > evidenceDepth {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if s.values--; s.values < 0 {
			return
		}
		if skip(name) {
			continue
		}
		at := path + "." + name
		switch value := object[name].(type) {
		case string:
			s.word(name, at, value, depth)
		case bool:
			if !value && healthFlag(name) {
				s.note(evidence{state: healthscope.Pending, reason: healthscope.ReasonNotHealthy, message: at + " is false"})
			}
		case map[string]any:
			if s.counting {
				s.counts(value, nil, at)
			}
			s.words(value, at, depth+1)
		case []any:
			s.list(name, at, value, depth)
		}
	}
}

// list looks through a list within the status. Its entries are parts of the object, or conditions of a part.
func (s *search) list(name, at string, list []any, depth int) {
	if name == "conditions" {
		if depth > 0 {
			s.conditions(conditionsOf(list), false)
		}
		return
	}
	for i, item := range list {
		entry, ok := item.(map[string]any)
		if !ok {
			continue
		}
		path := fmt.Sprintf("%s[%d]", at, i)
		if s.counting {
			s.counts(entry, nil, path)
		}
		s.words(entry, path, depth+1)
		if s.values < 0 {
			return
		}
	}
}

// healthFlag reports whether a boolean field reports whether something is well.
func healthFlag(name string) bool {
	switch name {
	case "ready", "health", "healthy", "available", "reachable", "isReady", "isHealthy":
		return true
	}
	return strings.HasSuffix(name, "Healthy") && !strings.HasSuffix(name, "UnHealthy") && !strings.HasSuffix(name, "NotHealthy")
}

// word looks at a string within the status.
func (s *search) word(name, at, value string, depth int) {
	if value == "" {
		return
	}
	if depth == 0 {
		switch name {
		case "failureReason", "failureMessage":
			s.note(evidence{state: healthscope.Failed, reason: healthscope.ReasonFailed, message: at + " is " + value})
			return
		case "errorMessage":
			s.note(evidence{state: healthscope.Pending, reason: healthscope.ReasonNotHealthy, message: at + " is " + value})
			return
		}
	}
	if s.counting && strings.Contains(value, "/") {
		s.fraction(name, at, value)
	}
	if !healthField(name) {
		return
	}
	e := evidence{state: healthscope.Pending, reason: healthscope.ReasonNotHealthy, message: at + " is " + value}
	switch class := phases[normal(value)]; {
	case class == phaseWarning:
		e.serving = true
	case class == phaseFailed, failedWord(normal(value)), unwell[normal(value)]:
	case strings.Contains(strings.ToLower(name), "health") && class == phasePending:
	default:
		return
	}
	s.note(e)
}

// healthField reports whether the name of a field is that of a word for health.
func healthField(name string) bool {
	lower := strings.ToLower(name)
	for _, suffix := range [...]string{"health", "phase", "state", "status", "robustness"} {
		if strings.HasSuffix(lower, suffix) {
			return true
		}
	}
	return false
}

// unwell are words that, of a part or beside a good condition, say that something is not as it should be.
var unwell = map[string]bool{
	"notready": true, "unready": true, "nothealthy": true, "notavailable": true, "notreachable": true, "disconnected": true, "missing": true,
	"notfound": true, "crashed": true, "invalid": true,
}

// failedWord reports whether a word in small letters is like one for failure, such as workflowFailed, ReconcileError or FailedToLoad.
func failedWord(lower string) bool {
	if strings.HasPrefix(lower, "failedto") {
		return true
	}
	for _, suffix := range [...]string{"failed", "error", "failure"} {
		if stem, ok := strings.CutSuffix(lower, suffix); ok && stem != "no" && stem != "not" && stem != "none" {
			return true
		}
	}
	return false
}
