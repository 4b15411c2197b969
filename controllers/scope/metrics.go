package scope

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/healthscope/healthscope/controllers/metric"
	"github.com/healthscope/healthscope/healthscope"
)

// Metrics of scopes, computed when they are asked for, so that no series
// outlives its scope. The replica that leads has them; the others have none.
var (
	metricState = metric.New(metric.Gauge, "healthscope_scope_state",
		"1 for the state that the members of the scope roll up to. The other states have no series.", "namespace", "scope", "state")
	metricHealth = metric.New(metric.Gauge, "healthscope_scope_health",
		"1 for the [health](healthscope.md#status) that the scope's roll-up comes to: `healthy`, `unhealthy` or `unknown`. The others have no series.", "namespace", "scope", "health")
	metricCulprit = metric.New(metric.Gauge, "healthscope_scope_first_culprit",
		"1 for the first culprit, the one that [`status.firstCulprit`](healthscope.md#status) names: the worst of the members that are not healthy, or, with `kind=\"Cluster\"`, a cluster that cannot be seen. A scope without a culprit has no series.", "namespace", "scope", "cluster", "app", "kind", "name", "reason")
	metricMaintenance = metric.New(metric.Gauge, "healthscope_scope_maintenance",
		"1 for a scope whose [annotation](healthscope.md#maintenance) says that it is under maintenance, or all of whose culprits are in clusters that are, for alerts to leave it out. Other scopes have no series.", "namespace", "scope")
	metricConflict = metric.New(metric.Gauge, "healthscope_scope_status_conflict",
		"1 for a scope whose status [another controller](compatibility.md#beside-other-healthscope-controllers) writes too, by the name of its field manager. Other scopes have no series.", "namespace", "scope", "manager")
	metricResources = metric.New(metric.Gauge, "healthscope_scope_resources",
		"The members that count, by app and [state](health.md#states). A state without members has no series.", "namespace", "scope", "app", "state")
)

// Collector exposes the state of all scopes of a registry.
type Collector struct{ registry *Registry }

// NewCollector returns a collector for a registry.
func NewCollector(r *Registry) Collector { return Collector{registry: r} }

// Describe implements prometheus.Collector.
func (c Collector) Describe(out chan<- *prometheus.Desc) {
	metric.Describe(out, metricState, metricHealth, metricCulprit, metricMaintenance, metricConflict, metricResources)
}

// Collect implements prometheus.Collector.
func (c Collector) Collect(out chan<- prometheus.Metric) {
	type series struct {
		app   string
		state healthscope.State
	}
	for name, judged := range c.registry.All() {
		out <- metricState.Value(1, name.Namespace, name.Name, string(judged.State))
		out <- metricHealth.Value(1, name.Namespace, name.Name, string(judged.Health))
		if judged.Maintenance {
			out <- metricMaintenance.Value(1, name.Namespace, name.Name)
		}
		if judged.ConflictsWith != "" {
			out <- metricConflict.Value(1, name.Namespace, name.Name, judged.ConflictsWith)
		}
		if c := judged.FirstCulprit; c != nil {
			out <- metricCulprit.Value(1, name.Namespace, name.Name, c.Cluster, c.App, c.Kind, c.Name, c.Reason)
		}
		counts := map[series]float64{}
		for _, p := range judged.Members {
			if p.Contributes() {
				counts[series{p.App, p.State}]++
			}
		}
		for _, u := range judged.Unlisted {
			for state, n := range map[healthscope.State]int{
				healthscope.Ready: u.Summary.Ready, healthscope.Pending: u.Summary.Pending, healthscope.Failed: u.Summary.Failed, healthscope.Unknown: u.Summary.Unknown,
			} {
				if n > 0 {
					counts[series{u.App, state}] += float64(n)
				}
			}
		}
		for s, n := range counts {
			out <- metricResources.Value(n, name.Namespace, name.Name, s.app, string(s.state))
		}
	}
}
