package rsync

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/healthscope/healthscope/controllers/metric"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

// The metrics of rsync.
var (
	metricEvents = metric.New(metric.Counter, "healthscope_rsync_events_total",
		"The events of AppContexts that were handled: those after which all was there, or gone, are `Done`, and others an `Error`. One that is tried again counts each time. Only with [rsync](rsync.md).", "event", "status")
	metricAnswers = metric.New(metric.Counter, "healthscope_rsync_answers_total",
		"What clusters have answered when objects were applied, deleted or read: `acknowledged`, `refused`, or `unanswered` when a cluster gave no answer. The log and `healthscope context show` say which.", "answer")
	metricStandingDown = metric.New(metric.Gauge, "healthscope_rsync_standing_down",
		"1 when nothing is deployed because another program, such as EMCO's rsync, works on the [same etcd](rsync.md#beside-emcos-rsync), and else 0.")
)

// countEvent counts an event.
func (r *Runner) countEvent(event deploy.Event, succeeded bool) {
	status := deploy.EventDone
	if !succeeded {
		status = deploy.EventError
	}
	r.events.WithLabelValues(string(event), string(status)).Inc()
}

// countAnswer counts an answer of a cluster. The cluster is not a label, because a context may name any cluster.
func (r *Runner) countAnswer(o deploy.Outcome) { r.answers.WithLabelValues(o.String()).Inc() }

// Describe implements prometheus.Collector.
func (r *Runner) Describe(out chan<- *prometheus.Desc) {
	out <- metricStandingDown.Desc
	r.events.Describe(out)
	r.answers.Describe(out)
}

// Collect implements prometheus.Collector.
func (r *Runner) Collect(out chan<- prometheus.Metric) {
	down := 0.0
	if r.standingDown.Load() {
		down = 1
	}
	out <- metricStandingDown.Value(down)
	r.events.Collect(out)
	r.answers.Collect(out)
}
