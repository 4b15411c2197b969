package commands

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/yaml"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/api"
	"github.com/healthscope/healthscope/healthscope/status"
)

// statusPrinter prints the responses for a target.
type statusPrinter struct {
	target target
	format string
	out    io.Writer
	// terminal is true if out is a terminal, and colour if the output may have colors.
	terminal, colour bool
	// printed is true after the first output.
	printed bool
}

func newStatusPrinter(t target, format string, colour bool, out io.Writer) *statusPrinter {
	return &statusPrinter{target: t, format: format, out: out, terminal: isTerminal(out), colour: colour}
}

// text returns a response as it is printed, and its health. A document without health counts as healthy.
func (p *statusPrinter) text(body []byte, now time.Time) (text string, health healthscope.Health, err error) {
	page, err := p.page(body, now)
	if err != nil {
		return "", "", err
	}
	switch p.format {
	case formatJSON:
		return string(bytes.TrimSpace(body)) + "\n", page.health, nil
	case formatYAML:
		data, err := yaml.JSONToYAML(body)
		return string(data), page.health, err
	}
	return page.text(p.colour), page.health, nil
}

// printNext prints a text after the previous output. A table on a terminal replaces the previous output.
func (p *statusPrinter) printNext(text string) error {
	switch {
	case p.format == formatYAML:
		text = "---\n" + text
	case p.format == formatTable && p.terminal:
		text = "\x1b[H\x1b[2J" + text
	case p.format == formatTable && p.printed:
		text = "\n" + text
	}
	p.printed = true
	if _, err := io.WriteString(p.out, text); err != nil {
		return errors.Wrap(errOutput, err.Error())
	}
	return nil
}

// page returns the page for a response.
func (p *statusPrinter) page(body []byte, now time.Time) (*page, error) {
	var err error
	switch p.target.kind {
	case targetScopes:
		var list api.ScopeList
		if err = json.Unmarshal(body, &list); err == nil {
			return listPage(list), nil
		}
	case targetScope:
		var s api.Scope
		if err = json.Unmarshal(body, &s); err == nil {
			return scopePage(s, p.format == formatWide, now), nil
		}
	case targetGroup, targetCluster:
		var d status.Document
		if err = json.Unmarshal(body, &d); err == nil {
			return documentPage(p.target, d, now), nil
		}
	}
	return nil, errors.Wrap(err, "the answer is not a status document")
}

// page is the content of a response in a form for printing.
type page struct {
	health healthscope.Health
	lines  []textLine
	tables []table
	// notes are printed below the tables. notedTimes are the times that they mention.
	notes, notedTimes []string
}

// textLine is a line of text, and the state that determines its color.
type textLine struct{ text, state string }

// text returns the page as it is printed.
func (g *page) text(colour bool) string {
	var b strings.Builder
	for _, l := range g.lines {
		fmt.Fprintln(&b, colorize(l.text, l.state, colour))
	}
	for _, t := range g.tables {
		if b.Len() > 0 {
			b.WriteString("\n")
		}
		t.write(&b, colour)
	}
	for i, note := range g.notes {
		if i == 0 && b.Len() > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintln(&b, "! "+note)
	}
	return b.String()
}

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
	for _, c := range []struct {
		name   string
		counts map[string]int
	}{{"rsync", d.RsyncStatus}, {"clusters", d.ClusterStatus}} {
		if len(c.counts) > 0 {
			var words []string
			for _, word := range slices.Sorted(maps.Keys(c.counts)) {
				words = append(words, fmt.Sprintf("%d %s", c.counts[word], word))
			}
			g.linef("", "%s: %s", c.name, strings.Join(words, ", "))
		}
	}
	g.addResources(d, now)
	g.addNotes(d, now)
	return g
}

// documentHealth returns the health of a document.
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
		text += " for " + humanSeconds(*h.Age)
	}
	if h.Message != "" {
		text += ": " + h.Message
	}
	return text
}

func humanSeconds(seconds int64) string {
	return duration.HumanDuration(time.Duration(max(seconds, 0)) * time.Second)
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
				age := ""
				if h.Age != nil {
					age = humanSeconds(*h.Age)
				}
				t.add(h.State, a.Name, cluster, name, r.Namespace, h.State, h.Reason, age, r.RsyncStatus, cmp.Or(h.Cause, h.Message))
			}
			g.addFreshness(fmt.Sprintf("%s in %s", a.Name, cluster), c.Freshness, c.Health, now)
		}
	}
	if len(t.rows) > 0 {
		g.tables = append(g.tables, t)
	}
}

// addFreshness adds a note about the age of something that is not current.
func (g *page) addFreshness(what string, f status.Freshness, h *status.Health, now time.Time) {
	age := "at an unknown time"
	if at, err := time.Parse(time.RFC3339Nano, f.LastSeen); err == nil {
		age = duration.HumanDuration(max(now.Sub(at), 0)) + " ago"
	}
	switch {
	case f.Source != "":
		g.notef("%s: from the context, where it was saved %s", what, age)
		g.notedTimes = append(g.notedTimes, f.LastSeen)
	case f.LastSeen != "" && (h == nil || h.State == string(healthscope.Unknown)):
		g.notef("%s: seen last %s", what, age)
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
		g.notef("what is oldest in this answer was known last %s ago", duration.HumanDuration(now.Sub(at)))
	}
	if u := d.Unmatched; u != nil {
		for _, f := range []struct {
			name   string
			values []string
		}{{"app", u.Apps}, {"cluster", u.Clusters}, {"resource", u.Resources}} {
			if len(f.values) > 0 {
				g.notef("--%s matches nothing: %s", f.name, strings.Join(f.values, ", "))
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

// isOld reports whether a time, in RFC 3339, is more than oldAge ago.
func isOld(lastSeen string, now time.Time) bool {
	at, err := time.Parse(time.RFC3339Nano, lastSeen)
	return err == nil && now.Sub(at) > oldAge
}

func (g *page) notef(format string, args ...any) {
	g.notes = append(g.notes, printable(fmt.Sprintf(format, args...)))
}

func (g *page) linef(state, format string, args ...any) {
	g.lines = append(g.lines, textLine{printable(fmt.Sprintf(format, args...)), state})
}
