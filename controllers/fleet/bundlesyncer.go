package fleet

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/healthscope/healthscope/healthscope"
)

// bundleSyncer judges the bundles of one cluster and stores them in the view. Each member has one, with a goroutine of its
// own, because judging all bundles of a large cluster takes long.
type bundleSyncer struct {
	cluster string
	view    *View
	policy  healthscope.Policy
	clock   clock.WithTicker
	// queue are the bundles that have changed.
	queue workqueue.TypedDelayingInterface[types.NamespacedName]
	// wake is called when the first bundle of a monitor comes, or the last one goes. It does not block.
	wake func()

	// mu ensures that the view never gets an older version of a bundle after a newer one, nor one that was judged in an older state of the cluster.
	mu sync.Mutex
	// store is where the bundles are; nil until some have been read.
	store bundleStore
	// allowed reports whether bundles of a namespace may be shown.
	allowed func(namespace string) bool
	// memories hold the times for bundles of monitors that keep none.
	memories map[BundleKey]*memory
	// past is what is known from before a restart; nil once all bundles have been judged.
	past map[healthscope.Key]Seen
}

// memory is of one bundle.
type memory struct {
	*Memory

	uid types.UID
}

func newBundleSyncer(cluster string, v *View, policy healthscope.Policy, c clock.WithTicker, past map[healthscope.Key]Seen, wake func()) *bundleSyncer {
	return &bundleSyncer{
		cluster: cluster, view: v, policy: policy, clock: c, wake: wake,
		// A queue with a name would wake twice a second for its metrics.
		queue:   workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[types.NamespacedName]{Clock: c}),
		allowed: func(string) bool { return true }, memories: map[BundleKey]*memory{}, past: past,
	}
}

// changed queues a bundle that has changed. It does not block.
func (k *bundleSyncer) changed(name types.NamespacedName) { k.queue.Add(name) }

// run syncs bundles that have changed until the queue is shut down. It does nothing more once ctx has ended.
func (k *bundleSyncer) run(ctx context.Context) {
	for {
		name, shutdown := k.queue.Get()
		if shutdown {
			return
		}
		if ctx.Err() == nil {
			own, foreign := k.view.filled(k.cluster)
			k.sync(name)
			if ownNow, foreignNow := k.view.filled(k.cluster); own != ownNow || foreign != foreignNow {
				k.wake() // Whether the monitor lives matters only if it has filled bundles.
			}
		}
		k.queue.Done(name)
	}
}

// sync stores a bundle as it is now in the view, unless it is stale: then it stays as it was judged last.
func (k *bundleSyncer) sync(name types.NamespacedName) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.store == nil {
		return // All bundles are synced once they have been read.
	}
	h := k.get(name)
	state, _ := k.view.State(k.cluster)
	switch {
	case h == nil && (state.Answers() || state.Reachability == Connecting):
		k.put(name, nil)
	case h != nil && (state.Reachability == Connecting || !state.isStale(h.contents.Own)):
		k.put(name, h)
	}
}

// setState has the view show the cluster in a state. What has changed while bundles were stale shows together with it.
func (k *bundleSyncer) setState(state ClusterState) {
	k.mu.Lock()
	defer k.mu.Unlock()
	before, _ := k.view.State(k.cluster)
	if k.store != nil && !before.Reachable() && before.Reachability != Connecting {
		for name := range k.names() {
			h := k.get(name)
			if h == nil && state.Answers() || h != nil && before.isStale(h.contents.Own) && !state.isStale(h.contents.Own) {
				k.put(name, h)
			}
		}
	}
	k.view.setState(state)
}

// resync makes the bundles of a store, and no others, those of the view.
func (k *bundleSyncer) resync(s bundleStore) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.store = s
	for name := range k.names() {
		k.put(name, k.get(name))
	}
	k.past = nil
}

// restrict sets from which namespaces bundles may be shown, and adds to the view, or removes from it, what that changes.
func (k *bundleSyncer) restrict(allowed func(namespace string) bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.allowed = allowed
	for name := range k.names() {
		if !allowed(name.Namespace) || k.view.judged(k.key(name)) == nil {
			k.put(name, k.get(name))
		}
	}
}

// reset drops the store. The bundles stay in the view as they are, or are removed with drop.
func (k *bundleSyncer) reset(drop bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.store = nil
	if !drop {
		return
	}
	for name := range k.names() {
		k.put(name, nil)
	}
}

// names returns the names of all bundles that are in the store or in the view.
func (k *bundleSyncer) names() sets.Set[types.NamespacedName] {
	return sets.New(k.store.names()...).Insert(k.view.names(k.cluster)...)
}

func (k *bundleSyncer) key(name types.NamespacedName) BundleKey {
	return BundleKey{Cluster: k.cluster, Namespace: name.Namespace, Name: name.Name}
}

func (k *bundleSyncer) get(name types.NamespacedName) *cachedBundle {
	if !k.allowed(name.Namespace) {
		return nil
	}
	return k.store.get(name)
}

// put puts a bundle into the view, or with nil removes it.
func (k *bundleSyncer) put(name types.NamespacedName, h *cachedBundle) {
	key := k.key(name)
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
func (k *bundleSyncer) judge(key BundleKey, h *cachedBundle) time.Duration {
	now := k.clock.Now()
	results := slices.Clone(h.contents.Results) // They are judged again later.
	if h.contents.Own {
		delete(k.memories, key)
	} else {
		results = k.resume(key, h.UID, results, now)
	}
	k.policy.WithHistory(results, k.previous(key, h.UID, results))
	judgement := healthscope.Judge(results, k.policy, now)
	k.view.put(key, &Bundle{
		BundleKey: key, UID: h.UID, ResourceVersion: h.ResourceVersion, App: h.app, Labels: h.Labels,
		Own: h.contents.Own, Observed: h.contents.Observed, Truncated: h.contents.Truncated, Malformed: h.contents.Malformed,
		Members: judgement.Members, Unlisted: h.contents.Unlisted, Written: h.written, Outdated: h.outdated,
	})
	return healthscope.Until(judgement.NextCheck, now)
}

// previous returns the last judgement of the resources of a bundle, sorted by key.
func (k *bundleSyncer) previous(key BundleKey, uid types.UID, results []healthscope.Result) []healthscope.Member {
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
func (k *bundleSyncer) resume(key BundleKey, uid types.UID, results []healthscope.Result, now time.Time) []healthscope.Result {
	m := k.memories[key]
	if m == nil || m.uid != uid {
		m = &memory{Memory: NewMemory(recall(k.past, results)), uid: uid}
		k.memories[key] = m
	}
	return m.Resume(results, k.policy, now)
}
