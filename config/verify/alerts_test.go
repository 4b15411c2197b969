package verify

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/healthscope/healthscope/controllers/metric"
	"github.com/healthscope/healthscope/e2e/observed"
)

// runbooks is the URL of the runbooks in the alerts.
const runbooks = source + "config/docs/runbooks.md#"

var (
	// libraryMetric matches the metrics of the libraries, as metrics.md names them, and the metrics that Prometheus itself
	// generates.
	libraryMetric = regexp.MustCompile(`^(controller_runtime|workqueue|rest_client|leader_election|go|process)_\w+$|^(up|ALERTS)$`)
	// targetLabels are the labels that a series has from its target or from Prometheus.
	targetLabels = []string{"__name__", "job", "instance", "le"}
)

// readRules returns the alerts.
func readRules(t *testing.T) []observed.Rule {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "config", "prometheus", "rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	rules, err := observed.ReadRules(data)
	if err != nil {
		t.Fatal(err)
	}
	var all []observed.Rule
	for _, g := range rules.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

// checkQuery reports names in a query that do not exist. It returns the metrics of the program that the query uses.
func checkQuery(t *testing.T, where, query string, metrics map[string]metric.Metric) (names []string) {
	t.Helper()
	selectors, err := observed.Selectors(query)
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return nil
	}
	if len(selectors) == 0 {
		t.Errorf("%s: the query %q asks for no metric", where, query)
	}
	for _, s := range selectors {
		m, ok := metrics[s.Name]
		if base := metrics[metricSuffix.ReplaceAllString(s.Name, "")]; !ok && base.Type == metric.Histogram {
			m, ok = base, true
		}
		if !ok {
			if !libraryMetric.MatchString(s.Name) {
				t.Errorf("%s: the metric %q does not exist", where, s.Name)
			}
			continue
		}
		names = append(names, m.Name)
		for _, match := range s.LabelMatchers {
			if !slices.Contains(m.Labels, match.Name) && !slices.Contains(targetLabels, match.Name) {
				t.Errorf("%s: the metric %q has no label %q", where, s.Name, match.Name)
			}
		}
	}
	return names
}

func TestAlertsSayWhatToDo(t *testing.T) {
	metrics := metrics()
	page := readPage(t, "runbooks.md")
	for _, r := range readRules(t) {
		checkQuery(t, r.Alert, r.Expr, metrics)
		if !strings.HasPrefix(r.Alert, "HealthScope") || r.For == "" {
			t.Errorf("%s: an alert is called HealthScope... and has a time in \"for\"", r.Alert)
		}
		if !slices.Contains([]string{"critical", "warning", "info"}, r.Labels["severity"]) {
			t.Errorf("%s: the severity is %q, want critical, warning or info", r.Alert, r.Labels["severity"])
		}
		if got := slices.Sorted(maps.Keys(r.Annotations)); !slices.Equal(got, []string{"description", "runbook_url", "summary"}) {
			t.Errorf("%s: the annotations are %q", r.Alert, got)
		}
		anchor, ok := strings.CutPrefix(r.Annotations["runbook_url"], runbooks)
		if !ok || anchor != strings.ToLower(r.Alert) || !page.anchors()[anchor] {
			t.Errorf("%s: the runbook %q does not exist", r.Alert, r.Annotations["runbook_url"])
		}
	}
}

func TestTheAlertsAreOnTheirPage(t *testing.T) {
	page := readPage(t, "runbooks.md")
	severities, sections := map[string]string{}, []string{}
	for _, r := range readRules(t) {
		severities[r.Alert] = r.Labels["severity"]
	}
	for _, l := range page.lines() {
		if match := heading.FindStringSubmatch(l.text); match != nil && !l.fenced && strings.HasPrefix(match[2], "HealthScope") {
			sections = append(sections, match[2])
		}
	}
	names, rows := slices.Sorted(maps.Keys(severities)), page.rows(t, "alert")
	page.documents(t, "alert", names, sections)
	page.documents(t, "alert", names, firstCodes(rows, "alert"))
	for _, r := range rows {
		if want := severities[code(r["alert"])]; want != r["severity"] {
			t.Errorf("%s: %s is %s; the row says %s", page.name, r["alert"], want, r["severity"])
		}
	}
}

// promtool runs promtool in the folder of the rules.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), observed.Program(t, "promtool"), args...)
	cmd.Dir = filepath.Join(root, "config", "prometheus")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func TestAlertsByPromtool(t *testing.T) {
	if testing.Short() {
		t.Skip("promtool evaluates the rules over hours of samples, which takes several seconds; make test runs it")
	}
	promtool(t, "check", "rules", "rules.yaml")
	promtool(t, "test", "rules", "rules_test.yaml")
}
