package app

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/healthscope/healthscope/controllers/metric"
)

var metricBuildInfo = metric.New(metric.Gauge, "healthscope_build_info",
	"1, with the version of the program, the commit that it was built from, if that is known, and the version of Go that it was built with.", "version", "revision", "goversion")

// buildInfo is the collector of metricBuildInfo.
type buildInfo struct{ version, commit string }

// Describe implements prometheus.Collector.
func (buildInfo) Describe(out chan<- *prometheus.Desc) { out <- metricBuildInfo.Desc }

// Collect implements prometheus.Collector.
func (b buildInfo) Collect(out chan<- prometheus.Metric) {
	out <- metricBuildInfo.Value(1, b.version, b.commit, runtime.Version())
}
