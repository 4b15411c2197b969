package inventory

import (
	"context"
	"maps"
	"reflect"
	"slices"
	gosync "sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/mapping"
	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/controllers/scope"
	"github.com/healthscope/healthscope/healthscope"
)

// view is the part of fleet.View that has the bundles.
type view interface {
	Bundle(key fleet.BundleKey) *fleet.Bundle
}

// judgements is the part of scope.Registry that the inventory reads.
type judgements interface {
	Get(name types.NamespacedName) *scope.Judged
}

// clusterNamespace is a namespace of a cluster. All of its resources go to one tenant. Claims are kept by clusterNamespace,
// not by resource: that finds all candidates of a resource as well, and takes a fraction of the memory.
type clusterNamespace struct{ cluster, namespace string }

// inputs are what the desired state of A&AI is computed from: the judgements of scopes, and the bundles. A change marks
// resources as pending, and the next pass over their tenant decides these again: to decide all of a tenant for each change
// would be too much. It is safe for concurrent use.
type inputs struct {
	mapping  mapping.Options
	selects  configv1alpha1.InventorySelect
	registry judgements
	// trusted are the namespaces whose bundles may name resources of other namespaces, as the configuration says.
	trusted []string

	mu gosync.Mutex // guards the rest
	// view holds the bundles, and changes are those of it that have not been taken in yet.
	view    view
	changes *fleet.Subscription
	// wake is called for every tenant that has changed, and wakeModules for every VNF whose modules have. They must not block.
	wake        func(aai.Tenant)
	wakeModules func(vnf string)

	scopes  map[types.NamespacedName]scopeState
	bundles map[fleet.BundleKey]bundleState
	// guards are the last ones that were computed; nil after a change of what is computed from scopes and bundles.
	guards  *guards
	tenants map[aai.Tenant]*tenantState
}

// scopeState is what is known of a scope.
type scopeState struct {
	// created is when the scope was created; zero when it does not exist. generation is that of its present spec.
	created    time.Time
	generation int64
	// judged is its last judgement; nil when there is none.
	judged *scope.Judged
	// incomplete says, by where a bundle is, why the judgement does not know all that the bundle names.
	incomplete map[clusterNamespace]string
	// unmapped is true when the configuration names no place in A&AI for some of the resources.
	unmapped bool
	// modules is what the scope says of the modules that it names. Until it is judged, it lets no other scope say that one is well.
	modules statuses
}

// bundleState is what deletions must know of a bundle. A bundle for which it is zero is not kept.
type bundleState struct {
	// crossNamespace is true when the bundle has named resources outside its own namespace.
	crossNamespace bool
	// incomplete says why the bundle does not name all resources; empty when it does.
	incomplete string
	// claimed is the bundle as it claims resources; nil when bundles claim none.
	claimed *fleet.Bundle
}

// tenantState is what is known of a tenant.
type tenantState struct {
	// claims are the resources that each candidate claims.
	claims map[clusterNamespace]map[candidate][]scope.AppMember
	// owners are the owners of the resources of which A&AI is to hold something, by the last decision.
	owners map[healthscope.Key]candidate
	// pending are the resources to decide again, each with the time when its first change since the last decision was seen.
	// A resource that is disputed stays pending, with the zero time: each pass decides it again.
	pending map[clusterNamespace]map[healthscope.Key]time.Time
}

func newInputs(o mapping.Options, selects configv1alpha1.InventorySelect, registry judgements, trusted []string) *inputs {
	return &inputs{
		changes: fleet.NewSubscription(),
		mapping: o, selects: selects, registry: registry, trusted: trusted, wake: func(aai.Tenant) {}, wakeModules: func(string) {},
		scopes: map[types.NamespacedName]scopeState{}, bundles: map[fleet.BundleKey]bundleState{},
		tenants: map[aai.Tenant]*tenantState{},
	}
}

// onChange makes the inputs call wake for every tenant that has changed.
func (i *inputs) onChange(wake func(aai.Tenant)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.wake = wake
}

// onModuleChange makes the inputs call wake for every VNF whose modules have changed.
func (i *inputs) onModuleChange(wake func(vnf string)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.wakeModules = wake
}

// scopeChanged takes in that a scope exists.
func (i *inputs) scopeChanged(s *corev1alpha2.HealthScope) {
	i.changeScope(ctrlclient.ObjectKeyFromObject(s), func(now *scopeState) {
		now.created, now.generation = s.CreationTimestamp.Time, s.Generation
	})
}

// scopeDeleted records that a scope was deleted.
func (i *inputs) scopeDeleted(name types.NamespacedName) {
	i.changeScope(name, func(now *scopeState) { now.created, now.generation = time.Time{}, 0 })
}

