package fleet

import (
	"github.com/prometheus/client_golang/prometheus"
)

var (
	upDesc = prometheus.NewDesc("healthscope_cluster_up",
		"1 while what is known of the cluster is current, and 0 while it is not.", []string{"cluster"}, nil)
	lastSeenDesc = prometheus.NewDesc("healthscope_cluster_last_seen_timestamp_seconds",
		"When the cluster was known last to be as it was shown, in seconds since 1970.", []string{"cluster"}, nil)
	stateDesc = prometheus.NewDesc("healthscope_cluster_state",
		"1 for the state that the cluster is in.", []string{"cluster", "state"}, nil)
	budgetDesc = prometheus.NewDesc("healthscope_cluster_budget_used_ratio",
		"How much the controller holds of the cluster, as a share of what it may hold.", []string{"cluster", "budget"}, nil)
	maintenanceDesc = prometheus.NewDesc("healthscope_cluster_maintenance",
		"1 while the cluster is under maintenance, so that nobody is to be alarmed by it.", []string{"cluster"}, nil)
)

// collector computes the metrics of clusters when it is asked for them, so that a cluster that has gone leaves none behind.
type collector struct {
	states     func() []ClusterState
	usedRatios func() []usedRatios
}

// NewCollector returns a collector of the metrics of all clusters of a view, for every replica: each sees its clusters for itself.
func NewCollector(v *View) prometheus.Collector { return collector{v.States, v.usedRatios} }

// Describe implements prometheus.Collector.
func (c collector) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{upDesc, lastSeenDesc, stateDesc, maintenanceDesc, budgetDesc} {
		descs <- d
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(metrics chan<- prometheus.Metric) {
	for _, s := range c.states() {
		gauge := func(d *prometheus.Desc, value float64, labels ...string) {
			metrics <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, append([]string{s.Name}, labels...)...)
		}
		up := 0.0
		if s.Reachable() {
			up = 1
		}
		gauge(upDesc, up)
		gauge(stateDesc, 1, string(s.Reachability))
		if !s.LastSeen.IsZero() {
			gauge(lastSeenDesc, float64(s.LastSeen.UnixMilli())/1000)
		}
		if s.Maintenance != "" {
			gauge(maintenanceDesc, 1)
		}
	}
	if c.usedRatios == nil {
		return
	}
	for _, u := range c.usedRatios() {
		for budget, ratio := range u.ratios {
			metrics <- prometheus.MustNewConstMetric(budgetDesc, prometheus.GaugeValue, ratio, u.cluster, budget)
		}
	}
}
