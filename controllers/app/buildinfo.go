package app

import (
	"runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/healthscope/healthscope/controllers/metric"
)

var metricBuildInfo = metric.New(metric.Gauge, "healthscope_build_info",
	"1, with the version of the program, the commit that it was built from, if that is known, and the version of Go that it was built with.", "version", "revision", "goversion")

// buildInfo is the version of the program, as a collector of metrics.
type buildInfo string

// Describe implements prometheus.Collector.
func (buildInfo) Describe(out chan<- *prometheus.Desc) { out <- metricBuildInfo.Desc }

// Collect implements prometheus.Collector.
func (v buildInfo) Collect(out chan<- prometheus.Metric) {
	revision := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
	}
	out <- metricBuildInfo.Value(1, string(v), revision, runtime.Version())
}
