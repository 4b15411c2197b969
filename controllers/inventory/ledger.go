package inventory

import (
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

var descObjects = prometheus.NewDesc("healthscope_aai_objects",
	"Resources that go to A&AI, by the state of their synchronisation: synced, pending or failed. A state without resources has no series.", []string{"state"}, nil)

// Ledger knows how far each tenant is, tells it to scopes, and is the collector
// of the metric that counts it. It is safe for concurrent use.
type Ledger struct {
	mapping  mapping.Options
	registry judgements

	mu      gosync.Mutex
	tenants map[aai.Tenant]outcome
	told    map[types.NamespacedName]*scope.InventoryReport
	notify  []func(types.NamespacedName)
}

// outcome is how the last pass over a tenant ended, in words that are the same when it ends the same way again.
type outcome struct {
	objects map[aai.Key]sync.Object
	// synced, pending and failed count the objects.
	synced, pending, failed int
	// reason and message say what is the matter with A&AI as a whole; empty when nothing is.
	reason, message string
	// partial is true when a scope had not been judged yet, so that the pass did not know all that the tenant is to hold.
	partial bool
}

// newOutcome keeps of a pass what scopes and metrics need to know. It takes the report over.
func newOutcome(r sync.Report, err error, partial bool) outcome {
	for key, object := range r.Objects {
		if object.Message != "" {
			object.Message = plain(object.Message)
			r.Objects[key] = object
		}
	}
	o := outcome{objects: r.Objects, synced: r.Synced, pending: r.Pending, failed: r.Failed, partial: partial}
	o.reason, o.message = trouble(err)
	return o
}

func newLedger(o mapping.Options, registry judgements) *Ledger {
	return &Ledger{mapping: o, registry: registry, tenants: map[aai.Tenant]outcome{}, told: map[types.NamespacedName]*scope.InventoryReport{}}
}

// Subscribe calls notify for every scope for which Report's answer changes.
func (l *Ledger) Subscribe(notify func(types.NamespacedName)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notify = append(l.notify, notify)
}

// put notes how a pass ended, and tells the scopes that it makes a difference to.
func (l *Ledger) put(tenant aai.Tenant, o outcome) {
	changed, notify := l.note(tenant, o)
	for _, name := range changed {
		for _, f := range notify {
			f(name)
		}
	}
}

// note returns the scopes that it makes a difference to how a pass ended, and who wants to know.
func (l *Ledger) note(tenant aai.Tenant, o outcome) (changed []types.NamespacedName, notify []func(types.NamespacedName)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if before, passed := l.tenants[tenant]; passed && reflect.DeepEqual(before, o) {
		return nil, nil
	}
	l.tenants[tenant] = o
	all := l.registry.All()
	for name, told := range l.told {
		judged := all[name]
		if judged == nil {
			delete(l.told, name)
		} else if !reflect.DeepEqual(told, l.count(name, judged.Members)) {
			changed = append(changed, name)
		}
	}
	return changed, slices.Clone(l.notify)
}

// Report implements scope.Inventory. It returns nil for a scope for none of whose resources a region is configured.
func (l *Ledger) Report(name types.NamespacedName, members []scope.Placed) *scope.InventoryReport {
	l.mu.Lock()
	defer l.mu.Unlock()
	report := l.count(name, members)
	l.told[name] = report
	return report
}

// count sums up what the last passes did with the members of a scope.
func (l *Ledger) count(name types.NamespacedName, members []scope.Placed) *scope.InventoryReport {
	var out scope.InventoryReport
	var mapped, unmapped bool
	why := explanations{}
	for _, p := range members {
		e := mapping.Map(resourceOf(name, p), l.mapping)
		mapped = mapped || e.Key != aai.Key{}
		unmapped = unmapped || e.Decision == mapping.Unmapped
		if e.Decision != mapping.Write {
			continue
		}
		last, passed := l.tenants[e.Key.Tenant]
		object, known := last.objects[e.Key]
		if !passed || last.partial && !known {
			return &scope.InventoryReport{Waiting: true}
		}
		if last.reason != "" {
			why.addf(last.reason, "%s", last.message)
		}
		if e.LinkDenied {
			why.addf(ReasonLinkDenied, "%s: the configuration does not let scopes in namespace %q link to generic-vnf %q", p.Key, name.Namespace, p.Links.GenericVNFID)
		}
		switch object.State {
		case sync.Synced:
			out.Synced++
			continue
		case sync.Failed:
			out.Failed++
		default: // It is pending, or came after the last pass had begun.
			out.Pending++
		}
		why.addObject(p, e.Key.Tenant, object)
	}
	if unmapped && !mapped {
		return nil
	}
	out.Reason, out.Message = why.gravest()
	return &out
}

// Describe implements prometheus.Collector.
func (l *Ledger) Describe(out chan<- *prometheus.Desc) { out <- descObjects }

// Collect implements prometheus.Collector.
func (l *Ledger) Collect(out chan<- prometheus.Metric) {
	l.mu.Lock()
	counts := map[string]int{}
	for _, o := range l.tenants {
		counts["synced"] += o.synced
		counts["pending"] += o.pending
		counts["failed"] += o.failed
	}
	l.mu.Unlock()
	for state, n := range counts {
		if n > 0 {
			out <- prometheus.MustNewConstMetric(descObjects, prometheus.GaugeValue, float64(n), state)
		}
	}
}

var _ scope.Inventory = (*Ledger)(nil)
