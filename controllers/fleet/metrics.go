package fleet

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/healthscope/healthscope/controllers/metric"
)

var (
	metricUp = metric.New(metric.Gauge, "healthscope_cluster_up",
		"1 while what is known of the cluster is current, and 0 while it is not. The controller's own cluster is among them.", "cluster")
	metricLastSeen = metric.New(metric.Gauge, "healthscope_cluster_last_seen_timestamp_seconds",
		"When the cluster was known last to be as it was shown, in seconds since 1970. A cluster that was never read has no series. For one whose bundles another monitor fills, and where HealthScope's does not run, it is when a bundle was written last.", "cluster")
	metricState = metric.New(metric.Gauge, "healthscope_cluster_state",
		"1 for the state that the cluster is in: "+metric.QuoteList(Reachabilities())+". The others have no series.", "cluster", "state")
	metricBudget = metric.New(metric.Gauge, "healthscope_cluster_budget_used_ratio",
		"How much the controller holds of the cluster, as a share of what [`fleet.budget`](configuration.md#fleet) allows: of `bundles`, `resources` or `memory`. 1 is all. The controller's own cluster has no series.", "cluster", "budget")
	metricMaintenance = metric.New(metric.Gauge, "healthscope_cluster_maintenance",
		"1 while the cluster's Secret says that it is under maintenance, for alerts to leave it out. Other clusters have no series.", "cluster")
)

// collector computes the metrics of clusters when they are scraped, so that a removed cluster leaves no stale series.
type collector struct{ view *View }

// NewCollector returns a collector of the metrics of all clusters of a view. Every replica has one, because each connects to the clusters.
func NewCollector(v *View) prometheus.Collector { return collector{v} }

// Describe implements prometheus.Collector.
func (c collector) Describe(descs chan<- *prometheus.Desc) {
	for _, m := range []metric.Metric{metricUp, metricLastSeen, metricState, metricMaintenance, metricBudget} {
		descs <- m.Desc
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(metrics chan<- prometheus.Metric) {
	for _, s := range c.view.States() {
		gauge := func(m metric.Metric, value float64, labels ...string) {
			metrics <- m.Value(value, append([]string{s.Name}, labels...)...)
		}
		up := 0.0
		if s.Reachable() {
			up = 1
		}
		gauge(metricUp, up)
		gauge(metricState, 1, string(s.Reachability))
		if !s.LastSeen.IsZero() {
			gauge(metricLastSeen, float64(s.LastSeen.UnixMilli())/1000)
		}
		if s.Maintenance != "" {
			gauge(metricMaintenance, 1)
		}
	}
	for cluster, ratios := range c.view.usedRatios() {
		for budget, ratio := range ratios {
			metrics <- metricBudget.Value(ratio, cluster, budget)
		}
	}
}
