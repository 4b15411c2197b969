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
	// handover is how long the watch of a version that is no longer preferred waits for its successor.
	handover = 30 * time.Second
	// syncPoll is how often it is looked whether watches have been read.
	syncPoll = 100 * time.Millisecond
)

type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]

// watches are all watches of a monitor. run follows them; as a source of the
// controller they wake the bundles that a changed object belongs to.
type watches struct {
	membership

	// places are what is watched from the start to the end.
	places []place
	// sourceOf returns how to read a place.
	sourceOf func(place) source
	// kinds finds further kinds and follows their changes; nil when the kinds are those of places.
	kinds *kindDiscovery
	// index makes bundles able to find what it looks for.
	index func(context.Context) error
	// bundles finds the bundles that select the objects of a key, and every finds all bundles.
	bundles func(context.Context, selectorKey) ([]types.NamespacedName, error)
	every   func(context.Context) ([]types.NamespacedName, error)
	// rules calls a function whenever objects are to be judged again; nil when that never happens.
	rules func(func())
	// keysChanged is called with the selector keys of objects that changed. It may be nil.
	keysChanged func(sets.Set[selectorKey])
	writeStates *writeStates
	clock       clock.WithDelayedExecution
	logger      logr.Logger
	queue       atomic.Pointer[queue]
	running     sync.WaitGroup
	// synced is closed when all kinds have been read once.
	synced chan struct{}

	mu      sync.RWMutex
	current []*watch
}

var _ ctrlsource.SyncingSource = &watches{}

// run follows all watches until ctx is done, and returns when they have ended.
func (s *watches) run(ctx context.Context) error {
	for _, w := range s.snapshot() {
		s.begin(ctx, w)
	}
	if s.rules != nil {
		s.rules(func() { s.wakeAll(ctx) })
	}
	if s.kinds != nil {
		s.running.Go(func() { s.kinds.run(ctx, s) })
	}
	<-ctx.Done()
	s.running.Wait()
	return nil
}

// add makes a watch, which does not run yet.
func (s *watches) add(p place) *watch {
	w := newWatch(s.sourceOf(p), s.clock, s.logger)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = append(s.current, w)
	return w
}

// begin runs a watch until ctx is done or the watch is stopped.
func (s *watches) begin(ctx context.Context, w *watch) {
	w.store.changed = func(touched sets.Set[selectorKey]) { s.wake(ctx, touched) }
	w.wake = func() {
		s.wakeAll(ctx)
		if w.sight() == gone && s.kinds != nil {
			s.kinds.notice() // It is let go, unless it is one of places.
		}
	}
	running, cancel := context.WithCancel(ctx) // Its end is not that of those who are woken.
	w.cancel = cancel
	s.running.Go(func() { w.informer.Run(running) })
}

// stop ends a watch; its objects leave their bundles.
func (s *watches) stop(ctx context.Context, w *watch) {
	s.mu.Lock()
	s.current = slices.DeleteFunc(slices.Clone(s.current), func(other *watch) bool { return other == w })
	s.mu.Unlock()
	w.cancel()
	s.wakeAll(ctx)
}

// snapshot returns the watches of this moment.
func (s *watches) snapshot() []*watch {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.current
}

// follow makes places what is watched. A watch of another place ends when another version of its kind has been read, so
// that no object vanishes in between; without such a version, it ends when the API server says that it does not serve the
// kind. It is asked now, unless the group is one of unanswered.
func (s *watches) follow(ctx context.Context, places sets.Set[place], unanswered sets.Set[string]) {
	started := map[place]*watch{}
	missing := places.Clone()
	for _, w := range s.snapshot() {
		missing.Delete(w.source.place)
	}
	for p := range missing {
		w := s.add(p)
		started[p.withoutVersion()] = w
		s.begin(ctx, w)
	}
	var ended, successors []*watch
	for _, w := range s.snapshot() {
		successor, replaced := started[w.source.withoutVersion()]
		switch {
		case places.Has(w.source.place):
		case replaced:
			ended, successors = append(ended, w), append(successors, successor)
		case w.sight() == gone:
			ended = append(ended, w)
		case !unanswered.Has(w.source.kind.Group):
			w.informer.Reread(false)
		}
	}
	_ = wait.PollUntilContextTimeout(ctx, syncPoll, handover, true, func(context.Context) (bool, error) {
		return !slices.ContainsFunc(successors, func(w *watch) bool { return w.informer.State().Status == observe.Pending }), nil
	}) // What takes longer is Unknown until it has been read.
	for _, w := range ended {
		s.stop(ctx, w)
	}
}

// withoutVersion is the place without the version of its kind.
func (p place) withoutVersion() place {
	p.kind.Version = ""
	return p
}

// retry makes the watches of kinds of these groups that were refused try again.
func (s *watches) retry(groups sets.Set[string]) {
	for _, w := range s.snapshot() {
		if groups.Has(w.source.kind.Group) {
			w.retry()
		}
	}
}

