package verify

import (
	"go/ast"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/controllers/scope"
	"github.com/healthscope/healthscope/healthscope"
)

// TestEveryReasonIsExplained, and given by something in the code besides: it is declared, explained, and used.
func TestEveryReasonIsExplained(t *testing.T) {
	explained := map[string]bool{}
	for _, e := range healthscope.Explanations {
		if explained[string(e.Reason)] || e.Meaning == "" || e.Advice == "" {
			t.Errorf("%s: explain it once: say what it means, and what to do about it", e.Reason)
		}
		explained[string(e.Reason)] = true
		for state := range strings.SplitSeq(e.States, ", ") {
			if !healthscope.State(strings.TrimSuffix(state, " (warning)")).Valid() {
				t.Errorf("%s: %q is no state", e.Reason, state)
			}
		}
	}
	uses := map[string]int{}
	inspect(sources(t, "healthscope", "controllers"), func(i *ast.Ident) { uses[i.Name]++ })
	for name, reason := range constants(sources(t, "healthscope"), "Reason") {
		if !explained[reason] {
			t.Errorf("explain %s in healthscope.Explanations", name)
		}
		if uses[name] < 3 {
			t.Errorf("remove %s: nothing gives it", name)
		}
	}
}

// TestEveryReasonOfAConditionIsExplained, in each condition once. One of them says that all is well, or that the condition is there.
func TestEveryReasonOfAConditionIsExplained(t *testing.T) {
	explained := map[scope.Reason]bool{}
	for condition, explanations := range scope.Explanations {
		for reason := range checkExplanations(t, condition, explanations) {
			explained[reason] = true
		}
	}
	for _, reachability := range fleet.Reachabilities() {
		of := func(e scope.Explanation) bool { return e.Reason == scope.Reason(reachability) }
		if reachability != fleet.Connected && !slices.ContainsFunc(scope.Explanations[corev1alpha2.ConditionClustersReachable], of) {
			t.Errorf("explain %s in scope.Explanations", reachability)
		}
	}
	for _, e := range scope.Events {
		explained[e.Reason] = true
	}
	for name, reason := range constants(sources(t, "controllers/scope"), "Reason") {
		if !explained[scope.Reason(reason)] {
			t.Errorf("explain %s in scope.Explanations", name)
		}
	}
}

// checkExplanations asserts that the reasons of a condition are explained as they should be, and returns them.
func checkExplanations(t *testing.T, condition string, explanations []scope.Explanation) map[scope.Reason]bool {
	t.Helper()
	seen, good := map[scope.Reason]bool{}, 0
	for _, e := range explanations {
		well := e.Status == metav1.ConditionTrue && e.Advice == "Nothing."
		if seen[e.Reason] || e.Meaning == "" || e.Advice == "" || (e.Look == "" || e.Mend == "") && !well {
			t.Errorf("%s of %s: explain it once: say what it means, what to do about it, and where to look", e.Reason, condition)
		}
		seen[e.Reason] = true
		if e.Status == metav1.ConditionTrue {
			good++
		}
	}
	if good != 1 {
		t.Errorf("%d reasons of condition %s have the status True; it should be one", good, condition)
	}
	return seen
}

func TestEveryHealthHasAnEvent(t *testing.T) {
	for name, health := range constants(sources(t, "apis/core"), "Health") {
		e := scope.Events[corev1alpha2.Health(health)]
		if e.Reason == "" || e.Meaning == "" || e.Type != corev1.EventTypeNormal && e.Type != corev1.EventTypeWarning {
			t.Errorf("%s: its event needs a reason, a meaning, and the type %s or %s", name, corev1.EventTypeNormal, corev1.EventTypeWarning)
		}
	}
}
