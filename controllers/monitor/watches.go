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
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlsource "sigs.k8s.io/controller-runtime/pkg/source"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

const (
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
	// discover follows the kinds of the cluster until ctx is done, and schedule schedules a discovery. Both are nil if the kinds of places
	// cannot change.
	discover func(context.Context)
	schedule func()
	// indexer adds the index that membership uses.
	indexer client.FieldIndexer
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
		if s.schedule != nil {
			s.schedule() // The next discovery removes the watches of kinds that are gone, and of versions whose successor can be read.
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

// setPlaces makes places the watched places. The watch of any other place is removed once the watch of another version of its kind has been
// read, so that no object vanishes in between, or once the API server has confirmed that it does not serve the kind. Without such a version,
// the watch checks that now unless its group is in unanswered. setPlaces must be called again after each change of visibility.
func (s *watches) setPlaces(ctx context.Context, places sets.Set[place], unanswered sets.Set[string]) {
	missing := places.Clone()
	for _, w := range s.snapshot() {
		missing.Delete(w.source.place)
	}
	for p := range missing {
		s.startWatch(ctx, s.add(p))
	}
	wanted := map[place]*watch{}
	for _, w := range s.snapshot() {
		if places.Has(w.source.place) {
			wanted[w.source.withoutVersion()] = w
		}
	}
	for _, w := range s.snapshot() {
		successor, replaced := wanted[w.source.withoutVersion()]
		switch {
		case places.Has(w.source.place):
		case w.visibility() == gone, replaced && successor.visibility() != neverSynced:
			s.stopWatch(ctx, w)
		case !replaced && !unanswered.Has(w.source.kind.Group):
			w.informer.Relist(false)
		}
	}
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
	if err := s.addIndex(ctx, s.indexer); err != nil {
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
		names, err := s.selecting(ctx, c)
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
		names, err := s.list(ctx)
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

// gather returns the objects of a bundle, each once, preferably from a watch that is open, and the kinds whose objects are unknown. A version
// of a kind that has not been read does not count if another version is visible.
// Both come from the same snapshot of watches and uncertain groups, so that an object that moves between watches is in one of the two, and a
// kind whose watch has stopped is not mistaken for one that the cluster does not serve.
func (s *watches) gather(b *k8spluginv1alpha1.ResourceBundleState) ([]*unstructured.Unstructured, []schema.GroupKind, error) {
	s.mu.RLock()
	current, uncertain := s.current, s.uncertain
	s.mu.RUnlock()
	kinds, keys := kindsOf(b, uncertain), s.selectorKeys(b)
	var candidates, stale []*packed
	unreadable, seen := sets.New[place](), sets.New[place]()
	for _, w := range current {
		kinds.Delete(w.source.kind.GroupKind())
		before, watched := w.visibility(), w.informer.State().IsWatched()
		var found []*packed
		selected := false
		for _, c := range keys {
			found = w.appendMembers(found, c)
			selected = selected || w.source.includes(c)
		}
		after := w.visibility() // Before and after the objects: they are known only if the kind was visible all the time.
		switch {
		case before == visible && after == visible:
			seen.Insert(w.source.withoutVersion())
		case selected && (before.isUnreadable() || after.isUnreadable()):
			unreadable.Insert(w.source.withoutVersion())
		}
		if watched {
			candidates = append(candidates, found...)
		} else {
			stale = append(stale, found...)
		}
	}
	for p := range unreadable.Difference(seen) {
		kinds.Insert(p.kind.GroupKind())
	}
	objects, err := unpackMembers(append(candidates, stale...), s.wanted(b))
	return objects, kinds.UnsortedList(), err
}

// reads reports whether gather returns the object of an entry of a bundle if that object exists: its kind can be read, and bundles of the
// namespace may show it.
func (s *watches) reads(b *k8spluginv1alpha1.ResourceBundleState, e k8spluginv1alpha1.ResourceHealth) bool {
	if e.Namespace != b.Namespace && !s.trusted.Has(b.Namespace) {
		return false
	}
	return slices.ContainsFunc(s.snapshot(), func(w *watch) bool {
		p := w.source.place
		return p.kind.Group == e.Group && p.kind.Kind == e.Kind && (p.namespace == "" || p.namespace == e.Namespace) && w.visibility() == visible
	})
}

// kindsOf returns the kinds of a bundle's entries that are in one of the groups, which may be allGroups.
func kindsOf(b *k8spluginv1alpha1.ResourceBundleState, groups sets.Set[string]) sets.Set[schema.GroupKind] {
	kinds := sets.New[schema.GroupKind]()
	for _, entry := range b.Status.Resources {
		if groups.HasAny(entry.Group, allGroups) {
			kinds.Insert(schema.GroupKind{Group: entry.Group, Kind: entry.Kind})
		}
	}
	return kinds
}

// unpackMembers returns the candidates that a selector matches, each object once. It applies the selector only to the first copy of an
// object, because another watch may hold an older version that matched.
func unpackMembers(candidates []*packed, selector labels.Selector) ([]*unstructured.Unstructured, error) {
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
