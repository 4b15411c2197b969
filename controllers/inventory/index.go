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
	"github.com/healthscope/healthscope/aai/sync"
	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/controllers/scope"
	"github.com/healthscope/healthscope/healthscope"
)

// judgements is the part of scope.Registry that the inventory reads.
type judgements interface {
	Get(name types.NamespacedName) *scope.Judged
}

// claimant is who wants a resource to be in A&AI: a scope, or without one a bundle.
type claimant struct {
	scope  types.NamespacedName
	bundle fleet.BundleKey
}

// existing is what is known of a scope that exists.
type existing struct {
	created    time.Time
	generation int64
}

// bundlePlace is where a bundle is.
type bundlePlace struct{ cluster, namespace string }

// dirt is a resource whose wish may be another than before.
type dirt struct {
	resource healthscope.Key
	seen     time.Time
}

// index knows which resources go to A&AI and why, and which of them have changed
// since they were asked for last. It learns of changes one by one, so a change
// costs as much as the scope that it is in, however many there are. It is safe
// for concurrent use.
type index struct {
	mapping  mapping.Options
	selects  configv1alpha1.InventorySelect
	registry judgements
	clock    func() time.Time

	mu gosync.Mutex // guards the rest
	// changed is told of tenants for which there is something new.
	changed func(aai.Tenant)
	// scopes are the scopes that exist, and judged those that were judged.
	scopes map[types.NamespacedName]existing
	judged map[types.NamespacedName]*scope.Judged
	// late are the scopes whose present spec has not been judged; never are those that have not been judged at all.
	late, never map[types.NamespacedName]bool
	// claims are, for each resource, who wants it in A&AI.
	claims map[healthscope.Key]map[claimant]scope.Placed
	// holds say, by whom and by where a bundle is, why nothing is deleted of what the bundle may speak of.
	holds map[claimant]map[bundlePlace]string
	// arrivals are the numbers, by cluster, with which clusters have come into sight, latest is the highest that there was, and behind are, by namespace, the scopes that were judged before that one.
	arrivals map[string]uint64
	latest   uint64
	behind   map[string]map[types.NamespacedName]bool
	// lateIn counts the late scopes by namespace.
	lateIn map[string]int
	// trusted are the namespaces whose bundles speak of whole clusters: those of the configuration, and by bundle those that are seen to do so.
	trusted   []string
	farSeeing map[string]map[fleet.BundleKey]bool
	// dirty are the resources to ask for, by place; contested are those that a scope may claim that was not judged.
	dirty     map[aai.Tenant]map[aai.Key]dirt
	contested map[aai.Tenant]map[aai.Key]healthscope.Key
	// rivals are the scopes that share a resource with another, if that has changed.
	rivals map[types.NamespacedName]bool
}

func newIndex(o mapping.Options, selects configv1alpha1.InventorySelect, registry judgements, trusted []string) *index {
	return &index{
		mapping: o, selects: selects, registry: registry, trusted: trusted, clock: time.Now, changed: func(aai.Tenant) {},
		scopes: map[types.NamespacedName]existing{}, judged: map[types.NamespacedName]*scope.Judged{},
		late: map[types.NamespacedName]bool{}, never: map[types.NamespacedName]bool{},
		claims: map[healthscope.Key]map[claimant]scope.Placed{}, holds: map[claimant]map[bundlePlace]string{},
		arrivals: map[string]uint64{}, behind: map[string]map[types.NamespacedName]bool{},
		lateIn: map[string]int{}, farSeeing: map[string]map[fleet.BundleKey]bool{},
		dirty: map[aai.Tenant]map[aai.Key]dirt{}, contested: map[aai.Tenant]map[aai.Key]healthscope.Key{},
		rivals: map[types.NamespacedName]bool{},
	}
}

// onChange makes the index call f for every tenant for which there is something new. f must not block.
func (i *index) onChange(f func(aai.Tenant)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.changed = f
}

// scopeExists notes a scope that exists, or exists in another generation.
func (i *index) scopeExists(name types.NamespacedName, created time.Time, generation int64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	before := i.scopes[name]
	i.scopes[name] = existing{created: created, generation: generation}
	if j := i.judged[name]; j != nil && !before.created.Equal(created) {
		for _, p := range j.Members { // It may be older than others that have the same.
			i.touch(p.Key)
		}
	}
	i.settle(name)
}

