package scope

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/healthscope"
)

// Registry holds the last judgement of each scope. The inventory and the metrics
// read from it what does not fit into the status of a scope. It is safe for concurrent use.
type Registry struct {
	subscribers []func(types.NamespacedName)

	mu     sync.RWMutex // guards scopes
	scopes map[types.NamespacedName]*scopeEntry
}

// scopeEntry is the state of one scope between reconciles. Only the scope's own reconcile uses fields other than judged.
type scopeEntry struct {
	uid types.UID
	// history holds since when the objects that the scope refers to directly are in their state.
	history *history
	// recorded is the health of the last event; empty when there was none. recordedFromStatus is true while recorded is known from the status only.
	recorded           corev1alpha2.Health
	recordedFromStatus bool
	// inventory holds which events on the inventory were recorded.
	inventory inventoryEvents
	// written is the scope as it was last written, until the cache has it; then nil.
	written *corev1alpha2.HealthScope
	// conflict records that another controller writes the status too.
	conflict writeConflict
	// judged is nil until the scope has been judged once; it is never changed, only replaced.
	judged *Judged
}

// Judged is the outcome of a scope's last judgement.
type Judged struct {
	// Generation is the generation of the scope's spec that was judged.
	Generation int64
	// Members are all members of the scope, worst first.
	Members []AppMember
	// FirstCulprit is the first of the culprits that the status names; nil when there is none.
	FirstCulprit *corev1alpha2.Culprit
	// Unlisted counts the resources that the scope cannot name.
	Unlisted []Unlisted
	// Partial are the clusters in which the scope's bundles do not name all resources, so that what is no member may exist nevertheless; sorted.
	Partial []string
	// FirstSyncs is how many clusters had been read for the first time when the judgement began, as ClusterState counts them. It knows nothing of the bundles of a later one.
	FirstSyncs uint64
	// LinkedApps are the apps that name a module of a VNF, sorted by app.
	LinkedApps []LinkedApp
	// State is the roll-up of the members.
	State healthscope.State
	// Health is what the scope's roll-up makes of them.
	Health healthscope.Health
	// Maintenance is true while no alert is to fire for the scope: it is under maintenance, or all its unhealthy contributors are in clusters that are.
	Maintenance bool
	// ConflictsWith is the other controller that writes the scope's status, as managed fields name it; empty when there is none.
	ConflictsWith string
}

// AppMember is a judged member of a scope, with its place in it.
type AppMember struct {
	// Member is shared with all others who have the member: the bundle that it is in, and other scopes. It must not be changed.
	*healthscope.Member
	// App is the app of the scope the member belongs to; empty for references outside apps.
	App string
	// Links are the app's links into the inventory; nil when it has none.
	Links *corev1alpha2.InventoryLinks
	// Ignored is true when the scope's roll-up says that the member does not count.
	Ignored bool
}

// Contributes reports whether the member counts in the scope's health.
func (p AppMember) Contributes() bool { return !p.Owned && !p.Ignored }

// isUnhealthy reports whether the member keeps the scope from being healthy.
func (p AppMember) isUnhealthy() bool { return p.Contributes() && !p.Healthy() }

// Unlisted counts resources of a scope that have no name there, because their bundle
// does not name them. They count in its health; no roll-up can ignore them, and one that is also referred to by name counts twice.
type Unlisted struct {
	// App is the app of the scope they belong to.
	App string
	// Cluster is the cluster they are in.
	Cluster string
	// Summary counts them by the state that their bundle gives them.
	Summary healthscope.Summary
}

// LinkedApp is the state of an app that names a module of a VNF.
type LinkedApp struct {
	// Links are the app's links into the inventory. They name a module.
	Links corev1alpha2.InventoryLinks
	// Summary counts the app's members that contribute, also those that count in another app first, and the unlisted ones.
	Summary healthscope.Summary
}

// NewRegistry returns an empty registry.
func NewRegistry() *Registry { return &Registry{scopes: map[types.NamespacedName]*scopeEntry{}} }

// Subscribe calls notify after every judgement and removal of a scope. It must be called before the controllers start, and notify must not block.
func (r *Registry) Subscribe(notify func(types.NamespacedName)) {
	r.subscribers = append(r.subscribers, notify)
}

// Get returns the last judgement of a scope; nil when it has not been judged yet, or does not exist.
func (r *Registry) Get(name types.NamespacedName) *Judged {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if e := r.scopes[name]; e != nil {
		return e.judged
	}
	return nil
}

// All returns the last judgements of all scopes that have been judged.
func (r *Registry) All() map[types.NamespacedName]*Judged {
	r.mu.RLock()
	defer r.mu.RUnlock()
	all := make(map[types.NamespacedName]*Judged, len(r.scopes))
	for name, e := range r.scopes {
		if e.judged != nil {
			all[name] = e.judged
		}
	}
	return all
}

// entryFor returns the entry of a scope. It creates the entry if there is none, or if it belongs to an earlier scope of the same name.
func (r *Registry) entryFor(scope *corev1alpha2.HealthScope, now time.Time) *scopeEntry {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := client.ObjectKeyFromObject(scope)
	e := r.scopes[name]
	if e == nil || e.uid != scope.UID {
		e = &scopeEntry{uid: scope.UID, history: newHistory(&scope.Status), recorded: recordedHealth(scope, now), recordedFromStatus: true, inventory: recordedInventory(scope, now)}
		r.scopes[name] = e
	}
	return e
}

// put replaces the judgement of a scope that has an entry.
func (r *Registry) put(name types.NamespacedName, judged Judged) {
	r.mu.Lock()
	if e := r.scopes[name]; e != nil {
		e.judged = &judged
	}
	r.mu.Unlock()
	r.notify(name)
}

// remove removes a scope, and returns how many are left.
func (r *Registry) remove(name types.NamespacedName) int {
	r.mu.Lock()
	delete(r.scopes, name)
	left := len(r.scopes)
	r.mu.Unlock()
	r.notify(name)
	return left
}

func (r *Registry) notify(name types.NamespacedName) {
	for _, notify := range r.subscribers {
		notify(name)
	}
}
