package commands

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/status"
)

// documentPage returns the page for the document of a group or a cluster.
func documentPage(t target, d status.Document, now time.Time) *page {
	g := &page{health: documentHealth(d.Health)}
	if d.Instances != nil {
		for _, id := range d.Instances {
			g.linef("", "%s", id)
		}
		return g
	}
	g.linef("", "%s: %s", t, cmp.Or(d.Status, "not instantiated"))
	if h := d.Health; h != nil {
		g.linef(h.State, "%s", describeHealth(h))
		if n := h.Resources; n != nil {
			g.linef("", "%d of %d resources are ready, %d pending, %d failed, %d unknown", n.Ready, n.Total, n.Pending, n.Failed, n.Unknown)
		}
	}
	g.addCounts("rsync", d.RsyncStatus)
	g.addCounts("clusters", d.ClusterStatus)
	g.addResources(d, now)
	g.addNotes(d, now)
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

// describeHealth describes a state with its reason, age and message.
func describeHealth(h *status.Health) string {
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
	return text
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
func (g *page) addResources(d status.Document, now time.Time) {
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
			g.addFreshness(fmt.Sprintf("%s in %s", a.Name, cluster), c.Freshness, c.Health, now)
		}
	}
	g.addTable(t)
}

// addFreshness adds a note about the age of something that is not current.
func (g *page) addFreshness(what string, f status.Freshness, h *status.Health, now time.Time) {
	seen := "at an unknown time"
	if at, err := time.Parse(time.RFC3339Nano, f.LastSeen); err == nil {
		seen = age(at, now) + " ago"
	}
	switch {
	case f.Source != "":
		g.notef("%s: from the context, where it was saved %s", what, seen)
		g.notedTimes = append(g.notedTimes, f.LastSeen)
	case f.LastSeen != "" && (h == nil || h.State == string(healthscope.Unknown)):
		g.notef("%s: seen last %s", what, seen)
		g.notedTimes = append(g.notedTimes, f.LastSeen)
	}
	if f.Truncated {
		g.notef("%s: there are more objects than are listed", what)
	}
}

// oldAge is the age from which a fact gets a note. A healthy cluster may send nothing for a minute, and clocks may
// differ.
const oldAge = 2 * time.Minute

// addNotes adds the other notes about a document.
func (g *page) addNotes(d status.Document, now time.Time) {
	if len(d.Apps) == 0 {
		g.addFreshness("the answer", d.Freshness, d.Health, now)
	}
	if isOld(d.LastSeen, now) && !slices.Contains(g.notedTimes, d.LastSeen) { // Such as the contexts, while etcd does not answer.
		at, _ := time.Parse(time.RFC3339Nano, d.LastSeen)
		g.notef("what is oldest in this answer was known last %s ago", age(at, now))
	}
	if u := d.Unmatched; u != nil {
		g.addUnmatched("app", u.Apps)
		g.addUnmatched("cluster", u.Clusters)
		g.addUnmatched("resource", u.Resources)
		if u.Instance != "" {
			g.notef("the context of instance %s is not kept any more", u.Instance)
		}
	}
	for _, problem := range d.Problems {
		g.notef("%s", problem)
	}
}

func (g *page) addUnmatched(flag string, values []string) {
	if len(values) > 0 {
		g.notef("--%s matches nothing: %s", flag, strings.Join(values, ", "))
	}
}

// isOld reports whether a time, in RFC 3339, is more than oldAge ago.
func isOld(lastSeen string, now time.Time) bool {
	at, err := time.Parse(time.RFC3339Nano, lastSeen)
	return err == nil && now.Sub(at) > oldAge
}
