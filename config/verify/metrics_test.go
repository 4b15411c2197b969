package verify

import (
	"regexp"
	"slices"
	"testing"

	"github.com/healthscope/healthscope/controllers/metric"
)

// metricSuffix matches the suffixes that Prometheus adds to the name of a histogram.
var metricSuffix = regexp.MustCompile(`_(bucket|sum|count)$`)

// metrics returns the metrics of the program, by name. The packages that define them are imported with package app.
func metrics() map[string]metric.Metric {
	found := map[string]metric.Metric{}
	for _, m := range metric.All() {
		found[m.Name] = m
	}
	return found
}

// TestEveryMetricHasAnAlert asserts that each metric is used by an alert of the project or by an example on the page of metrics.
// Each example must use a metric that the alerts do not use.
func TestEveryMetricHasAnAlert(t *testing.T) {
	p := readPage(t, "metrics.md").section(t, "Alerts")
	metrics := metrics()
	inAlerts, inExamples := map[string]bool{}, map[string]bool{}
	for _, r := range readRules(t) {
		for _, name := range checkQuery(t, r.Alert, r.Expr, metrics) {
			inAlerts[name] = true
		}
	}
	for _, query := range p.fences("promql") {
		names := checkQuery(t, p.name, query, metrics)
		if !slices.ContainsFunc(names, func(name string) bool { return !inAlerts[name] }) {
			t.Errorf("%s: remove the example %q: the alerts of the project use all of its metrics", p.name, query)
		}
		for _, name := range names {
			inExamples[name] = true
		}
	}
	for name := range metrics {
		if !inAlerts[name] && !inExamples[name] {
			t.Errorf("%s: give an example of an alert on %s", p.name, name)
		}
	}
}