// modulesNamed takes in which modules a scope names, unless its judgement says more.
func (i *inputs) modulesNamed(s *corev1alpha2.HealthScope) {
	name := ctrlclient.ObjectKeyFromObject(s)
	var apps []scope.LinkedApp // Without a judgement, nothing is known of their modules.
	for _, app := range s.Spec.Apps {
		if app.Inventory != nil {
			apps = append(apps, scope.LinkedApp{Links: *app.Inventory})
		}
	}
	i.changeScope(name, func(now *scopeState) {
		if now.judged == nil {
			now.modules = i.modulesOf(name, apps)
		}
	})
}

// scopeJudged reads the current judgement of a scope from the registry. A deleted scope has none.
func (i *inputs) scopeJudged(name types.NamespacedName) {
	i.changeScope(name, func(now *scopeState) {
		now.judged, now.modules = i.registry.Get(name), nil
		now.incomplete = incompleteIn(name, now.judged)
		if now.judged != nil {
			now.modules = i.modulesOf(name, now.judged.LinkedApps)
		}
	})
}

// changeScope changes what is known of a scope.
func (i *inputs) changeScope(name types.NamespacedName, change func(*scopeState)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	before := i.scopes[name]
	now := before
	change(&now)
	var tenants map[aai.Tenant]bool
	if ageChanged := !before.created.Equal(now.created); ageChanged || before.judged != now.judged {
		tenants, now.unmapped = i.claim(candidate{NamespacedName: name}, before.members(), now.members(), ageChanged)
	}
	if i.scopes[name] = now; !now.exists() && now.judged == nil && len(now.modules) == 0 {
		delete(i.scopes, name)
	}
	for _, vnf := range changedVNFs(before.modules, now.modules) {
		i.wakeModules(vnf)
	}
	sameGuards := before.sameGuards(now)
	if !sameGuards {
		i.guards = nil
	}
	if sameGuards || now.unjudged() { // In the latter case its judgement wakes the others.
		i.wakeTenants(tenants)
	} else {
		i.wakeAll()
	}
}

// follow applies changes of the view until ctx ends.
func (i *inputs) follow(ctx context.Context) {
	for {
		i.mu.Lock()
		i.applyViewChanges()
		i.mu.Unlock()
		select {
		case <-i.changes.Ready():
		case <-ctx.Done():
			return
		}
	}
}

// applyViewChanges applies all pending changes of the view. The caller holds the lock.
func (i *inputs) applyViewChanges() {
	clusters := false
	for _, c := range i.changes.Take() {
		if b, ok := c.(fleet.BundleChange); ok {
			i.bundleChanged(b.BundleKey, i.view.Bundle(b.BundleKey))
		} else {
			clusters = true
		}
	}
	if clusters {
		i.wakeAll()
	}
}

// bundleChanged stores the current state of a bundle; nil when it was deleted. The caller holds the lock.
func (i *inputs) bundleChanged(key fleet.BundleKey, b *fleet.Bundle) {
	before, now := i.bundles[key], bundleState{}
	if b != nil {
		now = newBundleState(b, before, i.selects == configv1alpha1.SelectAll)
	}
	if i.bundles[key] = now; now == (bundleState{}) {
		delete(i.bundles, key)
	}
	var tenants map[aai.Tenant]bool
	if i.selects == configv1alpha1.SelectAll {
		tenants, _ = i.claim(bundleCandidate(key), membersOf(before.claimed), membersOf(now.claimed), false)
	}
	if before.crossNamespace == now.crossNamespace && before.incomplete == now.incomplete {
		i.wakeTenants(tenants)
		return
	}
	i.guards = nil
	i.wakeAll()
}

// wakeAll wakes all tenants, because what must not be deleted may have changed.
func (i *inputs) wakeAll() {
	for _, tenant := range i.mapping.Tenants() {
		i.wake(tenant)
	}
}

func (i *inputs) wakeTenants(tenants map[aai.Tenant]bool) {
	for _, tenant := range slices.SortedFunc(maps.Keys(tenants), aai.Tenant.Compare) {
		i.wake(tenant)
	}
}

// exists reports whether the scope exists.
func (s scopeState) exists() bool { return !s.created.IsZero() }

// members returns what a scope claims.
func (s scopeState) members() []scope.AppMember {
	if s.judged == nil {
		return nil
	}
	return s.judged.Members
}

// membersOf returns the members of a bundle as those of a scope; none for nil.
func membersOf(b *fleet.Bundle) []scope.AppMember {
	if b == nil {
		return nil
	}
	list := make([]scope.AppMember, len(b.Members))
	for n := range b.Members {
		list[n] = scope.AppMember{Member: &b.Members[n]}
	}
	return list
}

