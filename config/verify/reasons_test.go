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

// TestEveryReasonHasACondition, or an event. What it means is in config/tables.
func TestEveryReasonHasACondition(t *testing.T) {
	listed := map[scope.Reason]bool{}
	for condition, reasons := range scope.Conditions {
		seen, good := map[scope.Reason]bool{}, 0
		for _, r := range reasons {
			if seen[r.Reason] {
				t.Errorf("%s has the reason %s twice", condition, r.Reason)
			}
			seen[r.Reason], listed[r.Reason] = true, true
			if r.Status == metav1.ConditionTrue {
				good++
			}
		}
		if good != 1 {
			t.Errorf("%d reasons of condition %s have the status True; it should be one", good, condition)
		}
	}
	for _, reachability := range fleet.Reachabilities() {
		is := func(r scope.ConditionReason) bool { return r.Reason == scope.Reason(reachability) }
		if reachability != fleet.Connected && !slices.ContainsFunc(scope.Conditions[corev1alpha2.ConditionClustersReachable], is) {
			t.Errorf("add %s to scope.Conditions", reachability)
		}
	}
	for _, e := range scope.Events {
		listed[e.Reason] = true
	}
	for name, reason := range constants(sources(t, "controllers/scope"), "Reason") {
		if !listed[scope.Reason(reason)] {
			t.Errorf("add %s to scope.Conditions", name)
		}
	}
}

func TestEveryHealthHasAnEvent(t *testing.T) {
	for name, health := range constants(sources(t, "apis/core"), "Health") {
		e := scope.Events[corev1alpha2.Health(health)]
		if e.Reason == "" || e.Type != corev1.EventTypeNormal && e.Type != corev1.EventTypeWarning {
			t.Errorf("%s: its event needs a reason, and the type %s or %s", name, corev1.EventTypeNormal, corev1.EventTypeWarning)
		}
	}
}

// Each state of a cluster is explained where people meet it, and alerts cover all that are a fault.
func TestEveryStateOfAClusterIsShown(t *testing.T) {
	var documented []string
	for _, r := range readPage(t, "clusters.md").rows(t, "state") {
		documented = append(documented, code(r["state"]))
	}
	metrics, dashboard, alerts := readFile(t, "config", "docs", "metrics.md"), readFile(t, "config", "grafana", "healthscope.json"), ""
	for _, r := range readRules(t) {
		alerts += r.Expr + "\n"
	}
	for _, reachability := range fleet.Reachabilities() {
		state := string(reachability)
		if !slices.Contains(documented, state) {
			t.Errorf("clusters.md does not explain the state %q", state)
		}
		if !strings.Contains(metrics, "`"+state+"`") {
			t.Errorf("metrics.md does not name the state %q of healthscope_cluster_state", state)
		}
		if !strings.Contains(dashboard, `state=\"`+state+`\"`) || !strings.Contains(dashboard, `{"text": "`+state+`"`) {
			t.Errorf("the dashboard does not show the state %q", state)
		}
		if reachability != fleet.Connected && !strings.Contains(alerts, state) {
			t.Errorf("no alert fires for a cluster in the state %q", state)
		}
	}
}
