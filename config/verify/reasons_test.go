package verify

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/controllers/scope"
	"github.com/healthscope/healthscope/healthscope"
)

// TestEveryReasonIsInAList asserts that each reason is in the lists from which the tables of reasons are generated.
func TestEveryReasonIsInAList(t *testing.T) {
	explained, listed := map[string]bool{}, map[string]bool{}
	for _, e := range healthscope.Explanations {
		explained[string(e.Reason)] = true
	}
	for name, reason := range constants(sources(t, "healthscope"), "Reason") {
		if !explained[reason] {
			t.Errorf("explain %s in healthscope.Explanations", name)
		}
	}
	for _, reasons := range scope.Conditions {
		for _, r := range reasons {
			listed[string(r.Reason)] = true
		}
	}
	for _, e := range scope.Events {
		listed[string(e.Reason)] = true
	}
	for name, reason := range constants(sources(t, "controllers/scope"), "Reason") {
		if !listed[reason] {
			t.Errorf("add %s to scope.Conditions", name)
		}
	}
	for _, reachability := range fleet.Reachabilities() {
		is := func(r scope.ConditionReason) bool { return r.Reason == scope.Reason(reachability) }
		if reachability != fleet.Connected && !slices.ContainsFunc(scope.Conditions[corev1alpha2.ConditionClustersReachable], is) {
			t.Errorf("add %s to the reasons of ClustersReachable in scope.Conditions", reachability)
		}
	}
}

// TestEveryStateOfAClusterIsShown asserts that each state of a cluster is on its pages and on the dashboard, which shows the worst
// one, and that alerts and runbooks cover all states that are faults.
func TestEveryStateOfAClusterIsShown(t *testing.T) {
	var documented []string
	for _, r := range readPage(t, "clusters.md").rows(t, "state") {
		documented = append(documented, code(r["state"]))
	}
	metrics, dashboard, alerts := readFile(t, "config", "docs", "metrics.md"), readFile(t, "config", "grafana", "healthscope.json"), ""
	troubleshooting, runbooks := readFile(t, "config", "docs", "troubleshooting.md"), readFile(t, "config", "docs", "runbooks.md")
	for _, r := range readRules(t) {
		alerts += r.Expr + "\n"
	}
	for rank, reachability := range fleet.Reachabilities() {
		state := string(reachability)
		if !slices.Contains(documented, state) {
			t.Errorf("clusters.md does not explain the state %q", state)
		}
		if !strings.Contains(metrics, "`"+state+"`") {
			t.Errorf("metrics.md does not name the state %q of healthscope_cluster_state", state)
		}
		if !strings.Contains(dashboard, fmt.Sprintf(`state=\"%s\"} * %d`, state, rank)) || !strings.Contains(dashboard, fmt.Sprintf(`"%d": {"text": "%s"`, rank, state)) {
			t.Errorf("the dashboard does not show the state %q as number %d, its place in fleet.Reachabilities", state, rank)
		}
		if !strings.Contains(troubleshooting, "`"+state+"`") {
			t.Errorf("troubleshooting.md does not name the state %q", state)
		}
		if reachability == fleet.Connected {
			continue
		}
		if !strings.Contains(alerts, state) {
			t.Errorf("no alert fires for a cluster in the state %q", state)
		}
		if !strings.Contains(runbooks, "`"+state+"`") {
			t.Errorf("runbooks.md does not say what to do for a cluster in the state %q", state)
		}
	}
}
