package monitor

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlsource "sigs.k8s.io/controller-runtime/pkg/source"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/controllers/observe"
)

const (
	// handoverTimeout is how long the watch of a version that is no longer preferred is kept until its successor is synced.
	handoverTimeout = 30 * time.Second
	// syncPoll is the interval of checking whether watches are synced.
	syncPoll = 100 * time.Millisecond
	// allGroups stands for all groups of a cluster.
	allGroups = "*"
)

type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]

// watches holds all watches of a monitor, and runs them. It is a source of the controller, which enqueues the bundles of a changed object.
type watches struct {
	membership

	// places are the places that are always watched.
	places []place
	// sourceOf returns the source of a place.
	sourceOf func(place) source
	// discover follows the kinds of the cluster until ctx is done, and gone notes that a watched kind is gone. Both are nil if the kinds of
	// places cannot change.
	discover func(context.Context)
	gone     func()
	// addIndex adds the index that bundles uses.
	addIndex func(context.Context) error
	// bundles returns the bundles that select a key, and allBundles returns all bundles.
	bundles    func(context.Context, selectorKey) ([]types.NamespacedName, error)
	allBundles func(context.Context) ([]types.NamespacedName, error)
	// onRulesChanged registers a function to call when the health rules change; nil if they never do.
	onRulesChanged func(func())
	// keysChanged is called with the selector keys of changed objects. It may be nil.
	keysChanged func(sets.Set[selectorKey])
	writeStates *writeStates
	clock       clock.WithDelayedExecution
	logger      logr.Logger
	queue       atomic.Pointer[queue]
	running     sync.WaitGroup
	// synced is closed once all kinds have been read.
	synced chan struct{}

	mu      sync.RWMutex
	current []*watch
	// uncertain holds the groups of which the cluster may serve further kinds, or allGroups. It is undiscovered before the first discovery.
	uncertain    sets.Set[string]
	undiscovered bool
}

var _ ctrlsource.SyncingSource = &watches{}

// run runs all watches until ctx is done, and returns when they have stopped.
func (s *watches) run(ctx context.Context) error {
	for _, w := range s.snapshot() {
		s.startWatch(ctx, w)
	}
	if s.onRulesChanged != nil {
		s.onRulesChanged(func() { s.wakeAll(ctx) })
	}
	if s.discover != nil {
		s.running.Go(func() { s.discover(ctx) })
	}
	<-ctx.Done()
	s.running.Wait()
	return nil
}

// add adds a watch without starting it.
func (s *watches) add(p place) *watch {
	w := newWatch(s.sourceOf(p), s.clock, s.logger)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = append(s.current, w)
	return w
}

// startWatch runs a watch until ctx is done or stopWatch is called.
func (s *watches) startWatch(ctx context.Context, w *watch) {
	w.store.changed = func(touched sets.Set[selectorKey]) { s.wake(ctx, touched) }
	w.wake = func() {
		s.wakeAll(ctx)
		if w.visibility() == gone && s.gone != nil {
			s.gone() // The next discovery removes the watch, unless it is one of places.
		}
	}
	watchCtx, cancel := context.WithCancel(ctx) // Stopping the watch must not cancel ctx, which wake uses.
	w.cancel = cancel
	s.running.Go(func() { w.informer.Run(watchCtx) })
}

// stopWatch stops and removes a watch. Its objects leave their bundles.
func (s *watches) stopWatch(ctx context.Context, w *watch) {
	s.mu.Lock()
	s.current = slices.DeleteFunc(slices.Clone(s.current), func(other *watch) bool { return other == w })
	s.mu.Unlock()
	w.cancel()
	s.wakeAll(ctx)
}

// snapshot returns the current watches.
func (s *watches) snapshot() []*watch {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.current
}

