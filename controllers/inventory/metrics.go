package inventory

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/sync"
)

// Metrics that are counted when they are asked for.
var (
	descObjects = prometheus.NewDesc("healthscope_aai_objects",
		"Resources that go to A&AI, by the state of their synchronisation: synced, pending or failed. A state without resources has no series.", []string{"state"}, nil)
	descModules = prometheus.NewDesc("healthscope_aai_vf_modules",
		"Modules of VNFs whose operational-status goes to A&AI, by the state of their synchronisation: synced, pending or failed. A state without modules has no series.", []string{"state"}, nil)
	descDeadLetters = prometheus.NewDesc("healthscope_aai_dead_letters",
		"Objects, and modules of VNFs, that A&AI has refused for good, by why: rejected, or conflict when somebody else has the place. A cause without objects has no series.", []string{"cause"}, nil)
	descKept = prometheus.NewDesc("healthscope_aai_deletions_held",
		"Objects in A&AI that should be deleted and are not, by why: policy, source or limit. A cause without objects has no series.", []string{"cause"}, nil)
	descProblem = prometheus.NewDesc("healthscope_aai_problem",
		"1 for what a person has to mend before A&AI is up to date: certificate, credentials, outage, region, server, tenant or version. The others have no series.", []string{"problem"}, nil)
)

// Describe implements prometheus.Collector.
func (l *Ledger) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descObjects, descModules, descDeadLetters, descKept, descProblem} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (l *Ledger) Collect(out chan<- prometheus.Metric) {
	l.mu.Lock()
	states, letters, kept, problems := map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}
	for _, a := range l.tenants {
		states["synced"] += a.synced
		states["pending"] += a.pending
		states["failed"] += a.failed
		for _, e := range a.letters {
			letters[causeOf[e.Reason]]++
		}
		for _, k := range a.kept {
			kept[string(k.Cause)]++
		}
		if a.problem != "" {
			problems[string(a.problem)] = 1
		}
	}
	for _, a := range l.vnfs {
		if a.problem != "" {
			problems[string(a.problem)] = 1
		}
		for _, e := range a.letters {
			letters[causeOf[e.Reason]]++
		}
	}
	for _, t := range l.told {
		if t.unmapped {
			problems[string(aai.ProblemRegion)] = 1
		}
	}
	modules := l.moduleStates()
	l.mu.Unlock()
	for _, m := range []struct {
		desc   *prometheus.Desc
		counts map[string]int
	}{{descObjects, states}, {descModules, modules}, {descDeadLetters, letters}, {descKept, kept}, {descProblem, problems}} {
		for label, n := range m.counts {
			if n > 0 {
				out <- prometheus.MustNewConstMetric(m.desc, prometheus.GaugeValue, float64(n), label)
			}
		}
	}
}

// causeOf are the words for why an object is a dead letter.
var causeOf = map[sync.Reason]string{sync.ReasonRejected: "rejected", sync.ReasonConflict: "conflict"}

// requestMetrics count and time the requests to A&AI, and how late it is.
type requestMetrics struct {
	total   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
	lag     prometheus.Histogram
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
		lag: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "healthscope_aai_sync_lag_seconds",
			Help:    "How long it took from when a change of a resource was seen until A&AI acknowledged it.",
			Buckets: prometheus.ExponentialBuckets(0.01, 2, 18),
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
