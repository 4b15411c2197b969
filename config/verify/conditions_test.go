package verify

import (
	"go/ast"
	"maps"
	"regexp"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
)

// reasonWord matches what can be a reason: one CamelCase word.
var reasonWord = regexp.MustCompile(`^[A-Z][a-z]+([A-Z][a-z]+)*$`)

// noReasons are the CamelCase words in the source of conditions and events that are no reasons: the action of the
// events, kinds, a culprit that is a cluster, and what stands for the kind of a reference that names none and of a selector that cannot be read.
var noReasons = []string{"Judge", "HealthScope", "Application", "Cluster", "Reference", "Selector"}

// conditionTypes are the types of a scope's conditions.
var conditionTypes = []string{corev1alpha2.ConditionReady, corev1alpha2.ConditionClustersReachable, corev1alpha2.ConditionInventorySynced, corev1alpha2.ConditionInventoryConflict, corev1alpha2.ConditionStalled, corev1alpha2.ConditionHealthChecksInvalid, corev1alpha2.ConditionStatusContested}

// reasonsInSource returns the reasons of conditions and events: all CamelCase words in the packages that make them, wherever they are written.
func reasonsInSource(t *testing.T) []string {
	t.Helper()
	words := map[string]bool{}
	inspect(sources(t, "controllers/scope", "controllers/inventory", "apis/core"), func(l *ast.BasicLit) {
		if word, ok := text(l); ok && reasonWord.MatchString(word) {
			words[word] = true
		}
	})
	for _, word := range slices.Concat(noReasons, conditionTypes) {
		delete(words, word)
	}
	for _, reachability := range fleet.Reachabilities() { // What is the matter with a cluster is a reason of ClustersReachable.
		if reachability != fleet.Connected {
			words[string(reachability)] = true
		}
	}
	return slices.Sorted(maps.Keys(words))
}

func TestReasonsOfConditionsAndEventsAreDocumented(t *testing.T) {
	p := readPage(t, healthScopePage)
	var got []string
	for _, title := range slices.Concat(conditionTypes, []string{"Events"}) {
		section := p.section(t, title)
		names := firstCodes(section.rows(t, "reason"), "reason")
		section.documents(t, "reason", names, names) // None of them twice.
		got = append(got, names...)
	}
	slices.Sort(got)
	p.documents(t, "reason of a condition or an event", reasonsInSource(t), slices.Compact(got))
}

func TestConditionsAreDocumented(t *testing.T) {
	p := readPage(t, healthScopePage)
	var types []string
	for _, l := range p.section(t, "Conditions").lines() {
		if match := heading.FindStringSubmatch(l.text); match != nil && match[1] == "###" {
			types = append(types, match[2])
		}
	}
	inspect(sources(t, "apis/core"), func(s *ast.ValueSpec) {
		for i, name := range s.Names {
			if value, ok := text(s.Values[i]); ok && regexp.MustCompile("^Condition[A-Z]").MatchString(name.Name) && !slices.Contains(conditionTypes, value) {
				t.Errorf("tell this test about the condition %q, and document it in %s", value, p.name)
			}
		}
	})
	p.documents(t, "condition", conditionTypes, types)
	statuses := []string{string(metav1.ConditionTrue), string(metav1.ConditionFalse), string(metav1.ConditionUnknown)}
	for _, kind := range conditionTypes {
		good := 0
		for _, r := range p.section(t, kind).rows(t, "reason") {
			if r["status"] == string(metav1.ConditionTrue) {
				good++
			}
			if !slices.Contains(statuses, r["status"]) || r["meaning"] == "" || r["what to do"] == "" {
				t.Errorf("%s: %s of condition %s must have a status of %q, a meaning, and what to do", p.name, r["reason"], kind, statuses)
			}
		}
		if good != 1 {
			t.Errorf("%s: %d reasons of condition %s have the status True; it should be one", p.name, good, kind)
		}
	}
}

func TestEveryHealthHasAnEvent(t *testing.T) {
	p := readPage(t, healthScopePage).section(t, "Events")
	rows := p.rows(t, "reason")
	if words := constants(sources(t, "apis/core"), "Health"); len(rows) != len(words) {
		t.Errorf("%s: %d events for the %d words of status.health, %q", p.name, len(rows), len(words), words)
	}
	for _, r := range rows {
		if r["when"] == "" || r["type"] != corev1.EventTypeNormal && r["type"] != corev1.EventTypeWarning {
			t.Errorf("%s: the event %s must have the type %s or %s, and say when", p.name, r["reason"], corev1.EventTypeNormal, corev1.EventTypeWarning)
		}
	}
}
