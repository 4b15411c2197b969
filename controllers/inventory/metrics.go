package inventory

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// requestMetrics count and time the requests to A&AI.
type requestMetrics struct {
	total   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
}

func newRequestMetrics() requestMetrics {
	return requestMetrics{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "healthscope_aai_requests_total",
			Help: "Requests to A&AI, by operation and by the HTTP status of the answer, or error when there was none.",
		}, []string{"operation", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "healthscope_aai_request_duration_seconds",
			Help:    "How long requests to A&AI took, by operation.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 15),
		}, []string{"operation"}),
	}
}

func (m requestMetrics) observe(operation, code string, took time.Duration) {
	m.total.WithLabelValues(operation, code).Inc()
	m.seconds.WithLabelValues(operation).Observe(took.Seconds())
}
