package verify

import (
	"go/ast"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/healthscope/healthscope/aai"
)

var (
	metricName = regexp.MustCompile(`\bhealthscope_[a-z0-9_]+`)
	// metricSuffix is what Prometheus adds to the name of a histogram.
	metricSuffix = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// metric is a metric as the code makes it.
type metric struct {
	kind   string
	labels []string
}

// metricTypes are the types of the metrics that functions of the Prometheus library make. NewDesc is used for gauges only.
var metricTypes = map[string]string{
	"NewDesc": "gauge", "NewGauge": "gauge", "NewGaugeVec": "gauge", "NewGaugeFunc": "gauge",
	"NewCounter": "counter", "NewCounterVec": "counter", "NewCounterFunc": "counter",
	"NewHistogram": "histogram", "NewHistogramVec": "histogram",
}

// metricsInSource returns the metrics that the code makes, by name.
func metricsInSource(t *testing.T) map[string]metric {
	t.Helper()
	files := sources(t, "controllers", "aai", "healthscope")
	found := map[string]metric{}
	inspect(files, func(c *ast.CallExpr) {
		if f, ok := c.Fun.(*ast.SelectorExpr); ok && metricTypes[f.Sel.Name] != "" {
			if name, labels := describedBy(c); name != "" {
				found[name] = metric{kind: metricTypes[f.Sel.Name], labels: labels}
			}
		}
	})
	inspect(files, func(s *ast.SelectorExpr) {
		if s.Sel.Name == "CounterValue" || s.Sel.Name == "UntypedValue" {
			t.Errorf("prometheus.%s is used: tell this test which metric is no gauge", s.Sel.Name)
		}
	})
	inspect(files, func(l *ast.BasicLit) {
		if word, ok := text(l); ok && isMetric(word) && found[word].kind == "" {
			t.Errorf("tell this test how the metric %q is made", word)
		}
	})
	return found
}

func isMetric(word string) bool { return word != "" && metricName.FindString(word) == word }

// describedBy returns name and labels of the metric that a call makes: the one name of a metric and the one list of strings in it.
func describedBy(call *ast.CallExpr) (name string, labels []string) {
	ast.Inspect(call, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if word, ok := text(n); ok && isMetric(word) {
				name = word
			}
		case *ast.CompositeLit:
			if list, ok := n.Type.(*ast.ArrayType); ok && isIdent(list.Elt, "string") {
				labels = stringsOf(n.Elts)
			}
		}
		return true
	})
	return name, labels
}

func isIdent(e ast.Expr, name string) bool {
	i, ok := e.(*ast.Ident)
	return ok && i.Name == name
}

func stringsOf(elements []ast.Expr) []string {
	var found []string
	for _, e := range elements {
		if word, ok := text(e); ok {
			found = append(found, word)
		}
	}
	return found
}

func TestMetricsAreDocumented(t *testing.T) {
	p := readPage(t, "metrics.md")
	rows := p.rows(t, "metric")
	metrics := metricsInSource(t)
	p.documents(t, "metric", slices.Sorted(maps.Keys(metrics)), firstCodes(rows, "metric"))
	for _, r := range rows {
		m := metrics[code(r["metric"])]
		if r["type"] != m.kind || !slices.Equal(codes(r["labels"]), m.labels) {
			t.Errorf("%s: %s is a %s with labels %q; the row says %s with %s", p.name, r["metric"], m.kind, m.labels, r["type"], r["labels"])
		}
		if r["meaning"] == "" {
			t.Errorf("%s: say what %s means", p.name, r["metric"])
		}
	}
}

func TestOperationsOnTheInventoryAreDocumented(t *testing.T) {
	p := readPage(t, "metrics.md")
	for _, r := range p.rows(t, "metric") {
		if code(r["metric"]) != "healthscope_aai_requests_total" {
			continue
		}
		for name, operation := range constants(sources(t, "aai"), "Op") {
			if !slices.Contains(codes(r["meaning"]), operation) {
				t.Errorf("%s: name the operation %q (%s) in the row of %s", p.name, operation, name, r["metric"])
			}
		}
		return
	}
	t.Errorf("%s: add a row for the requests that count operations such as %q", p.name, aai.OpPut)
}

// TestEveryMetricHasAnAlert: one that comes with the project, or an example on the page of metrics, and not both.
func TestEveryMetricHasAnAlert(t *testing.T) {
	p := readPage(t, "metrics.md").section(t, "Alerts")
	metrics := metricsInSource(t)
	var alerts, examples strings.Builder
	for _, r := range readRules(t) {
		alerts.WriteString(r.Expr + "\n")
	}
	for _, query := range p.fences("promql") {
		checkQuery(t, p.name, query, metrics)
		examples.WriteString(query)
	}
	uses := func(queries, name string) bool {
		return slices.ContainsFunc(metricName.FindAllString(queries, -1), func(word string) bool {
			return word == name || metricSuffix.ReplaceAllString(word, "") == name
		})
	}
	for name := range metrics {
		if !uses(alerts.String(), name) && !uses(examples.String(), name) {
			t.Errorf("%s: give an example of an alert on %s", p.name, name)
		}
	}
	for _, query := range p.fences("promql") {
		names := metricName.FindAllString(query, -1)
		if !slices.ContainsFunc(names, func(name string) bool { return !uses(alerts.String(), name) }) {
			t.Errorf("%s: remove the example %q: the alerts of the project use all of its metrics", p.name, query)
		}
	}
}
