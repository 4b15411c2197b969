package observed

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// alertTimeout is how long a test waits for an alert to fire or to stop.
const alertTimeout = 75 * time.Second

// questions are the queries that must return a result at some time during the suite, by a description of their use.
type questions map[string]string

// allQuestions returns the queries of the dashboard, and the selectors in the expressions of the alerts. It leaves out those in
// uncaused.
func allQuestions() questions {
	GinkgoHelper()
	all := questions{}
	text, err := os.ReadFile(filepath.Join(root, "config", "grafana", "healthscope.json"))
	Expect(err).NotTo(HaveOccurred())
	dashboard, err := ReadDashboard(text)
	Expect(err).NotTo(HaveOccurred())
	for _, p := range dashboard.Panels {
		for _, t := range p.Targets {
			all[fmt.Sprintf("panel %q, query %s", p.Title, t.RefID)] = Fill(t.Expr, "10s")
		}
	}
	for _, v := range dashboard.Templating.List {
		if query := v.Selected(); query != "" {
			all[fmt.Sprintf("variable %q", v.Name)] = Fill(query, "10s")
		}
	}
	for _, g := range shipped().Groups {
		for _, r := range g.Rules {
			selectors, err := Selectors(r.Expr)
			Expect(err).NotTo(HaveOccurred())
			for _, s := range selectors {
				all[fmt.Sprintf("alert %s, %s", r.Alert, s)] = s.String()
			}
		}
	}
	for _, question := range uncaused {
		Expect(all).To(HaveKey(question))
		delete(all, question)
	}
	return all
}

// uncaused holds, by alert, the questions without a result in this suite, because nothing floods the hub or competes for a
// status. The unit tests of the rules make these alerts fire.
var uncaused = map[string]string{
	"HealthScopeClusterOverBudget": `alert HealthScopeClusterOverBudget, healthscope_cluster_state{state="OverBudget"}`,
	"HealthScopeStatusConflict":    "alert HealthScopeStatusConflict, healthscope_scope_status_conflict",
}

// ask sends the open questions to Prometheus, and removes those that have a result now.
func (q questions) ask(ctx context.Context) {
	GinkgoHelper()
	for _, what := range slices.Sorted(maps.Keys(q)) {
		series, err := prometheus.Query(ctx, q[what])
		Expect(err).NotTo(HaveOccurred(), what)
		if len(series) > 0 {
			delete(q, what)
		}
	}
}

// open returns the questions without a result so far.
func (q questions) open() []string { return slices.Sorted(maps.Keys(q)) }

// alert is an alert for which a test waits: its name, and labels that it has, as name=value.
type alert struct {
	name   string
	labels []string
}

func (a alert) String() string { return fmt.Sprintf("%s%v", a.name, a.labels) }

// in returns the number of firing alerts that match the alert.
func (a alert) in(firing map[string][]Alert) int {
	n := 0
	for _, f := range firing[a.name] {
		fits := true
		for _, l := range a.labels {
			name, value, _ := strings.Cut(l, "=")
			fits = fits && f.Labels[name] == value
		}
		if fits {
			n++
		}
	}
	return n
}

// fire waits until each of these alerts fires exactly once, and then asks the open questions.
func fire(ctx context.Context, open questions, alerts ...alert) {
	GinkgoHelper()
	missing := func() ([]string, error) {
		firing, err := prometheus.Firing(ctx)
		var missing []string
		for _, a := range alerts {
			if n := a.in(firing); n != 1 {
				missing = append(missing, fmt.Sprintf("%s, %d times", a, n))
			}
		}
		return missing, err
	}
	Eventually(ctx, missing).WithTimeout(alertTimeout).Should(BeEmpty(), "alerts that do not fire")
	open.ask(ctx)
}

// stop waits until none of these alerts fires.
func stop(ctx context.Context, alerts ...alert) {
	GinkgoHelper()
	left := func() ([]string, error) {
		firing, err := prometheus.Firing(ctx)
		var left []string
		for _, a := range alerts {
			if a.in(firing) > 0 {
				left = append(left, a.String())
			}
		}
		return left, err
	}
	Eventually(ctx, left).WithTimeout(alertTimeout).Should(BeEmpty(), "alerts that do not stop")
}
