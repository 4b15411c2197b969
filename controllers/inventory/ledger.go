package inventory

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	gosync "sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/mapping"
	"github.com/healthscope/healthscope/aai/plan"
	"github.com/healthscope/healthscope/aai/sync"
	"github.com/healthscope/healthscope/controllers/scope"
	"github.com/healthscope/healthscope/healthscope"
)

// Ledger knows how far each tenant is, tells it to scopes, and is the collector
// of the metrics that count it. What it does about a pass costs as much as has
// changed in it. It is safe for concurrent use.
type Ledger struct {
	mapping mapping.Options
	// ownerOf says which scope has a resource of those that want it.
	ownerOf func(healthscope.Key) types.NamespacedName

	mu      gosync.Mutex // guards the rest
	tenants map[aai.Tenant]*account
	// vnfs is how far the modules of VNFs are.
	vnfs map[vnf]*moduleAccount
	// told is what scopes were told last, and about what; askers are the scopes that asked, by object.
	told   map[types.NamespacedName]told
	askers map[aai.Key]map[types.NamespacedName]bool
	notify []func(types.NamespacedName)
}

// told is an answer to a scope.
type told struct {
	report  *scope.InventoryReport
	members []scope.Placed
	// partial are the clusters in which bundles do not name all resources.
	partial []string
	// keys are the objects of the members.
	keys []aai.Key
	// unmapped is true when the configuration names no place in A&AI for some of them.
	unmapped bool
}

// account is how far a tenant is.
type account struct {
	objects map[aai.Key]entry
	// letters are those of the objects that have failed.
	letters map[aai.Key]entry
	kept    []plan.Kept
	verdict
}

// entry is the standing of an object, and since when.
type entry struct {
	sync.Object
	since time.Time
}

// verdict is how the last pass over a tenant ended, in words that are the same when it ends the same way again.
type verdict struct {
	// reason and message say what is the matter with A&AI as a whole; empty when nothing is.
	reason  scope.Reason
	message string
	// problem says the same in one word that a metric can have.
	problem aai.Problem
	// partial is true when a scope had not been judged yet, so that the pass did not know all that the tenant is to hold.
	partial bool
	// synced, pending and failed count the objects.
	synced, pending, failed int
}

// newVerdict sums up a pass.
func newVerdict(r sync.Report, err error, partial bool) verdict {
	v := verdict{partial: partial, synced: r.Synced, pending: r.Pending, failed: r.Failed}
	v.reason, v.message = trouble(err)
	v.problem = problemOf(err, r.TenantMissing)
	return v
}

func newLedger(o mapping.Options, ownerOf func(healthscope.Key) types.NamespacedName) *Ledger {
	return &Ledger{
		mapping: o, ownerOf: ownerOf, tenants: map[aai.Tenant]*account{}, vnfs: map[vnf]*moduleAccount{},
		told: map[types.NamespacedName]told{}, askers: map[aai.Key]map[types.NamespacedName]bool{},
	}
}

// Subscribe calls notify for every scope for which Report's answer changes.
func (l *Ledger) Subscribe(notify func(types.NamespacedName)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notify = append(l.notify, notify)
}

// put notes how a pass ended, and tells the scopes that it makes a difference to. rivals are scopes to look at besides those whose objects have changed.
func (l *Ledger) put(tenant aai.Tenant, r sync.Report, v verdict, rivals []types.NamespacedName, now time.Time) {
	changed, notify := l.note(tenant, r, v, rivals, now)
	tell(changed, notify)
}

// tell tells those who want to know that Report's answer has changed for scopes.
func tell(changed []types.NamespacedName, notify []func(types.NamespacedName)) {
	for _, name := range changed {
		for _, f := range notify {
			f(name)
		}
	}
}

// note returns the scopes that it makes a difference to how a pass ended, and who wants to know.
func (l *Ledger) note(tenant aai.Tenant, r sync.Report, v verdict, rivals []types.NamespacedName, now time.Time) (changed []types.NamespacedName, notify []func(types.NamespacedName)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.tenants[tenant]
	everybody := a == nil || a.reason != v.reason || a.message != v.message || a.partial != v.partial
	if a == nil {
		a = &account{objects: map[aai.Key]entry{}, letters: map[aai.Key]entry{}}
		l.tenants[tenant] = a
	}
	a.verdict, a.kept = v, r.Kept
	look := map[types.NamespacedName]bool{}
	for _, name := range rivals {
		look[name] = true
	}
	for key, object := range r.Changed {
		if a.put(key, object, now) {
			maps.Copy(look, l.askers[key])
		}
	}
	for name, before := range l.told {
		if everybody && before.concerns(tenant) {
			look[name] = true
		}
	}
	return l.differing(look), slices.Clone(l.notify)
}

