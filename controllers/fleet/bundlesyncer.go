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

// bundleSyncer judges the bundles of one cluster and stores them in the view. Each member has a syncer with its own
// goroutine, because judging all bundles of a large cluster takes long.
type bundleSyncer struct {
	cluster string
	view    *View
	policy  healthscope.Policy
	clock   clock.WithTicker
	// queue holds the bundles that have changed.
	queue workqueue.TypedDelayingInterface[types.NamespacedName]

	// mu ensures that the view never gets an older version of a bundle after a newer one, nor one that was judged in an older state of the cluster.
	mu sync.Mutex
	// store holds the bundles; nil until all have been read.
	store bundleStore
	// memories hold the times of state changes for bundles whose monitors do not report them.
	memories map[BundleKey]*bundleMemory
	// past is what is known from before a restart; nil once all bundles have been judged.
	past map[healthscope.Key]Observation
}

// bundleMemory is the History of one bundle.
type bundleMemory struct {
	*History

	uid types.UID
}

func newBundleSyncer(cluster string, v *View, policy healthscope.Policy, c clock.WithTicker, past map[healthscope.Key]Observation) *bundleSyncer {
	return &bundleSyncer{
		cluster: cluster, view: v, policy: policy, clock: c,
		// A queue with a name would wake twice a second for its metrics.
		queue:    workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[types.NamespacedName]{Clock: c}),
		memories: map[BundleKey]*bundleMemory{}, past: past,
	}
}

// changed queues a bundle that has changed. It does not block.
func (s *bundleSyncer) changed(name types.NamespacedName) { s.queue.Add(name) }

// run syncs bundles that have changed until the queue is shut down. Once ctx has ended, it only drains the queue.
func (s *bundleSyncer) run(ctx context.Context) {
	for {
		name, shutdown := s.queue.Get()
		if shutdown {
			return
		}
		if ctx.Err() == nil {
			s.sync(name)
		}
		s.queue.Done(name)
	}
}

// sync stores the current version of a bundle in the view. A stale bundle stays as it was last judged.
func (s *bundleSyncer) sync(name types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.store == nil {
		return // All bundles are synced once they have been read.
	}
	cached := s.store.get(name)
	state, _ := s.view.State(s.cluster)
	switch {
	case cached == nil && (state.Answers() || state.Reachability == Connecting):
		s.put(name, nil)
	case cached != nil && (state.Reachability == Connecting || !state.isStale(cached.Own)):
		s.put(name, cached)
	}
}

// setState sets the cluster's state in the view, after it has stored the changes of bundles that the new state does not make stale any more.
func (s *bundleSyncer) setState(state ClusterState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, _ := s.view.State(s.cluster)
	if s.store != nil && !before.Reachable() && before.Reachability != Connecting {
		s.putAll(func(_ types.NamespacedName, cached *cachedBundle) bool {
			return cached == nil && state.Answers() || cached != nil && before.isStale(cached.Own) && !state.isStale(cached.Own)
		})
	}
	s.view.setState(state)
}

// resync replaces the cluster's bundles in the view by those of a store.
func (s *bundleSyncer) resync(store bundleStore) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store = store
	s.putAll(anyBundle)
	s.past = nil
}

// reset drops the store. The view keeps its bundles unless drop is true.
func (s *bundleSyncer) reset(drop bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store = nil
	if drop {
		s.putAll(anyBundle)
	}
}

// putAll puts all bundles of the store and of the view for which needed returns true; it gets nil for a bundle that is to be removed.
func (s *bundleSyncer) putAll(needed func(types.NamespacedName, *cachedBundle) bool) {
	for name := range sets.New(s.store.names()...).Insert(s.view.names(s.cluster)...) {
		if cached := s.store.get(name); needed(name, cached) {
			s.put(name, cached)
		}
	}
}

// anyBundle is for putAll.
func anyBundle(types.NamespacedName, *cachedBundle) bool { return true }

func (s *bundleSyncer) key(name types.NamespacedName) BundleKey {
	return BundleKey{Cluster: s.cluster, Namespace: name.Namespace, Name: name.Name}
}

// put judges a bundle and stores it in the view; nil removes it.
func (s *bundleSyncer) put(name types.NamespacedName, cached *cachedBundle) {
	key := s.key(name)
	if cached == nil {
		delete(s.memories, key)
		s.view.put(key, nil)
		return
	}
	if after := s.judge(key, cached); after > 0 {
		s.queue.AddAfter(name, after)
	}
}

// judge judges a bundle, stores it in the view, and returns after which time it must be judged again; zero means when it changes.
func (s *bundleSyncer) judge(key BundleKey, cached *cachedBundle) time.Duration {
	now := s.clock.Now()
	results := slices.Clone(cached.results) // Cloned because the bundle is judged again later.
	if cached.Own {
		delete(s.memories, key)
	} else {
		results = s.resume(key, cached.UID, results, now)
	}
	s.policy.WithHistory(results, s.previous(key, cached.UID, results))
	judgement := healthscope.Judge(results, s.policy, now)
	judged := cached.Bundle
	judged.Members = judgement.Members
	s.view.put(key, &judged)
	return healthscope.Until(judgement.NextCheck, now)
}

// previous returns the previous judgement of the resources of a bundle, sorted by key.
func (s *bundleSyncer) previous(key BundleKey, uid types.UID, results []healthscope.Result) []healthscope.Member {
	if b := s.view.judged(key); b != nil && b.UID == uid {
		return b.Members
	}
	var members []healthscope.Member
	for i, result := range results {
		if was, ok := s.past[result.Key]; ok && (i == 0 || results[i-1].Key != result.Key) {
			members = append(members, was.Member(result.Key))
		}
	}
	return members
}

// resume returns the results of a bundle whose monitor does not report times, each
// object once, with the time since when the hub has seen it in its state.
func (s *bundleSyncer) resume(key BundleKey, uid types.UID, results []healthscope.Result, now time.Time) []healthscope.Result {
	m := s.memories[key]
	if m == nil || m.uid != uid {
		m = &bundleMemory{History: NewMemory(carryOver(s.past, results)), uid: uid}
		s.memories[key] = m
	}
	return m.Resume(results, s.policy, now)
}
