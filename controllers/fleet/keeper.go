package fleet

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/healthscope/healthscope/healthscope"
)

// keeper keeps a view in step with the bundles of one cluster. Each member has its own goroutine for that: who judges all
// bundles of a large cluster, or waits until that is done, has no time for those of others.
type keeper struct {
	cluster string
	view    *View
	policy  healthscope.Policy
	clock   clock.WithTicker
	// queue are the bundles that have changed.
	queue workqueue.TypedDelayingInterface[types.NamespacedName]
	// wake is called when the first bundle of a monitor comes, or the last one goes. It does not block.
	wake func()

	// mu keeps an older reading of a bundle from being put into the view after a newer one.
	mu sync.Mutex
	// store is where the bundles are; nil until some have been read.
	store *bundleStore
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

func newKeeper(cluster string, v *View, policy healthscope.Policy, c clock.WithTicker, past map[healthscope.Key]Seen, wake func()) *keeper {
	return &keeper{
		cluster: cluster, view: v, policy: policy, clock: c, wake: wake,
		// A queue with a name would wake twice a second for its metrics.
		queue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[types.NamespacedName]{Clock: c}),
		state: ClusterState{Reachability: Connecting}, allowed: func(string) bool { return true }, memories: map[BundleKey]*memory{}, past: past,
	}
}

// changed says that a bundle has changed. It does not block.
func (k *keeper) changed(name types.NamespacedName) { k.queue.Add(name) }

// run looks at bundles that have changed until ctx ends, and the queue is shut down.
func (k *keeper) run(ctx context.Context) {
	for {
		name, shutdown := k.queue.Get()
		if shutdown {
			return
		}
		if ctx.Err() == nil {
			own, foreign := k.view.filled(k.cluster)
			k.look(name)
			if ownNow, foreignNow := k.view.filled(k.cluster); own != ownNow || foreign != foreignNow {
				k.wake() // Now the monitor matters, or does not any more.
			}
		}
		k.queue.Done(name)
	}
}

// look puts what a bundle is like now into the view, as far as that can be known.
func (k *keeper) look(name types.NamespacedName) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.store == nil {
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

// stock makes the view hold the bundles of a store, and no others, from now on; nil means those of the store it has.
func (k *keeper) stock(s *bundleStore) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s != nil {
		k.store = s
	}
	if k.store == nil {
		return
	}
	there := map[types.NamespacedName]bool{}
	for _, name := range k.store.all() {
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

// clear forgets the store. What the view holds stays there as it is, or goes too if it is to be dropped.
func (k *keeper) clear(drop bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.store = nil
	if drop {
		for _, name := range k.view.names(k.cluster) {
			k.put(name, nil)
		}
	}
}

// stocked says whether there is a store.
func (k *keeper) stocked() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.store != nil
}

// allow says from which namespaces bundles may be shown from now on. Those in the store are shown again.
func (k *keeper) allow(allowed func(namespace string) bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.allowed = allowed
	for _, name := range k.view.names(k.cluster) {
		if !allowed(name.Namespace) {
			k.put(name, nil)
		}
	}
	if k.store == nil {
		return
	}
	for _, name := range k.store.all() {
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
	return k.store.get(name)
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
		k.queue.AddAfter(name, after)
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
