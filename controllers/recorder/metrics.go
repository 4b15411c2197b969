package recorder

import "github.com/prometheus/client_golang/prometheus"

// descBundles is counted when it is asked for.
var descBundles = prometheus.NewDesc("healthscope_recorder_bundles",
	"Bundles that are saved in AppContexts, or are to be, by how it stands with them: saved, pending, yielded to somebody else who saves them, or absent when etcd has no place for them. A state without bundles has no series.",
	[]string{"state"}, nil)

// counters count what the recorder does.
type counters struct {
	writes *prometheus.CounterVec
	errors *prometheus.CounterVec
}

// The operations that are counted.
const (
	operationSave   = "save"
	operationRemove = "remove"
)

// The causes of failures that are counted.
const (
	causeCluster = "cluster"
	causeEtcd    = "etcd"
	causeSize    = "size"
)

func newCounters() counters {
	return counters{
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "healthscope_recorder_writes_total",
			Help: "Writes to AppContexts, by operation: save or remove.",
		}, []string{"operation"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "healthscope_recorder_errors_total",
			Help: "What has failed and is tried again, by cause: cluster when a bundle could not be read, etcd, or size when a bundle is too large for etcd however it is cut.",
		}, []string{"cause"}),
	}
}

// Describe implements prometheus.Collector.
func (r *reconciler) Describe(out chan<- *prometheus.Desc) {
	out <- descBundles
	r.counters.writes.Describe(out)
	r.counters.errors.Describe(out)
}

// Collect implements prometheus.Collector.
func (r *reconciler) Collect(out chan<- prometheus.Metric) {
	for s, n := range r.index.counts() {
		out <- prometheus.MustNewConstMetric(descBundles, prometheus.GaugeValue, float64(n), string(s))
	}
	r.counters.writes.Collect(out)
	r.counters.errors.Collect(out)
}
