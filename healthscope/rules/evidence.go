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

// evidence is a part of a status that shows that an object is less healthy than its condition or phase.
type evidence struct {
	state   healthscope.State
	reason  healthscope.Reason
	message string
	serving bool
}

// severity returns a number to order evidence by: Failed, then Pending, then Pending and serving; 0 when there is none.
func (e evidence) severity() int {
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

// evidenceSearch searches a status for evidence and keeps the worst. Of equally bad evidence, it keeps the first in the order of the fields.
type evidenceSearch struct {
	o *object
	// budget is the number of values that the search may still read.
	budget int
	// checkCounts is false for a suspended object, which may have fewer ready parts than desired.
	checkCounts bool
	worst       evidence
}

// applyEvidence looks for evidence against the result of a good condition or phase, or in a status that no rule understands. It makes the
// worst evidence the result, and reports whether there is any.
func (o *object) applyEvidence() bool {
	open := o.State == healthscope.Ready && o.Reason != healthscope.ReasonNoStatus || o.Reason == healthscope.ReasonNoRule
	if !open || aggregatingKinds[o.groupKind()] || o.succeeded() || o.scaledToZero() {
		return false
	}
	s := evidenceSearch{o: o, budget: evidenceValues, checkCounts: !o.Suspended && !o.isSuspended()}
	s.inspectConditions(o.conditions, true)
	if s.checkCounts {
		s.inspectCounts(o.status, o.spec, "status")
	}
	s.inspectObject(o.status, "status", 0)
	if s.worst == (evidence{}) {
		return false
	}
	o.set(s.worst.state, s.worst.reason, s.worst.message)
	o.Serving = s.worst.serving
	return true
}

// succeeded reports whether an object has completed successfully. Failures before that, such as of a step that was retried, do not count any more.
func (o *object) succeeded() bool {
	if c := findCondition(o.conditions, readinessConditions...); c.exists() {
		return c.conditionType == "Succeeded" && c.is("True")
	}
	for _, field := range phaseFields {
		switch normalize(stringValue(o.status[field])) {
		case "succeeded", "success", "successful", "complete", "completed":
			return true
		}
	}
	return false
}

// scaledToZero reports whether Knative has scaled an object to zero because there is no traffic.
func (o *object) scaledToZero() bool {
	active := findCondition(o.conditions, "Active")
	return active.is("False") && active.reason == "NoTraffic"
}

// record keeps e if it is the worst evidence so far.
func (s *evidenceSearch) record(e evidence) {
	if e.severity() > s.worst.severity() {
		s.worst = e
	}
}

// pending records that something is Pending.
func (s *evidenceSearch) pending(reason healthscope.Reason, message string) {
	s.record(evidence{state: healthscope.Pending, reason: reason, message: message})
}

// inspectConditions reads the conditions of the object or of one of its parts. ownConditions is true for those of the object itself. The
// observedGeneration of a part's conditions is not compared with the generation of the object.
func (s *evidenceSearch) inspectConditions(conditions []condition, ownConditions bool) {
	aggregated := findCondition(conditions, "Ready").exists()
	for _, c := range conditions {
		unhealthy := unhealthyStatus(c.conditionType, ownConditions && aggregated)
		if unhealthy == "" || !c.is(unhealthy) || ownConditions && (s.o.outdated(c) || c.conditionType == otherConditionByKind[s.o.groupKind()]) {
			continue
		}
		reason := healthscope.ReasonConditionFalse
		switch {
		case !ownConditions || c.is("True"):
			reason = healthscope.ReasonNotHealthy
		case c.conditionType == "Available":
			reason = healthscope.ReasonAvailableFalse
		}
		s.pending(reason, c.sentence())
	}
}

// unhealthyStatus returns the status with which a condition of a type means that something is unhealthy; "" when the type is not about health.
// aggregated is true when the controller has taken a condition *Ready into account, because there is also a condition Ready.
func unhealthyStatus(kind string, aggregated bool) string {
	stem, positive := "", false
	for _, suffix := range [...]string{"Healthy", "Available", "Reachable", "Ready"} {
		if stem, positive = strings.CutSuffix(kind, suffix); positive {
			break
		}
	}
	switch {
	case strings.HasSuffix(kind, "Ready") && aggregated && kind != "NotReady":
		return ""
	case hasAnySuffix(kind, "Unhealthy", "Unavailable", "Unreachable"):
		return "True"
	case !positive, hasAnySuffix(stem, updateWords...):
		return ""
	case hasAnySuffix(stem, "Not", "Non"):
		return "True"
	}
	return "False"
}

// updateWords are the words before Available in the type of a condition that announces an available update, such as UpdateAvailable, and is
// not about health.
var updateWords = []string{"Update", "Updates", "Upgrade", "Upgrades", "Version", "Versions", "Release", "Patch", "Reboot", "Rollback"}

// ignoredPrefixes are the prefixes of the names of fields about another time, or about the desired state.
var ignoredPrefixes = []string{
	"last", "previous", "prev", "old", "history", "past", "desired", "target", "wanted", "spec", "template", "operation", "event",
	"revision", "retr", "initial", "prior", "managedfields", "former", "backup", "restore",
}

// isIgnoredField reports whether a field of that name does not describe the current state of its object.
func isIgnoredField(name string) bool {
	lower := strings.ToLower(name)
	return slices.ContainsFunc(ignoredPrefixes, func(prefix string) bool { return strings.HasPrefix(lower, prefix) }) || strings.HasSuffix(lower, "history")
}

// inspectObject searches an object within the status, and all objects in it, for health words, counts and conditions.
func (s *evidenceSearch) inspectObject(object map[string]any, path string, depth int) {
	if depth > evidenceDepth {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if s.budget--; s.budget < 0 {
			return
		}
		if isIgnoredField(name) {
			continue
		}
		at := path + "." + name
		switch value := object[name].(type) {
		case string:
			s.inspectString(name, at, value, depth)
		case bool:
			if !value && isHealthFlag(name) {
				s.pending(healthscope.ReasonNotHealthy, at+" is false")
			}
		case map[string]any:
			if s.checkCounts {
				s.inspectCounts(value, nil, at)
			}
			s.inspectObject(value, at, depth+1)
		case []any:
			s.inspectList(name, at, value, depth)
		}
	}
}

// inspectList searches a list within the status. Its entries are parts of the object, or conditions of a part.
func (s *evidenceSearch) inspectList(name, at string, list []any, depth int) {
	if name == "conditions" {
		if depth > 0 {
			s.inspectConditions(conditionsOf(list), false)
		}
		return
	}
	for i, item := range list {
		entry, ok := item.(map[string]any)
		if !ok {
			continue
		}
		path := fmt.Sprintf("%s[%d]", at, i)
		if s.checkCounts {
			s.inspectCounts(entry, nil, path)
		}
		s.inspectObject(entry, path, depth+1)
		if s.budget < 0 {
			return
		}
	}
}

// isHealthFlag reports whether a boolean field of that name is true when something is healthy.
func isHealthFlag(name string) bool {
	switch name {
	case "ready", "health", "healthy", "available", "reachable", "isReady", "isHealthy":
		return true
	}
	return strings.HasSuffix(name, "Healthy") && !strings.HasSuffix(name, "UnHealthy") && !strings.HasSuffix(name, "NotHealthy")
}

// inspectString looks at a string within the status.
func (s *evidenceSearch) inspectString(name, at, value string, depth int) {
	switch {
	case value == "":
		return
	case depth == 0 && (name == "failureReason" || name == "failureMessage"):
		s.record(evidence{state: healthscope.Failed, reason: healthscope.ReasonFailed, message: at + " is " + value})
		return
	case depth == 0 && name == "errorMessage":
		s.pending(healthscope.ReasonNotHealthy, at+" is "+value)
		return
	}
	if s.checkCounts && strings.Contains(value, "/") {
		s.inspectFraction(name, at, value)
	}
	lower := strings.ToLower(name)
	if !hasAnySuffix(lower, "health", "phase", "state", "status", "robustness") {
		return
	}
	word := normalize(value)
	switch class := phases[word]; {
	case class == phaseWarning:
		s.record(evidence{state: healthscope.Pending, reason: healthscope.ReasonNotHealthy, message: at + " is " + value, serving: true})
	case class == phaseFailed, isFailureWord(word), unhealthyWords[word], class == phasePending && strings.Contains(lower, "health"):
		s.pending(healthscope.ReasonNotHealthy, at+" is "+value)
	}
}

// hasAnySuffix reports whether a text ends in one of the suffixes.
func hasAnySuffix(text string, suffixes ...string) bool {
	return slices.ContainsFunc(suffixes, func(suffix string) bool { return strings.HasSuffix(text, suffix) })
}

// unhealthyWords are words that mean that something is unhealthy when a part has them, or an object with a good condition.
var unhealthyWords = map[string]bool{
	"notready": true, "unready": true, "nothealthy": true, "notavailable": true, "notreachable": true, "disconnected": true, "missing": true,
	"notfound": true, "crashed": true, "invalid": true,
}

// isFailureWord reports whether a lower-case word means a failure, such as workflowFailed, ReconcileError or FailedToLoad.
func isFailureWord(lower string) bool {
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