// setPlaces makes places the watched places. The watch of any other place is removed once a new watch of another version of its kind is
// synced, or after handoverTimeout, so that no object vanishes in between. Without such a watch, it is removed once the API server has
// confirmed that it does not serve the kind, which the watch checks now unless its group is in unanswered.
func (s *watches) setPlaces(ctx context.Context, places sets.Set[place], unanswered sets.Set[string]) {
	started := map[place]*watch{}
	missing := places.Clone()
	for _, w := range s.snapshot() {
		missing.Delete(w.source.place)
	}
	for p := range missing {
		w := s.add(p)
		started[p.withoutVersion()] = w
		s.startWatch(ctx, w)
	}
	var ended, successors []*watch
	for _, w := range s.snapshot() {
		successor, replaced := started[w.source.withoutVersion()]
		switch {
		case places.Has(w.source.place):
		case replaced:
			ended, successors = append(ended, w), append(successors, successor)
		case w.visibility() == gone:
			ended = append(ended, w)
		case !unanswered.Has(w.source.kind.Group):
			w.informer.Relist(false)
		}
	}
	_ = wait.PollUntilContextTimeout(ctx, syncPoll, handoverTimeout, true, func(context.Context) (bool, error) {
		return !slices.ContainsFunc(successors, func(w *watch) bool { return w.informer.State().Status == observe.Pending }), nil
	}) // The objects of a successor that takes longer are Unknown until it is synced.
	for _, w := range ended {
		s.stopWatch(ctx, w)
	}
}

// withoutVersion returns the place without the version of its kind.
func (p place) withoutVersion() place {
	p.kind.Version = ""
	return p
}

// setUncertain records the result of a discovery: the groups of which the cluster may serve further kinds, or allGroups.
func (s *watches) setUncertain(ctx context.Context, groups sets.Set[string]) {
	s.mu.Lock()
	changed := !s.uncertain.Equal(groups)
	s.uncertain, s.undiscovered = groups, false
	s.mu.Unlock()
	if changed {
		s.wakeAll(ctx)
	}
}

// retry makes the refused watches of kinds in these groups read again.
func (s *watches) retry(groups sets.Set[string]) {
	for _, w := range s.snapshot() {
		if groups.Has(w.source.kind.Group) {
			w.retry()
		}
	}
}

// Start sets the queue of the controller. Earlier changes need not be enqueued, because it starts with all bundles in its queue.
func (s *watches) Start(ctx context.Context, q queue) error {
	if err := s.addIndex(ctx); err != nil {
		return err
	}
	s.queue.Store(&q)
	return nil
}

// WaitForSync waits until all kinds have been read once, except those that cannot be read.
func (s *watches) WaitForSync(ctx context.Context) error {
	var missing string
	err := wait.PollUntilContextCancel(ctx, syncPoll, true, func(context.Context) (bool, error) {
		missing = s.unsynced()
		return missing == "", nil
	})
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", missing, err)
	}
	close(s.synced)
	return nil
}

// unsynced describes what has not been read yet; empty if everything has.
func (s *watches) unsynced() string {
	s.mu.RLock()
	current, undiscovered := s.current, s.undiscovered
	s.mu.RUnlock()
	if undiscovered {
		return "the kinds of the cluster"
	}
	for _, w := range current {
		if !w.isSettled() {
			return fmt.Sprintf("%q with label %q (%s)", w.source.kind, w.source.key, w.informer.State().Message)
		}
	}
	return ""
}

// String names the source in the controller's log.
func (s *watches) String() string { return "labelled objects" }

// wake enqueues the bundles that select one of the keys.
func (s *watches) wake(ctx context.Context, touched sets.Set[selectorKey]) {
	if s.keysChanged != nil {
		s.keysChanged(touched)
	}
	if s.queue.Load() == nil {
		return
	}
	for c := range touched {
		names, err := s.bundles(ctx, c)
		s.enqueue(ctx, names, err)
	}
}

// wakeAll enqueues all bundles, because the visibility of their objects has changed. It does nothing before synced, because all bundles
// are in the queue then.
func (s *watches) wakeAll(ctx context.Context) {
	select {
	case <-s.synced:
	default:
		return
	}
	if s.queue.Load() != nil {
		names, err := s.allBundles(ctx)
		s.enqueue(ctx, names, err)
	}
}

// enqueue enqueues the bundles that a lookup returned, or logs the error of the lookup.
func (s *watches) enqueue(ctx context.Context, names []types.NamespacedName, err error) {
	switch {
	case ctx.Err() != nil: // The monitor is stopping.
	case err != nil:
		s.logger.Error(err, "Cannot find the bundles whose objects have changed")
	default:
		for _, name := range names {
			s.writeStates.touch(name)
			(*s.queue.Load()).Add(ctrl.Request{NamespacedName: name})
		}
	}
}

