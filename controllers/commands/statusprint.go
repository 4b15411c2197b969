package commands

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/scope"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/api"
	"github.com/healthscope/healthscope/healthscope/status"
)

// page is a status as text: lines, tables and notes.
type page struct {
	colour bool
	now    time.Time
	health healthscope.Health

	lines, notes strings.Builder
	tables       []string
	// noted are the times that the notes mention.
	noted []string
}

// String returns the page as it is printed.
func (g *page) String() string {
	sections := slices.Concat([]string{g.lines.String()}, g.tables, []string{g.notes.String()})
	return strings.Join(slices.DeleteFunc(sections, func(s string) bool { return s == "" }), "\n")
}

// linef adds a line in the color of a state.
func (g *page) linef(state, format string, args ...any) {
	text := printable(fmt.Sprintf(format, args...))
	if g.colour {
		text = colorize(text, state)
	}
	fmt.Fprintln(&g.lines, text)
}

func (g *page) notef(format string, args ...any) {
	fmt.Fprintln(&g.notes, "! "+printable(fmt.Sprintf(format, args...)))
}

// addTable adds a table, unless it has no rows.
func (g *page) addTable(t table) {
	if len(t.rows) > 0 {
		g.tables = append(g.tables, t.render(g.colour))
	}
}

func (s *statusCommand) newPage(health healthscope.Health) *page {
	return &page{colour: s.colour, now: time.Now(), health: health}
}

// scopesPage returns the page for a list of scopes. With --output wide it has more columns, for which the scopes must be complete.
func (s *statusCommand) scopesPage(scopes []api.Scope) *page {
	g := s.newPage(healthscope.Healthy)
	t := table{columns: []string{"NAMESPACE", "NAME", healthColumn, stateColumn, "READY", "CLUSTERS", "REASON", "FIRST CULPRIT"}}
	if s.output == formatWide {
		t.columns = append(t.columns, "PENDING", "FAILED", "UNKNOWN", "MESSAGE")
	}
	for i := range scopes {
		o := &scopes[i]
		g.health = healthscope.WorseHealth(g.health, scopeHealth(o.ScopeItem))
		cells := []string{o.Namespace, o.Name, o.Health, o.State, o.ResourcesReady, o.ClustersReachable, o.Reason, o.FirstCulprit}
		if s.output == formatWide {
			cells = append(cells, strconv.Itoa(o.Summary.Pending), strconv.Itoa(o.Summary.Failed), strconv.Itoa(o.Summary.Unknown), o.Message)
		}
		t.add(o.State, cells...)
		g.addStaleNote(o.ScopeItem)
	}
	if len(scopes) == 0 {
		g.linef("", "There are no HealthScopes.")
	}
	g.addTable(t)
	return g
}

// itemsPage returns the page for the items of a list from the server, which are not complete scopes.
func (s *statusCommand) itemsPage(items []api.ScopeItem) *page {
	scopes := make([]api.Scope, len(items))
	for i := range items {
		scopes[i].ScopeItem = items[i]
	}
	return s.scopesPage(scopes)
}

func (g *page) addStaleNote(o api.ScopeItem) {
	if o.Stale {
		g.notef("HealthScope %s/%s was changed and has not been judged since", o.Namespace, o.Name)
	}
}

