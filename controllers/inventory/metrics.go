package inventory

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/sync"
	"github.com/healthscope/healthscope/controllers/metric"
)

// Metrics that are counted when they are asked for.
var (
	metricObjects = metric.New(metric.Gauge, "healthscope_aai_objects",
		"The resources that go to A&AI, by the state of their synchronization: `synced`, `pending` or `failed`. A state without resources has no series.", "state")
	metricModules = metric.New(metric.Gauge, "healthscope_aai_vf_modules",
		"The modules of VNFs whose [`operational-status`](inventory.md#the-operational-status-of-modules) goes to A&AI, by the state of their synchronization: `synced`, `pending` or `failed`. A state without modules has no series.", "state")
	metricRejected = metric.New(metric.Gauge, "healthscope_aai_rejected",
		"The objects, and the modules of VNFs, that A&AI has rejected: `rejected`, or `conflict` when an object of another owner has the place. A cause without objects has no series.", "cause")
	metricSkipped = metric.New(metric.Gauge, "healthscope_aai_deletions_held",
		"The objects in A&AI that should be deleted and are not: because of the `policy`, because a `source` does not name all resources, or because of the `limit`. A cause without objects has no series.", "cause")
	metricProblem = metric.New(metric.Gauge, "healthscope_aai_problem",
		"1 for what a person has to correct before A&AI is up to date: `certificate`, `credentials`, `outage`, `region`, `server`, `tenant`, `version` or `vnf`. The others have no series. See [failure modes](inventory.md#failure-modes).", "problem")
)

// Metrics that are counted when it happens.
var (
	metricRequests = metric.New(metric.Counter, "healthscope_aai_requests_total",
		"Requests to A&AI. `operation` is `probe`, `list`, `get`, `target`, `tenant`, `put` for creations, `update`, `delete`, `relate`, `unrelate`, `modules` and `status` for reading modules of VNFs and writing their operational status, or `bulk` for several writes in one transaction; `code` is the HTTP status of the answer, or `error` when there was none.", "operation", "code")
	metricDuration = metric.New(metric.Histogram, "healthscope_aai_request_duration_seconds",
		"How long requests to A&AI took.", "operation")
	metricLag = metric.New(metric.Histogram, "healthscope_aai_sync_lag_seconds",
		"How long it took from when a change of a resource was seen until A&AI acknowledged it. A resource that waits counts when it is written, with all of the time.")
)

// Describe implements prometheus.Collector.
func (s *Status) Describe(out chan<- *prometheus.Desc) {
	for _, m := range []metric.Metric{metricObjects, metricModules, metricRejected, metricSkipped, metricProblem} {
		out <- m.Desc
	}
}

// Collect implements prometheus.Collector.
func (s *Status) Collect(out chan<- prometheus.Metric) {
	objects, modules, rejected, skipped, problems := map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	s.mu.Lock()
	for _, t := range s.tenants {
		for _, k := range t.skipped {
			skipped[string(k.Cause)]++
		}
		for _, o := range t.objects {
			objects[stateLabels[o.State]]++
			rejected[o.cause()]++
		}
		problems[string(t.problem)] = 1
	}
	for _, m := range s.vnfs {
		for _, o := range m.objects {
			modules[stateLabels[o.State]]++
			rejected[o.cause()]++
		}
		problems[string(m.problem)] = 1
	}
	s.mu.Unlock()
	if s.inputs.unmapped() {
		problems[string(aai.ProblemRegion)] = 1
	}
	for _, m := range []struct {
		metric metric.Metric
		counts map[string]int
	}{{metricObjects, objects}, {metricModules, modules}, {metricRejected, rejected}, {metricSkipped, skipped}, {metricProblem, problems}} {
		for label, n := range m.counts {
			if n > 0 && label != "" {
				out <- m.metric.Value(float64(n), label)
			}
		}
	}
}

// stateLabels are the words of metrics for states.
var stateLabels = map[sync.State]string{sync.Synced: "synced", sync.Pending: "pending", sync.Failed: "failed"}

// causeLabels are the words for why an object is rejected.
var causeLabels = map[sync.Reason]string{sync.ReasonRejected: "rejected", sync.ReasonConflict: "conflict"}

// requestMetrics count and time the requests to A&AI, and how late it is.
type requestMetrics struct {
	total   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
	lag     prometheus.Histogram
}

func newRequestMetrics() requestMetrics {
	return requestMetrics{
		total: metricRequests.NewCounterVec(),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: metricDuration.Name, Help: metricDuration.Help, Buckets: prometheus.ExponentialBuckets(0.001, 2, 15),
		}, metricDuration.Labels),
		lag: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: metricLag.Name, Help: metricLag.Help, Buckets: prometheus.ExponentialBuckets(0.01, 2, 18),
		}),
	}
}

func (m requestMetrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.total, m.seconds, m.lag}
}

func (m requestMetrics) observe(operation, code string, took time.Duration) {
	m.total.WithLabelValues(operation, code).Inc()
	m.seconds.WithLabelValues(operation).Observe(took.Seconds())
}

func (m requestMetrics) observeLag(lag time.Duration) { m.lag.Observe(lag.Seconds()) }
