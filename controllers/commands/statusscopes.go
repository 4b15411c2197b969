package commands

import (
	"fmt"
	"strconv"
	"time"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/scope"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/api"
)

// scopesPage returns the page for a list of scopes. With wide it has more columns, for which the list must have complete scopes.
func scopesPage(scopes []api.Scope, wide bool) *page {
	g := &page{health: healthscope.Healthy}
	t := table{columns: []string{"NAMESPACE", "NAME", healthColumn, stateColumn, "READY", "CLUSTERS", "REASON", "FIRST CULPRIT"}}
	if wide {
		t.columns = append(t.columns, "PENDING", "FAILED", "UNKNOWN", "MESSAGE")
	}
	for i := range scopes {
		s := &scopes[i]
		g.health = healthscope.WorseHealth(g.health, scopeHealth(s.ScopeItem))
		cells := []string{s.Namespace, s.Name, s.Health, s.State, s.ResourcesReady, s.ClustersReachable, s.Reason, s.FirstCulprit}
		if wide {
			cells = append(cells, strconv.Itoa(s.Summary.Pending), strconv.Itoa(s.Summary.Failed), strconv.Itoa(s.Summary.Unknown), s.Message)
		}
		t.add(s.State, cells...)
		g.addStaleNote(s.ScopeItem)
	}
	if len(scopes) == 0 {
		g.linef("", "There are no HealthScopes.")
		return g
	}
	g.tables = []table{t}
	return g
}

// listPage returns the page for the items of a list from the server, which are not complete scopes.
func listPage(items []api.ScopeItem) *page {
	scopes := make([]api.Scope, len(items))
	for i := range items {
		scopes[i].ScopeItem = items[i]
	}
	return scopesPage(scopes, false)
}

func (g *page) addStaleNote(s api.ScopeItem) {
	if s.Stale {
		g.notef("HealthScope %s/%s was changed and has not been judged since", s.Namespace, s.Name)
	}
}

// scopePage returns the page for one scope: its apps by cluster, its culprits and, with wide, its conditions.
func scopePage(s api.Scope, wide bool, now time.Time) *page {
	g := &page{health: scopeHealth(s.ScopeItem)}
	why := ""
	if s.Reason != string(scope.ReasonHealthy) {
		why = " (" + s.Reason + ")"
	}
	g.linef(s.State, "HealthScope %s/%s: %s, %s%s", s.Namespace, s.Name, s.Health, s.State, why)
	if s.Message != "" {
		g.linef("", "%s", s.Message)
	}
	g.linef("", "%d of %d resources are ready, %d pending, %d failed, %d unknown; %s clusters can be seen",
		s.Summary.Ready, s.Summary.Total, s.Summary.Pending, s.Summary.Failed, s.Summary.Unknown, s.ClustersReachable)
	apps := table{columns: []string{"APP", "CLUSTER", stateColumn, "READY", "LAST SEEN"}}
	for _, a := range s.Apps {
		for _, c := range a.Clusters {
			seen := "now"
			if !c.LastSeen.IsZero() {
				seen = age(c.LastSeen, now) + " ago"
			}
			apps.add(c.State, a.Name, c.Name, c.State, fmt.Sprintf("%d/%d", c.Ready, c.Total), seen)
		}
	}
	culprits := table{columns: []string{"APP", "CLUSTER", "RESOURCE", "NAMESPACE", stateColumn, "REASON", "AGE", "CAUSE"}}
	for _, c := range s.Culprits {
		culprits.add(c.State, c.App, c.Cluster, c.Kind+"/"+c.Name, c.Namespace, c.State, c.Reason, age(c.Since, now), c.Cause)
	}
	g.addTable(apps)
	g.addTable(culprits)
	if wide {
		conditions := table{columns: []string{"CONDITION", "STATUS", "REASON", "AGE", "MESSAGE"}}
		for _, c := range s.Conditions {
			conditions.add("", c.Type, c.Status, c.Reason, age(c.LastTransitionTime, now), c.Message)
		}
		g.addTable(conditions)
	}
	g.addStaleNote(s.ScopeItem)
	if s.Truncated {
		g.notef("there are more apps, clusters or culprits than are listed")
	}
	return g
}

// scopeHealth returns the health of a scope. The server reports a scope that was changed and not judged since as unknown.
func scopeHealth(s api.ScopeItem) healthscope.Health {
	switch corev1alpha2.Health(s.Health) {
	case corev1alpha2.Healthy:
		return healthscope.Healthy
	case corev1alpha2.Unhealthy:
		return healthscope.Unhealthy
	case corev1alpha2.UnknownHealth:
	}
	return healthscope.HealthUnknown
}