// differing returns those of some scopes that would be told something else than before.
func (l *Ledger) differing(look map[types.NamespacedName]bool) (changed []types.NamespacedName) {
	for _, name := range slices.SortedFunc(maps.Keys(look), compareNames) {
		if before, asked := l.told[name]; asked && !reflect.DeepEqual(before.report, l.count(name, before.members, before.partial)) {
			changed = append(changed, name)
		}
	}
	return changed
}

// put notes the standing of an object and returns whether it is another than before.
func (a *account) put(key aai.Key, object sync.Object, now time.Time) bool {
	object.Message = plain(object.Message)
	before, had := a.objects[key]
	if had && before.Object == object || !had && object.State == "" {
		return false
	}
	e := entry{Object: object, since: now}
	if before.State == object.State && before.Reason == object.Reason {
		e.since = before.since
	}
	a.objects[key] = e
	delete(a.letters, key)
	switch object.State {
	case sync.Failed:
		a.letters[key] = e
	case "":
		delete(a.objects, key)
	case sync.Synced, sync.Pending:
	}
	return true
}

// concerns says whether an answer was about objects of a tenant.
func (t told) concerns(tenant aai.Tenant) bool {
	return slices.ContainsFunc(t.keys, func(k aai.Key) bool { return k.Tenant == tenant })
}

// Report implements scope.Inventory. Its answer is never nil.
func (l *Ledger) Report(name types.NamespacedName, members []scope.Placed, partial []string) *scope.InventoryReport {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(name)
	t := told{members: members, partial: partial, report: l.count(name, members, partial)}
	t.unmapped = slices.ContainsFunc(members, func(p scope.Placed) bool {
		return mapping.Map(resourceOf(name, p), l.mapping).Decision == mapping.Unmapped
	})
	for _, p := range members {
		if key, ok := mapping.Place(p.Key, l.mapping); ok {
			t.keys = append(t.keys, key)
			if l.askers[key] == nil {
				l.askers[key] = map[types.NamespacedName]bool{}
			}
			l.askers[key][name] = true
		}
	}
	l.told[name] = t
	return t.report
}

// gone forgets a scope.
func (l *Ledger) gone(name types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forget(name)
}

func (l *Ledger) forget(name types.NamespacedName) {
	for _, key := range l.told[name].keys {
		delete(l.askers[key], name)
		if len(l.askers[key]) == 0 {
			delete(l.askers, key)
		}
	}
	delete(l.told, name)
}

// tally is a report on a scope while it is made.
type tally struct {
	scope.InventoryReport
	why explanations
}

// count sums up what the last passes did with the members of a scope, and says that nothing is done with those that bundles do not name.
func (l *Ledger) count(name types.NamespacedName, members []scope.Placed, partial []string) *scope.InventoryReport {
	t := tally{why: explanations{}}
	for _, p := range members {
		if !l.add(&t, name, p) {
			return &scope.InventoryReport{Waiting: true}
		}
	}
	for _, cluster := range partial {
		if _, placed := mapping.Place(healthscope.Key{Cluster: cluster, Namespace: name.Namespace}, l.mapping); placed {
			t.why.addf(scope.ReasonNotListed, "bundles in cluster %q are too large to name all resources: A&AI has an old state of the others, or none", cluster)
		}
	}
	l.addModules(&t, name, members)
	t.Reason, t.Message = t.why.gravest()
	return &t.InventoryReport
}

// add adds a member to a report. It returns false when it is not known yet how far the member is.
func (l *Ledger) add(t *tally, name types.NamespacedName, p scope.Placed) bool {
	e := mapping.Map(resourceOf(name, p), l.mapping)
	if e.Decision == mapping.Unmapped {
		t.why.addf(scope.ReasonNoRegion, "%s: no entry of inventory.regions matches namespace %q of cluster %q", p.Key, p.Namespace, p.Cluster)
	}
	if e.Decision != mapping.Write {
		return true
	}
	if owner := l.ownerOf(p.Key); owner.Name != "" && owner != name && t.Conflict == "" {
		t.Conflict = fmt.Sprintf("%s belongs to the older scope %q in A&AI", p.Key, owner)
	}
	a := l.tenants[e.Key.Tenant]
	if a == nil {
		return false
	}
	object, known := a.objects[e.Key]
	if a.partial && !known {
		return false
	}
	if a.reason != "" {
		t.why.addf(a.reason, "%s", a.message)
	}
	if e.LinkDenied {
		t.why.addf(scope.ReasonLinkDenied, "%s: the configuration does not let scopes in namespace %q link to generic-vnf %q", p.Key, name.Namespace, p.Links.GenericVNFID)
	}
	switch object.State {
	case sync.Synced:
		t.Synced++
		return true
	case sync.Failed:
		t.Failed++
	default: // It is pending, or came after the last pass had begun.
		t.Pending++
	}
	t.why.addObject(p, e.Key.Tenant, object.Object)
	return true
}

var _ scope.Inventory = (*Ledger)(nil)
