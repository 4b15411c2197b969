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

// all are the metrics that the packages of the program describe. Only the initialisation of their variables writes it.
var all []Metric

// New describes a metric. It is for variables of packages, so that All returns the metric.
func New(t Type, name, meaning string, labels ...string) Metric {
	help := plain(meaning)
	m := Metric{Name: name, Type: t, Labels: labels, Meaning: meaning, Help: help, Desc: prometheus.NewDesc(name, help, labels, nil)}
	all = append(all, m)
	return m
}

// All returns the metrics that the packages of the program describe, by name.
func All() []Metric {
	return slices.SortedFunc(slices.Values(all), func(a, b Metric) int { return cmp.Compare(a.Name, b.Name) })
}

// Describe sends the descriptions of metrics, for the method of that name of a collector.
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

// Words returns the values of a label as they are listed in the meaning of a metric.
func Words[S ~string](values []S) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = "`" + string(v) + "`"
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// link matches a link in Markdown.
var link = regexp.MustCompile(`\[([^\]]+)\]\([^)]*\)`)

// plain returns Markdown without links and marks of code.
func plain(markdown string) string {
	return strings.ReplaceAll(link.ReplaceAllString(markdown, "$1"), "`", "")
}
