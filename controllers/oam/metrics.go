package oam

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/healthscope/healthscope/controllers/metric"
)

// The results of a write of health into an Application.
const (
	resultWritten  = "written"
	resultConflict = "conflict"
	resultRefused  = "refused"
)

var metricWrites = metric.New(metric.Counter, "healthscope_application_health_writes_total",
	"Writes of health into [Applications of KubeVela](kubevela.md#health-in-applications), by result: `written`, `conflict` when the Application had changed meanwhile and is tried again, or `refused`.", "result")

// newWrites returns the counter of writes.
func newWrites() *prometheus.CounterVec {
	c := metricWrites.NewCounterVec()
	for _, result := range []string{resultWritten, resultConflict, resultRefused} {
		c.WithLabelValues(result)
	}
	return c
}
