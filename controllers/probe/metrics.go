package probe

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/healthscope/healthscope/controllers/metric"
	"github.com/healthscope/healthscope/healthscope/probe"
)

// Metrics of probes, computed at scrape time, so that no series outlives its target.
var (
	metricSuccess = metric.New(metric.Gauge, "healthscope_probe_success",
		"1 when the last [probe](probes.md) of a Service was answered with success, 0 when it was not. A Service that could not be asked has no series.", "namespace", "scope", "cluster", "service")
	metricDuration = metric.New(metric.Gauge, "healthscope_probe_duration_seconds",
		"How long that probe took, in seconds.", "namespace", "scope", "cluster", "service")
)

// Describe implements prometheus.Collector.
func (p *Prober) Describe(out chan<- *prometheus.Desc) {
	metric.Describe(out, metricSuccess, metricDuration)
}

// Collect implements prometheus.Collector.
func (p *Prober) Collect(out chan<- prometheus.Metric) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for scope, targets := range p.targets {
		for ref, t := range targets {
			success := 0.0
			switch {
			case t.duration == 0 || t.lastOutcome.Kind != probe.Success && t.lastOutcome.Kind != probe.Failure:
				continue
			case t.lastOutcome.Kind == probe.Success:
				success = 1
			}
			labels := []string{scope.Namespace, scope.Name, ref.Cluster, ref.Name}
			out <- metricSuccess.Value(success, labels...)
			out <- metricDuration.Value(t.duration.Seconds(), labels...)
		}
	}
}
