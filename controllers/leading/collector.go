package leading

import "github.com/prometheus/client_golang/prometheus"

// Collector returns a collector that tells nothing while this replica does not lead: what it knew when it led may not be so any more.
func Collector(g *Gate, next prometheus.Collector) prometheus.Collector {
	return collector{gate: g, Collector: next}
}

type collector struct {
	prometheus.Collector

	gate *Gate
}

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	if c.gate.Leads() {
		c.Collector.Collect(out)
	}
}
