// Package metric owns the descriptions of the program's metrics, once for Prometheus and once for the documentation. The
// controllers and the generator of the documentation call it. It must never hold a value.
package metric

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// Type is the type of a metric.
type Type string

// The types of metrics.
const (
	Gauge     Type = "gauge"
	Counter   Type = "counter"
	Histogram Type = "histogram"
)

// Metric describes a metric.
type Metric struct {
	Name   string
	Type   Type
	Labels []string
	// Meaning is the description in the documentation: Markdown, whose links lead from the folder of the pages.
	Meaning string
	// Help is the description for Prometheus: the meaning as plain text.
	Help string
	Desc *prometheus.Desc
}

// registered are the metrics that the packages of the program describe. Only the initialisation of package variables writes it.
var registered []Metric

// New describes a metric and registers it for All. Call it only to initialise package variables.
func New(t Type, name, meaning string, labels ...string) Metric {
	help := plainText(meaning)
	m := Metric{Name: name, Type: t, Labels: labels, Meaning: meaning, Help: help, Desc: prometheus.NewDesc(name, help, labels, nil)}
	registered = append(registered, m)
	return m
}

// All returns the metrics that the packages of the program describe, by name.
func All() []Metric {
	return slices.SortedFunc(slices.Values(registered), func(a, b Metric) int { return cmp.Compare(a.Name, b.Name) })
}

// Describe sends the descriptions of metrics. It is for the Describe methods of collectors.
func Describe(out chan<- *prometheus.Desc, metrics ...Metric) {
	for _, m := range metrics {
		out <- m.Desc
	}
}

// Value returns the value of a gauge or a counter with the given values of its labels.
func (m Metric) Value(value float64, labels ...string) prometheus.Metric {
	kind := prometheus.GaugeValue
	if m.Type == Counter {
		kind = prometheus.CounterValue
	}
	return prometheus.MustNewConstMetric(m.Desc, kind, value, labels...)
}

// NewCounterVec returns the counters of a metric, one for each combination of the values of its labels.
func (m Metric) NewCounterVec() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.Name, Help: m.Help}, m.Labels)
}

// QuoteList returns the values of a label as a list for the meaning of a metric, such as "`a`, `b` or `c`".
func QuoteList[S ~string](values []S) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = "`" + string(v) + "`"
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// markdownLink matches a link in Markdown.
var markdownLink = regexp.MustCompile(`\[([^\]]+)\]\([^)]*\)`)

// plainText returns Markdown without links and code marks.
func plainText(markdown string) string {
	return strings.ReplaceAll(markdownLink.ReplaceAllString(markdown, "$1"), "`", "")
}
