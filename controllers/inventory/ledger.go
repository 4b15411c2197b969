package inventory

import (
	"fmt"
	"reflect"
	"slices"
	gosync "sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/mapping"
	"github.com/healthscope/healthscope/aai/sync"
	"github.com/healthscope/healthscope/controllers/scope"
)

// Reasons of the condition InventorySynced when it is not True.
const (
	// ReasonPending means that resources wait to be written, or for what they depend on to appear in A&AI.
	ReasonPending = "Pending"
	// ReasonRefused means that A&AI refused resources for good.
	ReasonRefused = "Refused"
	// ReasonUnavailable means that A&AI cannot be reached, or not well enough.
	ReasonUnavailable = "Unavailable"
	// ReasonMisconfigured means that A&AI refuses this installation: user, password or schema version are wrong.
	ReasonMisconfigured = "Misconfigured"
)

var descObjects = prometheus.NewDesc("healthscope_aai_objects", "Resources that go to A&AI, by the state of their synchronisation. A state without resources has no series.", []string{"state"}, nil)

// Ledger knows how far each tenant is, tells it to scopes, and is the collector
// of the metric that counts it. It is safe for concurrent use.
type Ledger struct {
	mapping  mapping.Options
	registry *scope.Registry

	mu      gosync.Mutex
	tenants map[aai.Tenant]outcome
	told    map[types.NamespacedName]scope.InventoryReport
	notify  []func(types.NamespacedName)
}

// outcome is how the last pass over a tenant ended.
type outcome struct {
	report sync.Report
	err    error
	// partial is true when a scope had not been judged yet, so that the pass did not know all that the tenant is to hold.
	partial bool
}

func newLedger(o mapping.Options, registry *scope.Registry) *Ledger {
	return &Ledger{mapping: o, registry: registry, tenants: map[aai.Tenant]outcome{}, told: map[types.NamespacedName]scope.InventoryReport{}}
}

// Subscribe calls notify for every scope for which Report's answer changes.
func (l *Ledger) Subscribe(notify func(types.NamespacedName)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notify = append(l.notify, notify)
}

// put notes how a pass ended, and tells the scopes that it makes a difference to.
func (l *Ledger) put(tenant aai.Tenant, o outcome) {
	l.mu.Lock()
	l.tenants[tenant] = o
	notify := slices.Clone(l.notify)
	var changed []types.NamespacedName
	all := l.registry.All()
	for name, judged := range all {
		if told, ok := l.told[name]; ok && !reflect.DeepEqual(told, l.count(name, judged.Members)) {
			changed = append(changed, name)
		}
	}
	for name := range l.told {
		if all[name] == nil {
			delete(l.told, name)
		}
	}
	l.mu.Unlock()
	for _, name := range changed {
		for _, f := range notify {
			f(name)
		}
	}
}

// Report implements scope.Inventory.
func (l *Ledger) Report(name types.NamespacedName, members []scope.Placed) *scope.InventoryReport {
	l.mu.Lock()
	defer l.mu.Unlock()
	report := l.count(name, members)
	l.told[name] = report
	return &report
}

// count sums up what the last passes did with the members of a scope.
func (l *Ledger) count(name types.NamespacedName, members []scope.Placed) scope.InventoryReport {
	var out scope.InventoryReport
	var trouble error
	var refused, waiting string
	for _, p := range members {
		e := mapping.Map(resourceOf(name, p), l.mapping)
		if e.Decision != mapping.Write {
			continue
		}
		last, passed := l.tenants[e.Key.Tenant]
		object, known := last.report.Objects[e.Key]
		if !passed || last.partial && !known {
			return scope.InventoryReport{Waiting: true}
		}
		if last.err != nil {
			trouble = last.err
		}
		switch object.State {
		case sync.Synced:
			out.Synced++
		case sync.Failed:
			out.Failed++
			refused = first(refused, p, object.Message)
		case sync.Pending:
			out.Pending++
			waiting = first(waiting, p, object.Message)
		default: // It came after the last pass had begun.
			out.Pending++
			waiting = first(waiting, p, "waits for its turn")
		}
	}
	out.Reason, out.Message = explain(out, trouble, refused, waiting)
	return out
}

// first keeps the first explanation: members come in a fixed order.
func first(known string, p scope.Placed, why string) string {
	if known != "" {
		return known
	}
	return fmt.Sprintf("%s: %s", p.Key, why)
}

// explain puts trouble into a reason and a message; both are empty when there is none.
func explain(r scope.InventoryReport, trouble error, refused, waiting string) (reason, message string) {
	switch {
	case trouble != nil && aai.KindOf(trouble) == aai.Stop:
		return ReasonMisconfigured, trouble.Error()
	case trouble != nil:
		return ReasonUnavailable, trouble.Error()
	case r.Failed > 0:
		return ReasonRefused, refused
	case r.Pending > 0:
		return ReasonPending, waiting
	default:
		return "", ""
	}
}

// Describe implements prometheus.Collector.
func (l *Ledger) Describe(out chan<- *prometheus.Desc) { out <- descObjects }

// Collect implements prometheus.Collector.
func (l *Ledger) Collect(out chan<- prometheus.Metric) {
	l.mu.Lock()
	counts := map[sync.State]int{}
	for _, o := range l.tenants {
		counts[sync.Synced] += o.report.Synced
		counts[sync.Pending] += o.report.Pending
		counts[sync.Failed] += o.report.Failed
	}
	l.mu.Unlock()
	for state, n := range counts {
		if n > 0 {
			out <- prometheus.MustNewConstMetric(descObjects, prometheus.GaugeValue, float64(n), string(state))
		}
	}
}

var _ scope.Inventory = (*Ledger)(nil)
