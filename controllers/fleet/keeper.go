package fleet

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/healthscope/healthscope/healthscope"
)

// shelf is where a keeper finds bundles: a connection.
type shelf interface {
	get(types.NamespacedName) *held
	all() []types.NamespacedName
}

// keeper keeps a view in step with the bundles of one cluster.
type keeper struct {
	cluster string
	view    *View
	policy  healthscope.Policy
	clock   clock.PassiveClock
	// again asks for another look at a bundle after a time.
	again func(BundleKey, time.Duration)

	// mu keeps an older reading of a bundle from being put into the view after a newer one.
	mu sync.Mutex
	// shelf is where the bundles are; nil until some have been read.
	shelf shelf
	// state is the cluster's, as the view is about to show it: what changes after all has been read is read again, and nothing that is not seen.
	state ClusterState
	// allowed says from which namespaces bundles may be shown.
	allowed func(namespace string) bool
	// memories are of the bundles of monitors that keep no time.
	memories map[BundleKey]*memory
	// past is what is remembered from before a restart; nil once all bundles have been judged.
	past map[healthscope.Key]Seen
}

// memory is of one bundle.
type memory struct {
	*Memory

	uid types.UID
}

// look puts what a bundle is like now into the view, as far as that can be known.
func (k *keeper) look(name types.NamespacedName) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.shelf == nil {
		return // All is looked at when there is something to see.
	}
	h := k.find(name)
	switch {
	case h == nil && (k.state.Answers() || k.state.Reachability == Connecting):
		k.put(name, nil)
	case h != nil && (k.state.Reachability == Connecting || !k.state.hides(h.contents.Own)):
		k.put(name, h)
	}
}

// follow says what the cluster's state is, before the view shows it.
func (k *keeper) follow(state ClusterState) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.state = state
}

// stock makes the view hold the bundles of a shelf, and no others, from now on; nil means those of the shelf it has.
func (k *keeper) stock(s shelf) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s != nil {
		k.shelf = s
	}
	if k.shelf == nil {
		return
	}
	there := map[types.NamespacedName]bool{}
	for _, name := range k.shelf.all() {
		if h := k.find(name); h != nil {
			there[name] = true
			k.put(name, h)
		}
	}
	for _, name := range k.view.names(k.cluster) {
		if !there[name] {
			k.put(name, nil)
		}
	}
	k.past = nil
}

// clear forgets the shelf. What the view holds stays there as it is, or goes too if it is to be dropped.
func (k *keeper) clear(drop bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.shelf = nil
	if drop {
		for _, name := range k.view.names(k.cluster) {
			k.put(name, nil)
		}
	}
}

// stocked says whether there is a shelf.
func (k *keeper) stocked() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.shelf != nil
}

// allow says from which namespaces bundles may be shown from now on. Those on the shelf are shown again.
func (k *keeper) allow(allowed func(namespace string) bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.allowed = allowed
	for _, name := range k.view.names(k.cluster) {
		if !allowed(name.Namespace) {
			k.put(name, nil)
		}
	}
	if k.shelf == nil {
		return
	}
	for _, name := range k.shelf.all() {
		if k.view.judged(BundleKey{Cluster: k.cluster, Namespace: name.Namespace, Name: name.Name}) != nil {
			continue
		}
		if h := k.find(name); h != nil {
			k.put(name, h)
		}
	}
}

func (k *keeper) find(name types.NamespacedName) *held {
	if !k.allowed(name.Namespace) {
		return nil
	}
	return k.shelf.get(name)
}

// put puts a bundle into the view, or with nil removes it.
func (k *keeper) put(name types.NamespacedName, h *held) {
	key := BundleKey{Cluster: k.cluster, Namespace: name.Namespace, Name: name.Name}
	if h == nil {
		delete(k.memories, key)
		k.view.put(key, nil)
		return
	}
	if after := k.judge(key, h); after > 0 {
		k.again(key, after)
	}
}

// judge puts a bundle into the view and returns when to look at it again; zero means when it changes.
func (k *keeper) judge(key BundleKey, h *held) time.Duration {
	now := k.clock.Now()
	results := slices.Clone(h.contents.Results) // Others judge the same ones again.
	if h.contents.Own {
		delete(k.memories, key)
	} else {
		results = k.resume(key, h.UID, results, now)
	}
	k.policy.Remember(results, k.before(key, h.UID, results))
	verdict := healthscope.Judge(results, k.policy, now)
	k.view.put(key, &Bundle{
		BundleKey: key, UID: h.UID, ResourceVersion: h.ResourceVersion, App: h.app, Labels: h.Labels,
		Own: h.contents.Own, Observed: h.contents.Observed, Truncated: h.contents.Truncated, Malformed: h.contents.Malformed,
		Members: verdict.Members, Unlisted: h.contents.Unlisted, Written: h.written, Outdated: h.outdated,
	})
	return healthscope.Until(verdict.NextCheck, now)
}

// before returns what was said of the resources of a bundle last, sorted by key.
func (k *keeper) before(key BundleKey, uid types.UID, results []healthscope.Result) []healthscope.Member {
	if b := k.view.judged(key); b != nil && b.UID == uid {
		return b.Members
	}
	var members []healthscope.Member
	for i, result := range results {
		if was, ok := k.past[result.Key]; ok && (i == 0 || results[i-1].Key != result.Key) {
			members = append(members, was.Member(result.Key))
		}
	}
	return members
}

// resume returns the results of a bundle whose monitor keeps no time, each
// object once, with the time since when the hub sees them in their state.
func (k *keeper) resume(key BundleKey, uid types.UID, results []healthscope.Result, now time.Time) []healthscope.Result {
	m := k.memories[key]
	if m == nil || m.uid != uid {
		m = &memory{Memory: NewMemory(recall(k.past, results)), uid: uid}
		k.memories[key] = m
	}
	return m.Resume(results, k.policy, now)
}
