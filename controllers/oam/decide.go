package oam

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
)

// AnnotationReferences notes, on a HealthScope, which references were added for which ApplicationConfiguration: a map from its name to them, as JSON.
const AnnotationReferences = "healthscope.core.oam.dev/application-configurations"

// ConditionJoined reports whether the workloads of all components that have health scopes are in these.
const ConditionJoined = "HealthScopesJoined"

// The reasons of ConditionJoined. All but the first are reasons of events too.
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

// workload is the workload of a component, with the names of its Services.
type workload struct {
	reference

	services []string
}

// scopeState is what a scope says of references.
type scopeState struct {
	references []corev1alpha2.WorkloadReference
	// noted are the references that were added, by ApplicationConfiguration.
	noted map[string][]reference
}

// gathered is the input of decide.
type gathered struct {
	// name is the name of the ApplicationConfiguration, which may be gone: it has no components then.
	name       string
	components []component
	// workloads are those of components that have been found, by component.
	workloads map[string]workload
	// scopes are those of the namespace.
	scopes map[string]scopeState
	// labelled are the scopes whose label this ApplicationConfiguration has set, by Service; those without are there too.
	labelled map[string][]string
}

// decision is what is to be done.
type decision struct {
	// scopes are the scopes to be written.
	scopes map[string]scopeState
	// services are the Services to be labelled: the scopes, sorted, by Service.
	services map[string][]string
	// status, reason and message are those of the condition; status is empty when there is none.
	status, reason, message string
}

// decide says what is to be done for an ApplicationConfiguration.
func decide(g gathered) decision {
	joins, services := map[string][]reference{}, map[string][]string{}
	var missing, unresolved []string
	for _, c := range g.components {
		w, found := g.workloads[c.name]
		if !found {
			unresolved = appendNew(unresolved, c.name)
		}
		for _, scope := range c.scopes {
			switch _, exists := g.scopes[scope]; {
			case !exists:
				missing = appendNew(missing, scope)
			case found:
				joins[scope] = appendNew(joins[scope], w.reference)
				for _, service := range w.services {
					services[service] = appendNew(services[service], scope)
				}
			}
		}
	}
	d := decision{scopes: map[string]scopeState{}, services: map[string][]string{}}
	for name, s := range g.scopes {
		if next, changed := s.join(g.name, joins[name]); changed {
			d.scopes[name] = next
		}
	}
	for name, before := range g.labelled {
		wanted := slices.Sorted(slices.Values(services[name]))
		if !slices.Equal(wanted, slices.Sorted(slices.Values(before))) {
			d.services[name] = wanted
		}
	}
	if len(g.components) > 0 {
		d.report(missing, unresolved)
	}
	return d
}

// report sets the condition by the scopes that do not exist and the components without a workload.
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

// join returns the scope with the references of an ApplicationConfiguration, and whether that makes a difference. A reference that nothing is
// noted of is another's and stays; one that several have noted stays until the last one does not want it.
func (s scopeState) join(name string, wanted []reference) (next scopeState, changed bool) {
	next = scopeState{references: slices.Clone(s.references), noted: maps.Clone(s.noted)}
	if next.noted == nil {
		next.noted = map[string][]reference{}
	}
	delete(next.noted, name)
	isNoted := func(r reference) bool {
		for _, refs := range next.noted {
			if slices.Contains(refs, r) {
				return true
			}
		}
		return false
	}
	for _, r := range s.noted[name] {
		if at := slices.IndexFunc(next.references, r.matches); at >= 0 && !slices.Contains(wanted, r) && !isNoted(r) {
			next.references = slices.Delete(next.references, at, at+1)
		}
	}
	var mine []reference
	for _, r := range wanted {
		there := slices.ContainsFunc(next.references, r.matches)
		if !there {
			next.references = append(next.references, r.workloadReference())
		}
		if !there || isNoted(r) || slices.Contains(s.noted[name], r) {
			mine = append(mine, r)
		}
	}
	if len(mine) > 0 {
		next.noted[name] = mine
	}
	return next, !slices.Equal(s.references, next.references) || !slices.Equal(s.noted[name], mine)
}

// notes returns the annotation of a scope; empty when nothing is noted.
func (s scopeState) notes() string {
	if len(s.noted) == 0 {
		return ""
	}
	data, err := json.Marshal(s.noted)
	if err != nil { // Texts can be written as JSON.
		return ""
	}
	return string(data)
}

// readScope returns what a scope says of references. Notes that cannot be read say nothing: what they might have named is left alone.
func readScope(scope *corev1alpha2.HealthScope) scopeState {
	s := scopeState{references: scope.Spec.WorkloadReferences}
	if err := json.Unmarshal([]byte(scope.Annotations[AnnotationReferences]), &s.noted); err != nil {
		s.noted = nil
	}
	return s
}

// appendNew appends what is not in a list yet.
func appendNew[T comparable](list []T, item T) []T {
	if slices.Contains(list, item) {
		return list
	}
	return append(list, item)
}
