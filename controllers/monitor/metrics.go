package monitor

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Metrics of the monitor, computed when they are asked for. The monitor that has the Lease has them.
var (
	descUnreadable = prometheus.NewDesc("healthscope_monitor_unreadable_kinds",
		"1 for a kind that cannot be read, by reason.", []string{"group", "kind", "reason"}, nil)
	descStandingDown = prometheus.NewDesc("healthscope_monitor_standing_down",
		"Bundles that are left to another monitor, which writes them.", nil, nil)
)

// collector exposes the metrics of a monitor.
type collector struct {
	watches *watches
	ledger  *ledger
	created prometheus.Counter
}

func newCollector(all *watches, ledger *ledger) *collector {
	return &collector{watches: all, ledger: ledger, created: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "healthscope_monitor_bundles_created_total",
		Help: "Bundles that the monitor has made.",
	})}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	out <- descUnreadable
	out <- descStandingDown
	c.created.Describe(out)
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	type series struct {
		schema.GroupKind
		reason unread
	}
	seen := map[series]bool{}
	for _, w := range c.watches.snapshot() {
		s := series{w.source.kind.GroupKind(), w.unreadable()}
		if s.reason != "" && !seen[s] {
			seen[s] = true
			out <- prometheus.MustNewConstMetric(descUnreadable, prometheus.GaugeValue, 1, s.Group, s.Kind, string(s.reason))
		}
	}
	out <- prometheus.MustNewConstMetric(descStandingDown, prometheus.GaugeValue, float64(c.ledger.standingDown()))
	c.created.Collect(out)
}

// run registers the metrics until ctx is done.
func (c *collector) run(ctx context.Context, registry prometheus.Registerer) error {
	if err := registry.Register(c); err != nil {
		return fmt.Errorf("cannot register the metrics of the monitor: %w", err)
	}
	defer registry.Unregister(c)
	<-ctx.Done()
	return nil
}