// scopePage returns the page for one scope: its apps by cluster, its culprits and, with --output wide, its conditions.
func (s *statusCommand) scopePage(o api.Scope) *page {
	g := s.newPage(scopeHealth(o.ScopeItem))
	why := ""
	if o.Reason != string(scope.ReasonHealthy) {
		why = " (" + o.Reason + ")"
	}
	g.linef(o.State, "HealthScope %s/%s: %s, %s%s", o.Namespace, o.Name, o.Health, o.State, why)
	if o.Message != "" {
		g.linef("", "%s", o.Message)
	}
	g.linef("", "%d of %d resources are ready, %d pending, %d failed, %d unknown; %s clusters can be seen",
		o.Summary.Ready, o.Summary.Total, o.Summary.Pending, o.Summary.Failed, o.Summary.Unknown, o.ClustersReachable)
	apps := table{columns: []string{"APP", "CLUSTER", stateColumn, "READY", "LAST SEEN"}}
	for _, a := range o.Apps {
		for _, c := range a.Clusters {
			seen := "now"
			if !c.LastSeen.IsZero() {
				seen = age(c.LastSeen, g.now) + " ago"
			}
			apps.add(c.State, a.Name, c.Name, c.State, fmt.Sprintf("%d/%d", c.Ready, c.Total), seen)
		}
	}
	culprits := table{columns: []string{"APP", "CLUSTER", "RESOURCE", "NAMESPACE", stateColumn, "REASON", "AGE", "CAUSE"}}
	for _, c := range o.Culprits {
		culprits.add(c.State, c.App, c.Cluster, c.Kind+"/"+c.Name, c.Namespace, c.State, c.Reason, age(c.Since, g.now), c.Cause)
	}
	conditions := table{columns: []string{"CONDITION", "STATUS", "REASON", "AGE", "MESSAGE"}}
	if s.output == formatWide {
		for _, c := range o.Conditions {
			conditions.add("", c.Type, c.Status, c.Reason, age(c.LastTransitionTime, g.now), c.Message)
		}
	}
	g.addTable(apps)
	g.addTable(culprits)
	g.addTable(conditions)
	g.addStaleNote(o.ScopeItem)
	if o.Truncated {
		g.notef("there are more apps, clusters or culprits than are listed")
	}
	return g
}

// scopeHealth returns the health of a scope. The server reports a scope that was changed and not judged since as unknown.
func scopeHealth(o api.ScopeItem) healthscope.Health {
	switch corev1alpha2.Health(o.Health) {
	case corev1alpha2.Healthy:
		return healthscope.Healthy
	case corev1alpha2.Unhealthy:
		return healthscope.Unhealthy
	case corev1alpha2.UnknownHealth:
	}
	return healthscope.HealthUnknown
}

// documentPage returns the page for the document of a group or a cluster.
func (s *statusCommand) documentPage(d status.Document) *page {
	g := s.newPage(documentHealth(d.Health))
	if d.Instances != nil {
		for _, id := range d.Instances {
			g.linef("", "%s", id)
		}
		return g
	}
	g.linef("", "%s: %s", s.target, cmp.Or(d.Status, "not instantiated"))
	if h := d.Health; h != nil {
		text := h.State
		if h.Reason != "" {
			text += " (" + h.Reason + ")"
		}
		if h.Age != nil {
			text += " for " + healthAge(h)
		}
		if h.Message != "" {
			text += ": " + h.Message
		}
		g.linef(h.State, "%s", text)
		if n := h.Resources; n != nil {
			g.linef("", "%d of %d resources are ready, %d pending, %d failed, %d unknown", n.Ready, n.Total, n.Pending, n.Failed, n.Unknown)
		}
	}
	g.addCounts("rsync", d.RsyncStatus)
	g.addCounts("clusters", d.ClusterStatus)
	g.addResources(d)
	g.addNotes(d)
	return g
}

// documentHealth returns the health of a document. A document without health counts as healthy.
func documentHealth(h *status.Health) healthscope.Health {
	switch {
	case h == nil || h.State == string(healthscope.Ready):
		return healthscope.Healthy
	case h.State == string(healthscope.Unknown):
		return healthscope.HealthUnknown
	}
	return healthscope.Unhealthy
}

// healthAge returns how long a health has lasted, or an empty string if that is unknown.
func healthAge(h *status.Health) string {
	if h.Age == nil {
		return ""
	}
	return duration.HumanDuration(time.Duration(max(*h.Age, 0)) * time.Second)
}