// scopeGone notes that a scope does not exist any more.
func (i *index) scopeGone(name types.NamespacedName) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.scopes, name)
	i.settle(name)
}

// scopeJudged takes in what is new in the judgement of a scope.
func (i *index) scopeJudged(name types.NamespacedName) {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := i.registry.Get(name)
	var before, after []scope.Placed
	if j := i.judged[name]; j != nil {
		before = j.Members
	}
	delete(i.judged, name)
	holds := map[bundlePlace]string{}
	if now != nil {
		i.judged[name] = now
		after = now.Members
		for _, p := range after {
			if p.Kind == k8spluginv1alpha1.ResourceBundleStateKind && (p.Reason == healthscope.ReasonMalformedBundle || p.Reason == healthscope.ReasonNotObserved) {
				holds[bundlePlace{p.Cluster, p.Namespace}] = fmt.Sprintf("bundle %q, which scope %q refers to, does not tell what there is: %s", p.Namespace+"/"+p.Name, name, p.Reason)
			}
		}
		for _, cluster := range now.Partial {
			at := bundlePlace{cluster, name.Namespace}
			if holds[at] == "" { // It lasts until the next judgement, also when its cause is over before.
				holds[at] = fmt.Sprintf("scope %q has been judged without all that there is in cluster %q", name, cluster)
			}
		}
	}
	by := claimant{scope: name}
	i.claim(by, before, after)
	i.hold(by, holds)
	i.catchUp(name)
	i.settle(name)
}

// bundleChanged takes in what is new in a bundle.
func (i *index) bundleChanged(c fleet.Change) {
	i.mu.Lock()
	defer i.mu.Unlock()
	all := i.selects == configv1alpha1.SelectAll
	var by claimant
	var before, after []scope.Placed
	holds := map[bundlePlace]string{}
	if c.Old != nil {
		by.bundle = c.Old.BundleKey
		before = placedOf(c.Old)
	}
	if b := c.New; b != nil {
		by.bundle = b.BundleKey
		after = placedOf(b)
		if b.Truncated || len(b.Malformed) > 0 || !b.Observed && all {
			holds[bundlePlace{b.Cluster, b.Namespace}] = fmt.Sprintf("bundle %q does not tell all that there is: it is %s", b.Namespace+"/"+b.Name, defect(b))
		}
	}
	i.observe(by.bundle, c.New)
	if all {
		i.claim(by, before, after)
	}
	i.hold(by, holds)
}

// observe notes whether a bundle is seen to speak of more than its own namespace; nil when it is gone. What it once spoke of, it may speak of still when it does not tell all.
func (i *index) observe(key fleet.BundleKey, b *fleet.Bundle) {
	if b == nil {
		delete(i.farSeeing[key.Namespace], key)
		return
	}
	if !slices.ContainsFunc(b.Members, func(m healthscope.Member) bool { return m.Namespace != b.Namespace }) {
		return
	}
	if i.farSeeing[key.Namespace] == nil {
		i.farSeeing[key.Namespace] = map[fleet.BundleKey]bool{}
	}
	i.farSeeing[key.Namespace][key] = true
}

// defect says what is wrong with a bundle.
func defect(b *fleet.Bundle) string {
	switch {
	case b.Truncated:
		return "truncated"
	case len(b.Malformed) > 0:
		return "not readable"
	default:
		return "not filled by a monitor"
	}
}

// placedOf returns the members of a bundle as those of a scope.
func placedOf(b *fleet.Bundle) []scope.Placed {
	list := make([]scope.Placed, len(b.Members))
	for n := range b.Members {
		list[n] = scope.Placed{Member: &b.Members[n]}
	}
	return list
}

// claim replaces what somebody wants to be in A&AI. Resources that have no place there are left out.
func (i *index) claim(by claimant, before, after []scope.Placed) {
	before, after = differing(before, after)
	now := make(map[healthscope.Key]scope.Placed, len(after))
	for _, p := range after {
		if _, twice := now[p.Key]; !twice && i.mapped(p.Key) {
			now[p.Key] = p
		}
	}
	for _, p := range before {
		if _, stays := now[p.Key]; !stays && i.mapped(p.Key) {
			i.touch(p.Key)
			delete(i.claims[p.Key], by)
			if len(i.claims[p.Key]) == 0 {
				delete(i.claims, p.Key)
			}
		}
	}
	for key, p := range now {
		old, had := i.claims[key][by]
		if had && reflect.DeepEqual(old, p) {
			continue
		}
		if i.claims[key] == nil {
			i.claims[key] = map[claimant]scope.Placed{}
		}
		i.claims[key][by] = p
		i.touch(key)
	}
}

