package inventory

import (
	"fmt"
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
	mapping mapping.Options
	inputs  *inputs

	mu      gosync.Mutex // guards the rest
	tenants map[aai.Tenant]*tenantStatus
	vnfs    map[vnf]*moduleStatus
	notify  []func(types.NamespacedName)
}

// tenantStatus is how far a tenant is.
type tenantStatus struct {
	condition

	// objects are those of the tenant, as aai/sync reports them: a report has only what has changed.
	objects map[aai.Key]objectStatus
	// kept are the documents that should be deleted and are not.
	kept []plan.Kept
	// partial is true when a scope had not been judged yet, so that the pass did not know all that the tenant is to hold.
	partial bool
	// synced, pending and failed are the counts of the report.
	synced, pending, failed int
}

// objectStatus is how far an object is.
type objectStatus struct {
	sync.Object

	// since is since when it is so, for that reason.
	since time.Time
	// at is where its resource is. It is not set for a module.
	at clusterNamespace
}

// condition is what is the matter with A&AI as a whole, in words that are the same when the same happens again.
type condition struct {
	// reason and message are empty when nothing is the matter.
	reason  scope.Reason
	message string
	// problem says it in one word that a metric can have.
	problem aai.Problem
}

// newCondition returns the condition after a pass that ended with an error, or with nil.
func newCondition(err error, tenantMissing bool) condition {
	c := condition{problem: problemOf(err, tenantMissing)}
	c.reason, c.message = trouble(err)
	return c
}

func newStatus(o mapping.Options, i *inputs) *Status {
	return &Status{mapping: o, inputs: i, tenants: map[aai.Tenant]*tenantStatus{}, vnfs: map[vnf]*moduleStatus{}}
}

// Subscribe calls notify for every scope for which Report's answer may have changed.
func (s *Status) Subscribe(notify func(types.NamespacedName)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notify = append(s.notify, notify)
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

// put notes how a pass over a tenant ended, and notifies the scopes that it concerns.
func (s *Status) put(tenant aai.Tenant, n change, r sync.Report, err error, now time.Time) {
	if in, affected := s.update(tenant, n, r, newCondition(err, r.TenantMissing), now); affected != nil {
		s.notifyAll(s.inputs.scopesOf(tenant, in, affected))
	}
}

// update notes how a pass over a tenant ended. It returns what reports whether an object is now another for the scopes that
// claim it, and the clusterNamespaces of such objects: nil for all. Without any such object, it returns nil for both.
func (s *Status) update(tenant aai.Tenant, n change, r sync.Report, c condition, now time.Time) (in map[clusterNamespace]bool, affected func(aai.Key) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, known := s.tenants[tenant]
	if !known {
		t = &tenantStatus{objects: map[aai.Key]objectStatus{}}
		s.tenants[tenant] = t
	}
	all := !known || t.reason != c.reason || t.message != c.message
	completed := t.partial && !n.partial // Scopes wait for what a partial pass did not know.
	t.condition, t.partial, t.kept = c, n.partial, r.Kept
	t.synced, t.pending, t.failed = r.Synced, r.Pending, r.Failed
	changed := t.update(n, r.Changed, now)
	if !all && !completed {
		if len(changed) == 0 {
			return nil, nil
		}
		in = map[clusterNamespace]bool{}
		for _, at := range changed {
			in[at] = true
		}
	}
	return in, func(key aai.Key) bool { // The objects stay as they are until the next pass over the tenant, which comes after this one.
		_, isChanged := changed[key]
		_, reported := t.objects[key]
		return all || isChanged || completed && !reported
	}
}

// update notes the status of objects. It returns those that have another status or owner than before, and where they are.
func (t *tenantStatus) update(n change, reported map[aai.Key]sync.Object, now time.Time) (changed map[aai.Key]clusterNamespace) {
	changed = map[aai.Key]clusterNamespace{}
	for key := range n.reowned {
		changed[key] = n.at[key]
	}
	for key, o := range reported {
		before := t.objects[key]
		status := newObjectStatus(o, before, now)
		if at, ok := n.at[key]; ok {
			status.at = at
		}
		if t.objects[key] = status; o.State == "" {
			delete(t.objects, key)
		}
		if status.Object != before.Object {
			changed[key] = status.at
		}
	}
	return changed
}

// newObjectStatus returns the status of an object of which another one was known before.
func newObjectStatus(o sync.Object, before objectStatus, now time.Time) objectStatus {
	o.Message = plain(o.Message)
	s := objectStatus{Object: o, since: now, at: before.at}
	if before.State == o.State && before.Reason == o.Reason {
		s.since = before.since
	}
	return s
}

// report is a report on a scope while it is made.
type report struct {
	scope.InventoryReport
	why explanations
}

// Report implements scope.Inventory. It sums up what the last passes did with the members of a scope, and says that nothing
// is done with those that bundles do not name. Its answer is never nil.
func (s *Status) Report(name types.NamespacedName, members []scope.Placed, partial []string) *scope.InventoryReport {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := report{why: explanations{}}
	for _, p := range members {
		if !s.add(&r, name, p) {
			return &scope.InventoryReport{Waiting: true}
		}
	}
	for _, cluster := range partial {
		if _, placed := mapping.Place(healthscope.Key{Cluster: cluster, Namespace: name.Namespace}, s.mapping); placed {
			r.why.addf(scope.ReasonNotListed, "bundles in cluster %q are too large to name all resources: A&AI has an old state of the others, or none", cluster)
		}
	}
	s.addModules(&r, name, members)
	r.Reason, r.Message = r.why.gravest()
	return &r.InventoryReport
}

// add adds a member to a report. It returns false when it is not known yet how far the member is.
func (s *Status) add(r *report, name types.NamespacedName, p scope.Placed) bool {
	e := mapping.Map(resourceOf(name, p), s.mapping)
	if e.Decision == mapping.Unmapped {
		r.why.addf(scope.ReasonNoRegion, "%s: no entry of inventory.regions matches namespace %q of cluster %q", p.Key, p.Namespace, p.Cluster)
	}
	if e.Decision != mapping.Write {
		return true
	}
	if owner, other := s.inputs.olderOwner(name, e.Key.Tenant, p.Key); other && r.Conflict == "" {
		r.Conflict = fmt.Sprintf("%s belongs to the older scope %q in A&AI", p.Key, owner)
	}
	t := s.tenants[e.Key.Tenant]
	if t == nil {
		return false
	}
	object, known := t.objects[e.Key]
	if t.partial && !known {
		return false
	}
	if t.reason != "" {
		r.why.addf(t.reason, "%s", t.message)
	}
	if e.LinkDenied {
		r.why.addf(scope.ReasonLinkDenied, "%s: the configuration does not let scopes in namespace %q link to generic-vnf %q", p.Key, name.Namespace, p.Links.GenericVNFID)
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
	r.why.addObject(p, e.Key.Tenant, object.Object)
	return true
}

var _ scope.Inventory = (*Status)(nil)