// claim replaces what a candidate claims. What differs, or all if the age of the candidate has changed, is pending then. It
// returns the tenants of these resources, and whether the configuration names no place in A&AI for some of those claimed.
func (i *inputs) claim(by candidate, before, after []scope.AppMember, ageChanged bool) (tenants map[aai.Tenant]bool, unmapped bool) {
	claims := map[clusterNamespace][]scope.AppMember{}
	for _, p := range before {
		claims[clusterNamespace{p.Cluster, p.Namespace}] = nil
	}
	for _, p := range after {
		at := clusterNamespace{p.Cluster, p.Namespace}
		claims[at] = append(claims[at], p)
	}
	tenants = map[aai.Tenant]bool{}
	for at, members := range claims {
		place, mapped := mapping.KeyFor(healthscope.Key{Cluster: at.cluster, Namespace: at.namespace}, i.mapping)
		if !mapped {
			unmapped = unmapped || slices.ContainsFunc(members, func(p scope.AppMember) bool {
				return mapping.Map(resourceOf(by.scope(), p), i.mapping).Decision == mapping.Unmapped
			})
		} else if i.tenant(place.Tenant).claim(by, at, members, ageChanged) {
			tenants[place.Tenant] = true
		}
	}
	return tenants, unmapped
}

// claim replaces what a candidate claims in a clusterNamespace, and reports whether that differs.
func (t *tenantState) claim(by candidate, at clusterNamespace, members []scope.AppMember, ageChanged bool) bool {
	changed := changedResources(t.claims[at][by], members, ageChanged)
	if len(changed) == 0 {
		return false
	}
	putNested(t.claims, at, by, members)
	if len(members) == 0 {
		delete(t.claims[at], by)
	}
	if len(t.claims[at]) == 0 {
		delete(t.claims, at)
	}
	for _, key := range changed {
		if t.pending[at][key].IsZero() {
			putNested(t.pending, at, key, time.Now())
		}
	}
	return true
}

// putNested sets a value in a map of maps.
func putNested[K comparable, V any](all map[clusterNamespace]map[K]V, at clusterNamespace, key K, value V) {
	if all[at] == nil {
		all[at] = map[K]V{}
	}
	all[at][key] = value
}

// changedResources returns the resources that differ between two lists, or that only one of them has. If all is true, it returns the resources of both lists.
// The lists share unchanged members, so most comparisons compare equal pointers.
func changedResources(before, after []scope.AppMember, all bool) []healthscope.Key {
	var keys []healthscope.Key
	known := make(map[healthscope.Key]scope.AppMember, len(before))
	for _, p := range before {
		known[p.Key] = p
	}
	for _, p := range after {
		if was, ok := known[p.Key]; all || !ok || was != p && !reflect.DeepEqual(was, p) {
			keys = append(keys, p.Key)
		}
		delete(known, p.Key)
	}
	return slices.AppendSeq(keys, maps.Keys(known))
}

// unmapped reports whether the configuration names no place in A&AI for some resources of scopes.
func (i *inputs) unmapped() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, s := range i.scopes {
		if s.unmapped {
			return true
		}
	}
	return false
}

// tenant returns the state of a tenant.
func (i *inputs) tenant(tenant aai.Tenant) *tenantState {
	t := i.tenants[tenant]
	if t == nil {
		t = &tenantState{
			claims: map[clusterNamespace]map[candidate][]scope.AppMember{}, owners: map[healthscope.Key]candidate{},
			pending: map[clusterNamespace]map[healthscope.Key]time.Time{},
		}
		i.tenants[tenant] = t
	}
	return t
}

// olderOwner returns the scope that owns a resource in place of another, younger one; false when there is none.
func (i *inputs) olderOwner(name types.NamespacedName, tenant aai.Tenant, key healthscope.Key) (owner types.NamespacedName, ok bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	by, ok := i.tenant(tenant).owners[key]
	other := candidate{NamespacedName: name}
	return by.scope(), ok && by != other && i.compareAge(by, other) < 0
}

// scopesOf returns the scopes that claim resources of a tenant: those that claim some of them, or all when these are nil.
func (i *inputs) scopesOf(tenant aai.Tenant, resources map[healthscope.Key]bool) map[types.NamespacedName]bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	all := i.tenant(tenant).claims
	in := map[clusterNamespace]map[candidate][]scope.AppMember{}
	for key := range resources {
		at := clusterNamespace{key.Cluster, key.Namespace}
		in[at] = all[at]
	}
	if resources == nil {
		in = all
	}
	found := map[types.NamespacedName]bool{}
	for _, claims := range in {
		for by, members := range claims {
			if by.cluster == "" && (resources == nil || slices.ContainsFunc(members, func(p scope.AppMember) bool { return resources[p.Key] })) {
				found[by.NamespacedName] = true
			}
		}
	}
	return found
}
