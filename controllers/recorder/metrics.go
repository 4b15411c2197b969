package recorder

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/healthscope/healthscope/controllers/metric"
)

// The metrics of the recorder. Bundles are counted when the metrics are collected.
var (
	metricBundles = metric.New(metric.Gauge, "healthscope_recorder_bundles",
		"The bundles that are saved in AppContexts, or are to be: `saved`, `pending`, `yielded` to another writer, or `absent` when etcd has no place for them. A state without bundles has no series. Only with the [recorder](recorder.md).", "state")
	metricWrites = metric.New(metric.Counter, "healthscope_recorder_writes_total",
		"Writes to AppContexts: `save` or `remove`.", "operation")
	metricErrors = metric.New(metric.Counter, "healthscope_recorder_errors_total",
		"Failures that are retried: `cluster` when a bundle could not be read, `etcd`, or `size` when a bundle is too large for etcd however it is truncated.", "cause")
)

// counters count the writes and failures of the recorder.
type counters struct{ writes, errors *prometheus.CounterVec }

// The values of the label operation.
const (
	operationSave   = "save"
	operationRemove = "remove"
)

// The values of the label cause.
const (
	causeCluster = "cluster"
	causeEtcd    = "etcd"
	causeSize    = "size"
)

func newCounters() counters {
	return counters{writes: metricWrites.NewCounterVec(), errors: metricErrors.NewCounterVec()}
}

// Describe implements prometheus.Collector.
func (r *reconciler) Describe(out chan<- *prometheus.Desc) {
	out <- metricBundles.Desc
	r.counters.writes.Describe(out)
	r.counters.errors.Describe(out)
}

// Collect implements prometheus.Collector.
func (r *reconciler) Collect(out chan<- prometheus.Metric) {
	counts := map[state]int{}
	r.mu.Lock()
	for _, place := range r.records {
		counts[place.state]++
	}
	r.mu.Unlock()
	delete(counts, stateNone)
	for s, n := range counts {
		out <- metricBundles.Value(float64(n), string(s))
	}
	r.counters.writes.Collect(out)
	r.counters.errors.Collect(out)
}
