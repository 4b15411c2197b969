package oam

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
)

// AnnotationReferences is the annotation of a HealthScope that records the references that were added for
// ApplicationConfigurations. It is a JSON map from the name of an ApplicationConfiguration to its references.
const AnnotationReferences = "healthscope.core.oam.dev/application-configurations"

// ConditionJoined reports whether the workloads of all components that have health scopes are in those scopes.
const ConditionJoined = "HealthScopesJoined"

// The reasons of ConditionJoined. All but the first are also reasons of events.
const (
	reasonJoined          = "Joined"
	eventScopeNotFound    = "ScopeNotFound"
	eventWorkloadNotFound = "WorkloadNotFound"
	maxMessage            = 1024
	conditionStatusTrue   = string(metav1.ConditionTrue)
	conditionStatusFalse  = string(metav1.ConditionFalse)
	actionJoin            = "Join"
	fieldManagerPrefix    = "healthscope-oam-"
	maxFieldManagerName   = 100
)

// scopeState holds the references of a scope.
type scopeState struct {
	references []reference
	// recorded holds the references that this controller has added, by ApplicationConfiguration.
	recorded map[string][]reference
}

// decision holds the changes to make.
type decision struct {
	// scopes are the scopes to write, sorted by name.
	scopes []scopeChange
	// labels are the Services whose labels must be written, sorted by name.
	labels []labelChange
	// status, reason and message are those of the condition; an empty status means no condition.
	status, reason, message string
}

// scopeChange is a scope with the references that it must have.
type scopeChange struct {
	before *corev1alpha2.HealthScope
	next   scopeState
}

// labelChange is a Service with the sorted scopes whose labels the ApplicationConfiguration must set.
type labelChange struct {
	service *watchedObject
	scopes  []string
}

// decide returns the changes to make for an ApplicationConfiguration.
func decide(g gathered) (d decision) {
	joins, services := map[string][]reference{}, map[string][]string{}
	var missing, unresolved []string
	for _, c := range g.components {
		if c.workload == nil {
			unresolved = appendNew(unresolved, c.name)
		}
		for _, scope := range c.scopes {
			switch {
			case g.scopes[scope] == nil:
				missing = appendNew(missing, scope)
			case c.workload != nil:
				joins[scope] = appendNew(joins[scope], *c.workload)
				for _, service := range c.services {
					services[service] = appendNew(services[service], scope)
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(g.scopes)) {
		if next, changed := readScope(g.scopes[name]).join(g.name.Name, joins[name]); changed {
			d.scopes = append(d.scopes, scopeChange{g.scopes[name], next})
		}
	}
	for _, s := range g.services {
		wanted := slices.Sorted(slices.Values(services[s.name]))
		if !slices.Equal(wanted, slices.Sorted(slices.Values(s.scopes[fieldManager(g.name.Name)]))) {
			d.labels = append(d.labels, labelChange{s, wanted})
		}
	}
	if len(g.components) > 0 {
		d.report(missing, unresolved)
	}
	return d
}

// report sets the condition from the scopes that do not exist and the components without a workload.
func (d *decision) report(missing, unresolved []string) {
	var problems []string
	if len(missing) > 0 {
		problems = append(problems, "HealthScopes that do not exist: "+strings.Join(missing, ", "))
	}
	if len(unresolved) > 0 {
		problems = append(problems, "components without a workload, by status.workloads, labels or name: "+strings.Join(unresolved, ", "))
	}
	d.message = strings.Join(problems, "; ")
	switch {
	case len(missing) > 0:
		d.status, d.reason = conditionStatusFalse, eventScopeNotFound
	case len(unresolved) > 0:
		d.status, d.reason = conditionStatusFalse, eventWorkloadNotFound
	default:
		d.status, d.reason = conditionStatusTrue, reasonJoined
	}
}

// join returns the scope with the references of an ApplicationConfiguration, and whether the scope changes. A reference without a
// record was written by another client and stays; one that is recorded for several ApplicationConfigurations stays until none of them wants it.
func (s scopeState) join(name string, wanted []reference) (next scopeState, changed bool) {
	next = scopeState{references: slices.Clone(s.references), recorded: maps.Clone(s.recorded)}
	if next.recorded == nil {
		next.recorded = map[string][]reference{}
	}
	delete(next.recorded, name)
	isRecorded := func(r reference) bool {
		for _, refs := range next.recorded {
			if slices.Contains(refs, r) {
				return true
			}
		}
		return false
	}
	for _, r := range s.recorded[name] {
		if at := slices.Index(next.references, r); at >= 0 && !slices.Contains(wanted, r) && !isRecorded(r) {
			next.references = slices.Delete(next.references, at, at+1)
		}
	}
	var owned []reference
	for _, r := range wanted {
		there := slices.Contains(next.references, r)
		if !there {
			next.references = append(next.references, r)
		}
		if !there || isRecorded(r) || slices.Contains(s.recorded[name], r) {
			owned = append(owned, r)
		}
	}
	if len(owned) > 0 {
		next.recorded[name] = owned
	}
	return next, !slices.Equal(s.references, next.references) || !slices.Equal(s.recorded[name], owned)
}

// annotation returns the annotation of a scope; empty when nothing is recorded.
func (s scopeState) annotation() string {
	if len(s.recorded) == 0 {
		return ""
	}
	data, err := json.Marshal(s.recorded)
	if err != nil { // Strings can always be written as JSON.
		return ""
	}
	return string(data)
}

// readScope returns the references of a scope. An annotation that cannot be read counts as empty, so that the references that it
// may have named are left alone.
func readScope(scope *corev1alpha2.HealthScope) scopeState {
	s := scopeState{references: scope.Spec.WorkloadReferences}
	if err := json.Unmarshal([]byte(scope.Annotations[AnnotationReferences]), &s.recorded); err != nil {
		s.recorded = nil
	}
	return s
}

// appendNew appends an item unless the list has it.
func appendNew[T comparable](list []T, item T) []T {
	if slices.Contains(list, item) {
		return list
	}
	return append(list, item)
}