// differing returns of two lists what is not the very same in both: of a large scope, most is.
func differing(before, after []scope.Placed) (gone, come []scope.Placed) {
	known := make(map[*healthscope.Member]int, len(before))
	for n, p := range before {
		known[p.Member] = n
	}
	stays := make([]bool, len(before))
	for _, p := range after {
		if n, ok := known[p.Member]; ok && before[n] == p {
			stays[n] = true
		} else {
			come = append(come, p)
		}
	}
	for n, p := range before {
		if !stays[n] {
			gone = append(gone, p)
		}
	}
	return gone, come
}

// mapped says whether a resource has a place in A&AI.
func (i *index) mapped(key healthscope.Key) bool {
	_, ok := mapping.Place(key, i.mapping)
	return ok
}

// touch notes that the wish for a resource may be another.
func (i *index) touch(key healthscope.Key) {
	if len(i.claims[key]) > 1 {
		for by := range i.claims[key] {
			i.rivals[by.scope] = true
		}
	}
	place, ok := mapping.Place(key, i.mapping)
	if !ok {
		return
	}
	if i.dirty[place.Tenant] == nil {
		i.dirty[place.Tenant] = map[aai.Key]dirt{}
	}
	if _, already := i.dirty[place.Tenant][place]; !already {
		i.dirty[place.Tenant][place] = dirt{resource: key, seen: i.clock()}
	}
	i.changed(place.Tenant)
}

// hold replaces why somebody holds deletions back.
func (i *index) hold(by claimant, holds map[bundlePlace]string) {
	if maps.Equal(i.holds[by], holds) {
		return
	}
	delete(i.holds, by)
	if len(holds) > 0 {
		i.holds[by] = holds
	}
	i.allChanged()
}

// settle finds out whether a scope is judged.
func (i *index) settle(name types.NamespacedName) {
	scope, exists := i.scopes[name]
	judged := i.judged[name]
	wasLate, wasNever := i.late[name], i.never[name]
	mark(i.late, name, exists && (judged == nil || judged.Generation < scope.generation))
	mark(i.never, name, exists && judged == nil)
	if wasNever != i.never[name] {
		for tenant := range i.contested {
			i.changed(tenant)
		}
	}
	switch {
	case !wasLate && i.late[name]:
		i.lateIn[name.Namespace]++
	case wasLate && !i.late[name]:
		if i.lateIn[name.Namespace]--; i.lateIn[name.Namespace] == 0 {
			delete(i.lateIn, name.Namespace)
			i.allChanged()
		}
	}
}

func mark(set map[types.NamespacedName]bool, name types.NamespacedName, in bool) {
	delete(set, name)
	if in {
		set[name] = true
	}
}

func (i *index) allChanged() {
	for _, tenant := range i.mapping.Tenants() {
		i.changed(tenant)
	}
}

// news is what has changed for a tenant since it was asked last.
type news struct {
	sync.Change
	// partial is true when a scope has not been judged yet.
	partial bool
	// rivals are scopes for which it has changed with whom they share resources.
	rivals []types.NamespacedName
}

// take returns what has changed for a tenant, and forgets it.
func (i *index) take(tenant aai.Tenant, clusters []string) news {
	i.mu.Lock()
	defer i.mu.Unlock()
	n := news{
		Change:  sync.Change{Wishes: map[aai.Key]sync.Wish{}, Deletions: i.heldDeletions(), Existing: clusters},
		partial: len(i.late) > 0,
		rivals:  slices.SortedFunc(maps.Keys(i.rivals), compareNames),
	}
	dirty, contested := i.dirty[tenant], i.contested[tenant]
	delete(i.dirty, tenant)
	delete(i.contested, tenant)
	clear(i.rivals)
	for place, key := range contested {
		if _, already := dirty[place]; !already {
			n.Wishes[place] = i.wish(place, key)
		}
	}
	for place, d := range dirty {
		w := i.wish(place, d.resource)
		w.Seen = d.seen
		n.Wishes[place] = w
	}
	return n
}

// settled reports whether every scope that exists has been judged.
func (i *index) settled() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.late) == 0
}