// addCounts adds a line with the numbers of resources by status.
func (g *page) addCounts(name string, counts map[string]int) {
	var words []string
	for _, word := range slices.Sorted(maps.Keys(counts)) {
		words = append(words, fmt.Sprintf("%d %s", counts[word], word))
	}
	if len(words) > 0 {
		g.linef("", "%s: %s", name, strings.Join(words, ", "))
	}
}

// addResources adds the table of a document's resources, in the order app, cluster, resource.
func (g *page) addResources(d status.Document) {
	t := table{columns: []string{"APP", "CLUSTER", "RESOURCE", "RSYNC", "PRESENT"}}
	if d.Health != nil {
		t.columns = []string{"APP", "CLUSTER", "RESOURCE", "NAMESPACE", stateColumn, "REASON", "AGE", "RSYNC", "MESSAGE"}
	}
	for _, a := range d.Apps {
		for _, c := range a.Clusters {
			cluster := c.Name
			if c.Provider != "" {
				cluster = c.Provider + "+" + c.Name
			}
			for _, r := range c.Resources {
				name := cmp.Or(r.GVK.Kind, "?") + "/" + r.Name
				if d.Health == nil {
					t.add("", a.Name, cluster, name, r.RsyncStatus, string(r.ClusterStatus))
					continue
				}
				h := cmp.Or(r.Health, &status.Health{State: string(healthscope.Unknown)})
				t.add(h.State, a.Name, cluster, name, r.Namespace, h.State, h.Reason, healthAge(h), r.RsyncStatus, cmp.Or(h.Cause, h.Message))
			}
			g.addFreshness(a.Name+" in "+cluster, c.Freshness, c.Health)
		}
	}
	g.addTable(t)
}

// addFreshness adds a note about the age of something that is not current.
func (g *page) addFreshness(what string, f status.Freshness, h *status.Health) {
	seen := "at an unknown time"
	if at, err := time.Parse(time.RFC3339Nano, f.LastSeen); err == nil {
		seen = age(at, g.now) + " ago"
	}
	switch {
	case f.Source != "":
		g.notef("%s: from the context, where it was saved %s", what, seen)
		g.noted = append(g.noted, f.LastSeen)
	case f.LastSeen != "" && (h == nil || h.State == string(healthscope.Unknown)):
		g.notef("%s: seen last %s", what, seen)
		g.noted = append(g.noted, f.LastSeen)
	}
	if f.Truncated {
		g.notef("%s: there are more objects than are listed", what)
	}
}

// addNotes adds the other notes about a document.
func (g *page) addNotes(d status.Document) {
	if len(d.Apps) == 0 {
		g.addFreshness("the answer", d.Freshness, d.Health)
	}
	if at, old := isOld(d.LastSeen, g.now); old && !slices.Contains(g.noted, d.LastSeen) { // Such as the contexts, while etcd does not answer.
		g.notef("what is oldest in this answer was known last %s ago", age(at, g.now))
	}
	if u := d.Unmatched; u != nil {
		for _, unmatched := range []struct {
			flag   string
			values []string
		}{{"app", u.Apps}, {"cluster", u.Clusters}, {"resource", u.Resources}} {
			if len(unmatched.values) > 0 {
				g.notef("--%s matches nothing: %s", unmatched.flag, strings.Join(unmatched.values, ", "))
			}
		}
		if u.Instance != "" {
			g.notef("the context of instance %s is not kept any more", u.Instance)
		}
	}
	for _, problem := range d.Problems {
		g.notef("%s", problem)
	}
}

// oldAge is the age from which a fact gets a note. A healthy cluster may send nothing for a minute, and clocks may differ.
const oldAge = 2 * time.Minute

// isOld parses a time in RFC 3339, and reports whether it is more than oldAge ago.
func isOld(lastSeen string, now time.Time) (time.Time, bool) {
	at, err := time.Parse(time.RFC3339Nano, lastSeen)
	return at, err == nil && now.Sub(at) > oldAge
}
