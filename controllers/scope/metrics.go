package scope

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/healthscope/healthscope/healthscope"
)

// Metrics of scopes, computed when they are asked for, so that no series
// outlives its scope. The replica that leads has them; the others have none.
var (
	descState = prometheus.NewDesc("healthscope_scope_state",
		"1 for the state that the members of the scope roll up to.", []string{"namespace", "scope", "state"}, nil)
	descHealth = prometheus.NewDesc("healthscope_scope_health",
		"1 for the health that the scope's roll-up comes to: healthy, unhealthy or unknown.", []string{"namespace", "scope", "health"}, nil)
	descCulprit = prometheus.NewDesc("healthscope_scope_first_culprit",
		"1 for the first culprit of the scope, as its status names it: the worst of the members that are not healthy, or a cluster that cannot be seen. A scope without a culprit has no series.",
		[]string{"namespace", "scope", "cluster", "app", "kind", "name", "reason"}, nil)
	descMaintenance = prometheus.NewDesc("healthscope_scope_maintenance",
		"1 for a scope under maintenance, by which nobody is to be alarmed. Others have no series.", []string{"namespace", "scope"}, nil)
	descContested = prometheus.NewDesc("healthscope_scope_status_contested",
		"1 for a scope whose status another controller writes too, by the name of its field manager. Others have no series.", []string{"namespace", "scope", "manager"}, nil)
	descResources = prometheus.NewDesc("healthscope_scope_resources",
		"Resources that count in the scope, by app and state. A state without resources has no series.", []string{"namespace", "scope", "app", "state"}, nil)
)

// Collector exposes the state of all scopes of a registry.
type Collector struct{ registry *Registry }

// NewCollector returns a collector for a registry.
func NewCollector(r *Registry) Collector { return Collector{registry: r} }

// Describe implements prometheus.Collector.
func (c Collector) Describe(out chan<- *prometheus.Desc) {
	out <- descState
	out <- descHealth
	out <- descCulprit
	out <- descMaintenance
	out <- descContested
	out <- descResources
}

// Collect implements prometheus.Collector.
func (c Collector) Collect(out chan<- prometheus.Metric) {
	type series struct {
		app   string
		state healthscope.State
	}
	for name, judged := range c.registry.All() {
		out <- prometheus.MustNewConstMetric(descState, prometheus.GaugeValue, 1, name.Namespace, name.Name, string(judged.State))
		out <- prometheus.MustNewConstMetric(descHealth, prometheus.GaugeValue, 1, name.Namespace, name.Name, string(judged.Health))
		if judged.Maintenance {
			out <- prometheus.MustNewConstMetric(descMaintenance, prometheus.GaugeValue, 1, name.Namespace, name.Name)
		}
		if judged.ContestedBy != "" {
			out <- prometheus.MustNewConstMetric(descContested, prometheus.GaugeValue, 1, name.Namespace, name.Name, judged.ContestedBy)
		}
		if c := judged.FirstCulprit; c != nil {
			out <- prometheus.MustNewConstMetric(descCulprit, prometheus.GaugeValue, 1, name.Namespace, name.Name, c.Cluster, c.App, c.Kind, c.Name, c.Reason)
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
			out <- prometheus.MustNewConstMetric(descResources, prometheus.GaugeValue, n, name.Namespace, name.Name, s.app, string(s.state))
		}
	}
}