// Start makes q the queue of bundles to look at. Changes before it need no
// waking: the controller starts with all bundles in its queue.
func (s *watches) Start(ctx context.Context, q queue) error {
	if err := s.index(ctx); err != nil {
		return err
	}
	s.queue.Store(&q)
	return nil
}

// WaitForSync waits until all kinds have been read once, except those that
// cannot be: from then on what is in the stores is what is in the cluster.
func (s *watches) WaitForSync(ctx context.Context) error {
	var missing string
	err := wait.PollUntilContextCancel(ctx, syncPoll, true, func(context.Context) (bool, error) {
		missing = s.missing()
		return missing == "", nil
	})
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", missing, err)
	}
	close(s.synced)
	return nil
}

// missing says for people what has not been read yet; empty when everything has.
func (s *watches) missing() string {
	if s.kinds != nil && !s.kinds.isDone() {
		return "the kinds of the cluster"
	}
	for _, w := range s.snapshot() {
		if !w.isSettled() {
			return fmt.Sprintf("%q with label %q (%s)", w.source.kind, w.source.key, w.informer.State().Message)
		}
	}
	return ""
}

// String names the source in the controller's log.
func (s *watches) String() string {
	return "labelled objects"
}

// wake puts the bundles that select one of the keys into the queue.
func (s *watches) wake(ctx context.Context, touched sets.Set[selectorKey]) {
	if s.keysChanged != nil {
		s.keysChanged(touched)
	}
	if s.queue.Load() == nil {
		return
	}
	for c := range touched {
		names, err := s.bundles(ctx, c)
		s.look(ctx, names, err)
	}
}

// wakeAll puts all bundles into the queue: what can be seen of their objects has
// changed. Before synced this is not needed: all bundles are in the queue.
func (s *watches) wakeAll(ctx context.Context) {
	select {
	case <-s.synced:
	default:
		return
	}
	if s.queue.Load() != nil {
		names, err := s.every(ctx)
		s.look(ctx, names, err)
	}
}

// look puts bundles into the queue that were looked up because objects have changed.
func (s *watches) look(ctx context.Context, names []types.NamespacedName, err error) {
	switch {
	case ctx.Err() != nil: // The program stops.
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

// gather returns the objects of a bundle, each once, and the kinds of which it is not known which objects belong to it.
// Both are those of the same watches: what goes from one watch to another is in one of the two.
func (s *watches) gather(b *k8spluginv1alpha1.ResourceBundleState) ([]*unstructured.Unstructured, []schema.GroupKind, error) {
	uncertain := s.uncertain(b) // Before the watches: a kind that is no longer uncertain is watched already.
	current := s.snapshot()
	unreadable := s.unreadable(current, b) // Before the objects: when a kind counts as read, they are in the store.
	objects, err := s.members(current, b)
	unreadable = unreadable.Union(s.unreadable(current, b)) // And after them: a kind that is gone meanwhile shows none.
	for _, w := range current {
		uncertain.Delete(w.source.kind.GroupKind())
	}
	return objects, unreadable.Union(uncertain).UnsortedList(), err
}

// uncertain returns the kinds of a bundle's entries of which it is not known whether the cluster serves them.
func (s *watches) uncertain(b *k8spluginv1alpha1.ResourceBundleState) sets.Set[schema.GroupKind] {
	kinds := sets.New[schema.GroupKind]()
	if s.kinds == nil {
		return kinds
	}
	for _, entry := range b.Status.Resources {
		if s.kinds.isUncertain(entry.Group) {
			kinds.Insert(schema.GroupKind{Group: entry.Group, Kind: entry.Kind})
		}
	}
	return kinds
}

// members returns the objects of a bundle, each once, preferably as a watch that is open shows it. Only after that is it decided
// whether an object belongs to the bundle: another watch may hold an older version, which did.
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
			continue // It carries two of the labels, or is shown in two versions.
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

// watchedFirst returns watches with those last that have no open watch, so that what they show may be stale.
func watchedFirst(current []*watch) []*watch {
	working := make([]*watch, 0, len(current))
	var stale []*watch
	for _, w := range current {
		if w.informer.State().IsWatched() {
			working = append(working, w)
		} else {
			stale = append(stale, w)
		}
	}
	return append(working, stale...)
}

// unreadable returns the kinds among those that are watched of which it is not known which objects belong to a
// bundle. A version that has not been read is not missed where another one shows the same objects.
func (s *watches) unreadable(current []*watch, b *k8spluginv1alpha1.ResourceBundleState) sets.Set[schema.GroupKind] {
	kinds := sets.New[schema.GroupKind]()
	seen := sets.New[place]()
	for _, w := range current {
		if w.sight() == shown {
			seen.Insert(w.source.withoutVersion())
		}
	}
	for _, c := range s.selectorKeys(b) {
		for _, w := range current {
			here := w.source.namespace == "" || c.namespace == "" || w.source.namespace == c.namespace
			if c.key == w.source.key && here && w.sight().isUnreadable() && !seen.Has(w.source.withoutVersion()) {
				kinds.Insert(w.source.kind.GroupKind())
			}
		}
	}
	return kinds
}
