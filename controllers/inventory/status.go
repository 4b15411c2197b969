package inventory

import (
	"fmt"
	"maps"
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

// Status is the sync status of A&AI as the last pass over each tenant and VNF reported it. It answers scopes, and is the
// collector of the metrics that count it. It is safe for concurrent use.
type Status struct {
	inputs *inputs

	mu      gosync.Mutex // guards the rest
	tenants map[aai.Tenant]*tenantStatus
	vnfs    map[string]*moduleStatus
	notify  []func(types.NamespacedName)
}

// tenantStatus is the sync status of a tenant.
type tenantStatus struct {
	condition

	// objects are those of the tenant, as aai/sync reports them: a report has only what has changed.
	objects map[aai.Key]objectStatus
	// skipped are the documents that should be deleted and are not.
	skipped []plan.Skipped
	// partial is true until a pass has known all that the tenant is to hold: when there was none, or a scope had not been judged.
	partial bool
	// waiting are the scopes whose report waits for such a pass.
	waiting map[types.NamespacedName]bool
}

// objectStatus is the sync status of an object.
type objectStatus struct {
	sync.ObjectStatus

	// since is when the object entered its state for its reason.
	since time.Time
}

// condition is what is the matter with A&AI as a whole, in words that are the same when the same happens again.
type condition struct {
	// reason and message are empty when nothing is the matter.
	reason  scope.Reason
	message string
	// problem says it in one word that a metric can have.
	problem aai.Problem
}

func newStatus(i *inputs) *Status {
	return &Status{inputs: i, tenants: map[aai.Tenant]*tenantStatus{}, vnfs: map[string]*moduleStatus{}}
}

// Subscribe calls notify for every scope for which Report's answer may have changed.
func (s *Status) Subscribe(notify func(types.NamespacedName)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notify = append(s.notify, notify)
}

// recordPass stores the outcome of a pass over a tenant, and notifies the affected scopes.
func (s *Status) recordPass(tenant aai.Tenant, n change, r sync.Report, err error, now time.Time) {
	s.mu.Lock()
	changed, waited := s.tenant(tenant).update(n, r, newCondition(err, r.Missing), now)
	s.mu.Unlock()
	names := s.inputs.scopesOf(tenant, changed)
	maps.Copy(names, waited)
	s.notifyAll(slices.SortedFunc(maps.Keys(names), compareNames))
}

// update notes how a pass ended. It returns the resources whose object has another status or owner than before, nil for all,
// and the scopes that have waited for this pass.
func (t *tenantStatus) update(n change, r sync.Report, c condition, now time.Time) (changed map[healthscope.Key]bool, waited map[types.NamespacedName]bool) {
	changed = map[healthscope.Key]bool{}
	for _, resource := range n.ownerChanged {
		changed[resource] = true
	}
	for key, o := range r.Changed {
		before := t.objects[key]
		status := newObjectStatus(o, before, now)
		if t.objects[key] = status; o.State == "" {
			delete(t.objects, key)
		}
		if status.ObjectStatus != before.ObjectStatus {
			changed[o.Resource] = true
		}
	}
	if t.reason != c.reason || t.message != c.message {
		changed = nil
	}
	t.condition, t.partial, t.skipped = c, n.partial, r.Skipped
	if !t.partial {
		waited, t.waiting = t.waiting, map[types.NamespacedName]bool{}
	}
	return changed, waited
}

// newObjectStatus returns the status of an object of which another one was known before.
func newObjectStatus(o sync.ObjectStatus, before objectStatus, now time.Time) objectStatus {
	o.Message = stableMessage(o.Message)
	if before.State == o.State && before.Reason == o.Reason {
		now = before.since
	}
	return objectStatus{ObjectStatus: o, since: now}
}

// notifyAll notifies the subscribers of scopes.
func (s *Status) notifyAll(names []types.NamespacedName) {
	s.mu.Lock()
	notify := slices.Clone(s.notify)
	s.mu.Unlock()
	for _, name := range names {
		for _, f := range notify {
			f(name)
		}
	}
}

// Report implements scope.Inventory. It sums up what the last passes did with the members of a scope, and says that nothing
// is done with those that bundles do not name. Its answer is never nil.
func (s *Status) Report(name types.NamespacedName, members []scope.AppMember, partial []string) *scope.InventoryReport {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, why := &scope.InventoryReport{}, explanations{}
	for _, p := range members {
		if !s.addMember(r, why, name, p) {
			return &scope.InventoryReport{Waiting: true}
		}
	}
	for _, cluster := range partial {
		if _, placed := mapping.KeyFor(healthscope.Key{Cluster: cluster, Namespace: name.Namespace}, s.inputs.mapping); placed {
			why.addf(scope.ReasonNotListed, "the resources in cluster %q are not all known: A&AI has an old state of the others, or none", cluster)
		}
	}
	s.explainModules(why, name, members)
	r.Reason, r.Message = why.mostSevere()
	return r
}

// addMember adds a member to a report. It returns false when the sync status of the member is not known yet.
func (s *Status) addMember(r *scope.InventoryReport, why explanations, name types.NamespacedName, p scope.AppMember) bool {
	e := mapping.Map(resourceOf(name, p), s.inputs.mapping)
	if e.Decision == mapping.Unmapped {
		why.addf(scope.ReasonNoRegion, "%s: no entry of inventory.regions matches namespace %q of cluster %q", p.Key, p.Namespace, p.Cluster)
	}
	if e.Decision != mapping.Write {
		return true
	}
	if owner, other := s.inputs.olderOwner(name, e.Key.Tenant, p.Key); other && r.Conflict == "" {
		r.Conflict = fmt.Sprintf("%s belongs to the older scope %q in A&AI", p.Key, owner)
	}
	t := s.tenant(e.Key.Tenant)
	object, known := t.objects[e.Key]
	if t.partial && !known {
		t.waiting[name] = true
		return false
	}
	if t.reason != "" {
		why.addf(t.reason, "%s", t.message)
	}
	if e.LinkDenied {
		why.addf(scope.ReasonLinkDenied, "%s: the configuration does not let scopes in namespace %q link to generic-vnf %q", p.Key, name.Namespace, p.Links.GenericVNFID)
	}
	switch object.State {
	case sync.Synced:
		r.Synced++
		return true
	case sync.Failed:
		r.Failed++
	default: // It is pending, or came after the last pass had begun.
		r.Pending++
	}
	why.addf(reasonOf(object.ObjectStatus), "%s in tenant %q: %s", p.Key, e.Key.Tenant, unsyncedMessage(object.ObjectStatus))
	return true
}

// tenant returns the status of a tenant.
func (s *Status) tenant(tenant aai.Tenant) *tenantStatus {
	t := s.tenants[tenant]
	if t == nil {
		t = &tenantStatus{objects: map[aai.Key]objectStatus{}, partial: true, waiting: map[types.NamespacedName]bool{}}
		s.tenants[tenant] = t
	}
	return t
}

var _ scope.Inventory = (*Status)(nil)
