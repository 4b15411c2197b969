package monitor

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/healthscope/healthscope/controllers/metric"
)

// Metrics of the monitor, but for the last computed when they are asked for. The monitor that has the Lease has them.
var (
	metricUnreadable = metric.New(metric.Gauge, "healthscope_monitor_unreadable_kinds",
		"1 for each kind that the monitor cannot read. Its objects are Unknown in the bundles. The others have no series.", "group", "kind", "reason")
	metricStandingDown = metric.New(metric.Gauge, "healthscope_monitor_standing_down",
		"The bundles that the monitor leaves to [another monitor](monitor.md), which writes them.")
	metricCreated = metric.New(metric.Counter, "healthscope_monitor_bundles_created_total",
		"The bundles that the monitor has created, where `monitor.createBundles` is set.")
)

// collector exposes the metrics of a monitor.
type collector struct {
	watches     *watches
	writeStates *writeStates
	registry    prometheus.Registerer
	created     prometheus.Counter
}

func newCollector(all *watches, writeStates *writeStates, registry prometheus.Registerer) *collector {
	created := prometheus.NewCounter(prometheus.CounterOpts{Name: metricCreated.Name, Help: metricCreated.Help})
	return &collector{watches: all, writeStates: writeStates, registry: registry, created: created}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	out <- metricUnreadable.Desc
	out <- metricStandingDown.Desc
	c.created.Describe(out)
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	type series struct {
		schema.GroupKind
		reason visibility
	}
	seen := map[series]bool{}
	for _, w := range c.watches.snapshot() {
		s := series{w.source.kind.GroupKind(), w.visibility()}
		if s.reason.isUnreadable() && !seen[s] {
			seen[s] = true
			out <- metricUnreadable.Value(1, s.Group, s.Kind, string(s.reason))
		}
	}
	out <- metricStandingDown.Value(float64(c.writeStates.standingDown()))
	c.created.Collect(out)
}

// run registers the metrics until ctx is done.
func (c *collector) run(ctx context.Context) error {
	if err := c.registry.Register(c); err != nil {
		return fmt.Errorf("cannot register the metrics of the monitor: %w", err)
	}
	defer c.registry.Unregister(c)
	<-ctx.Done()
	return nil
}