// isCarried reports whether an object carries the label of a key.
func (s *watches) isCarried(c selectorKey) bool {
	for _, w := range s.snapshot() {
		if len(w.appendMembers(nil, c)) > 0 {
			return true
		}
	}
	return false
}

// gather returns the objects of a bundle, each once, and the kinds whose objects are unknown.
// Both come from the same snapshot of watches, so that an object that moves between watches is in one of the two.
func (s *watches) gather(b *k8spluginv1alpha1.ResourceBundleState) ([]*unstructured.Unstructured, []schema.GroupKind, error) {
	uncertain := s.uncertainKinds(b) // Before the snapshot: a kind that is no longer uncertain is watched already.
	current := s.snapshot()
	unreadable := s.unreadable(current, b) // Before the objects: if a kind counts as read, its objects are in the store.
	objects, err := s.members(current, b)
	unreadable = unreadable.Union(s.unreadable(current, b)) // And after them: a kind that becomes gone in between has no objects.
	for _, w := range current {
		uncertain.Delete(w.source.kind.GroupKind())
	}
	return objects, unreadable.Union(uncertain).UnsortedList(), err
}

// uncertainKinds returns the kinds of a bundle's entries that the cluster may or may not serve.
func (s *watches) uncertainKinds(b *k8spluginv1alpha1.ResourceBundleState) sets.Set[schema.GroupKind] {
	kinds := sets.New[schema.GroupKind]()
	for _, entry := range b.Status.Resources {
		if s.isUncertain(entry.Group) {
			kinds.Insert(schema.GroupKind{Group: entry.Group, Kind: entry.Kind})
		}
	}
	return kinds
}

// isUncertain reports whether the cluster may serve further kinds of a group.
func (s *watches) isUncertain(group string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.uncertain.HasAny(group, allGroups)
}

// members returns the objects of a bundle, each once, preferably from a watch that is open. It applies the selector only to that
// copy of an object, because another watch may hold an older version that matched.
func (s *watches) members(current []*watch, b *k8spluginv1alpha1.ResourceBundleState) ([]*unstructured.Unstructured, error) {
	current = watchedFirst(current)
	var candidates []*packed
	for _, c := range s.selectorKeys(b) {
		for _, w := range current {
			candidates = w.appendMembers(candidates, c)
		}
	}
	selector := s.wanted(b)
	members := make([]*unstructured.Unstructured, 0, len(candidates))
	seen := sets.New[types.UID]()
	for _, candidate := range candidates {
		if candidate.UID != "" && seen.Has(candidate.UID) {
			continue // The object carries two of the labels, or is watched in two versions.
		}
		seen.Insert(candidate.UID)
		object, err := candidate.unpack()
		if err != nil {
			return nil, err
		}
		if selector.Matches(labels.Set(object.GetLabels())) {
			members = append(members, object)
		}
	}
	return members, nil
}

// watchedFirst returns the watches in an order in which those that are not open, and may be stale, come last.
func watchedFirst(current []*watch) []*watch {
	watched := make([]*watch, 0, len(current))
	var stale []*watch
	for _, w := range current {
		if w.informer.State().IsWatched() {
			watched = append(watched, w)
		} else {
			stale = append(stale, w)
		}
	}
	return append(watched, stale...)
}

// unreadable returns the watched kinds whose objects in a bundle are unknown. A version that has not been read
// does not count if another version of the kind is visible.
func (s *watches) unreadable(current []*watch, b *k8spluginv1alpha1.ResourceBundleState) sets.Set[schema.GroupKind] {
	kinds := sets.New[schema.GroupKind]()
	seen := sets.New[place]()
	for _, w := range current {
		if w.visibility() == visible {
			seen.Insert(w.source.withoutVersion())
		}
	}
	for _, c := range s.selectorKeys(b) {
		for _, w := range current {
			sameNamespace := w.source.namespace == "" || c.namespace == "" || w.source.namespace == c.namespace
			if c.key == w.source.key && sameNamespace && w.visibility().isUnreadable() && !seen.Has(w.source.withoutVersion()) {
				kinds.Insert(w.source.kind.GroupKind())
			}
		}
	}
	return kinds
}
