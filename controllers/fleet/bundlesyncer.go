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
	memories map[BundleKey]*bundleMemory
	// past is what is known from before a restart; nil once all bundles have been judged.
	past map[healthscope.Key]Seen
}

// memory is of one bundle.
type bundleMemory struct {
	*Memory

	uid types.UID
}

func newBundleSyncer(cluster string, v *View, policy healthscope.Policy, c clock.WithTicker, past map[healthscope.Key]Seen, wake func()) *bundleSyncer {
	return &bundleSyncer{
		cluster: cluster, view: v, policy: policy, clock: c, wake: wake,
		// A queue with a name would wake twice a second for its metrics.
		queue:   workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[types.NamespacedName]{Clock: c}),
		allowed: func(string) bool { return true }, memories: map[BundleKey]*bundleMemory{}, past: past,
	}
}

// changed queues a bundle that has changed. It does not block.
func (s *bundleSyncer) changed(name types.NamespacedName) { s.queue.Add(name) }

// run syncs bundles that have changed until the queue is shut down. It does nothing more once ctx has ended.
func (s *bundleSyncer) run(ctx context.Context) {
	for {
		name, shutdown := s.queue.Get()
		if shutdown {
			return
		}
		if ctx.Err() == nil {
			own, foreign := s.view.hasBundles(s.cluster)
			s.sync(name)
			if ownNow, foreignNow := s.view.hasBundles(s.cluster); own != ownNow || foreign != foreignNow {
				s.wake() // Whether the monitor lives matters only if it has filled bundles.
			}
		}
		s.queue.Done(name)
	}
}

// sync stores a bundle as it is now in the view, unless it is stale: then it stays as it was judged last.
func (s *bundleSyncer) sync(name types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.store == nil {
		return // All bundles are synced once they have been read.
	}
	cached := s.get(name)
	state, _ := s.view.State(s.cluster)
	switch {
	case cached == nil && (state.Answers() || state.Reachability == Connecting):
		s.put(name, nil)
	case cached != nil && (state.Reachability == Connecting || !state.isStale(cached.contents.Own)):
		s.put(name, cached)
	}
}

// setState has the view show the cluster in a state. What has changed while bundles were stale shows together with it.
func (s *bundleSyncer) setState(state ClusterState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, _ := s.view.State(s.cluster)
	if s.store != nil && !before.Reachable() && before.Reachability != Connecting {
		for name := range s.names() {
			cached := s.get(name)
			if cached == nil && state.Answers() || cached != nil && before.isStale(cached.contents.Own) && !state.isStale(cached.contents.Own) {
				s.put(name, cached)
			}
		}
	}
	s.view.setState(state)
}

// resync makes the bundles of a store, and no others, those of the view.
func (s *bundleSyncer) resync(store bundleStore) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store = store
	for name := range s.names() {
		s.put(name, s.get(name))
	}
	s.past = nil
}

// restrict sets from which namespaces bundles may be shown, and adds to the view, or removes from it, what that changes.
func (s *bundleSyncer) restrict(allowed func(namespace string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.allowed = allowed
	for name := range s.names() {
		if !allowed(name.Namespace) || s.view.judged(s.key(name)) == nil {
			s.put(name, s.get(name))
		}
	}
}

// reset drops the store. The bundles stay in the view as they are, or are removed with drop.
func (s *bundleSyncer) reset(drop bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store = nil
	if !drop {
		return
	}
	for name := range s.names() {
		s.put(name, nil)
	}
}

// names returns the names of all bundles that are in the store or in the view.
func (s *bundleSyncer) names() sets.Set[types.NamespacedName] {
	return sets.New(s.store.names()...).Insert(s.view.names(s.cluster)...)
}

func (s *bundleSyncer) key(name types.NamespacedName) BundleKey {
	return BundleKey{Cluster: s.cluster, Namespace: name.Namespace, Name: name.Name}
}

func (s *bundleSyncer) get(name types.NamespacedName) *cachedBundle {
	if !s.allowed(name.Namespace) {
		return nil
	}
	return s.store.get(name)
}

// put puts a bundle into the view, or with nil removes it.
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

// judge puts a bundle into the view and returns when to look at it again; zero means when it changes.
func (s *bundleSyncer) judge(key BundleKey, cached *cachedBundle) time.Duration {
	now := s.clock.Now()
	results := slices.Clone(cached.contents.Results) // They are judged again later.
	if cached.contents.Own {
		delete(s.memories, key)
	} else {
		results = s.resume(key, cached.UID, results, now)
	}
	s.policy.WithHistory(results, s.previous(key, cached.UID, results))
	judgement := healthscope.Judge(results, s.policy, now)
	s.view.put(key, &Bundle{
		BundleKey: key, UID: cached.UID, ResourceVersion: cached.ResourceVersion, App: cached.app, Labels: cached.Labels,
		Own: cached.contents.Own, Observed: cached.contents.Observed, Truncated: cached.contents.Truncated, Malformed: cached.contents.Malformed,
		Members: judgement.Members, Unlisted: cached.contents.Unlisted, Written: cached.written, Outdated: cached.outdated,
	})
	return healthscope.Until(judgement.NextCheck, now)
}

// previous returns the last judgement of the resources of a bundle, sorted by key.
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

// resume returns the results of a bundle whose monitor keeps no time, each
// object once, with the time since when the hub sees them in their state.
func (s *bundleSyncer) resume(key BundleKey, uid types.UID, results []healthscope.Result, now time.Time) []healthscope.Result {
	m := s.memories[key]
	if m == nil || m.uid != uid {
		m = &bundleMemory{Memory: NewMemory(carryOver(s.past, results)), uid: uid}
		s.memories[key] = m
	}
	return m.Resume(results, s.policy, now)
}
