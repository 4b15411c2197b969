package fleet

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Change says what has changed in a View or in Objects, and not how: the subscriber reads the current state there. Changes
// are comparable, so that a subscriber gets a change once, however often the same thing changes before the subscriber takes it.
type Change interface{ isChange() }

// BundleChange says that a bundle was added, changed or removed.
type BundleChange struct {
	BundleKey

	// Labels are the labels of the bundle. When they change, there is a BundleChange with the old ones and one with the new ones.
	Labels LabelSet
}

// ClusterChange says that a cluster was added or removed, or that its state changed. A later LastSeen alone is no change.
type ClusterChange struct {
	// Cluster is the name of the cluster.
	Cluster string
}

// SelectionChange says that label selectors may select other clusters: the labels of a cluster changed, or a cluster is Connected for the
// first time or removed.
type SelectionChange struct{}

// CompleteChange says that all clusters are known from now on.
type CompleteChange struct{}

// RejectionChange says that the rejected Secrets, or the reasons for their rejection, changed.
type RejectionChange struct{}

// ObjectChange says that an object was added, changed or removed.
type ObjectChange struct {
	Kind

	// Name is the name of the object.
	Name types.NamespacedName
	// Labels are the labels of the object. When they change, there is an ObjectChange with the old ones and one with the new ones.
	Labels LabelSet
}

// KindChange says that all objects of a kind may have changed: the kind was first synced or became unreadable, or its
// cluster was added, was removed, or became reachable or unreachable.
type KindChange struct{ Kind }

func (BundleChange) isChange() {}

func (ClusterChange) isChange() {}

func (SelectionChange) isChange() {}

func (CompleteChange) isChange() {}

func (RejectionChange) isChange() {}

func (ObjectChange) isChange() {}

func (KindChange) isChange() {}

// Topic selects the changes that a subscriber of a View gets. Topics can be combined.
type Topic uint8

// The topics.
const (
	// Bundles are changes of bundles as they are judged, each a BundleChange.
	Bundles Topic = 1 << iota
	// Writes are changes of the ResourceBundleStates themselves, whether or not they make a difference to how bundles are judged, each a BundleChange.
	Writes
	// Clusters are changes of clusters: ClusterChange, SelectionChange, CompleteChange and RejectionChange.
	Clusters
)

// Subscription queues the changes that a subscriber has not taken yet. It is safe for concurrent use.
type Subscription struct {
	ready chan struct{}

	mu sync.Mutex
	// changes are the pending changes in the order of their arrival, and pending is the set of them.
	changes []Change
	pending map[Change]struct{}
}

// NewSubscription returns a subscription without changes. A View and Objects make their own.
func NewSubscription() *Subscription {
	return &Subscription{ready: make(chan struct{}, 1), pending: map[Change]struct{}{}}
}

// Deliver calls handle for each change, one at a time, until ctx ends.
func (s *Subscription) Deliver(ctx context.Context, handle func(Change)) {
	for {
		for _, c := range s.Take() {
			handle(c)
		}
		select {
		case <-s.Ready():
		case <-ctx.Done():
			return
		}
	}
}

// Ready returns a channel that receives a value when there are changes to take.
func (s *Subscription) Ready() <-chan struct{} { return s.ready }

// Take returns the changes since the previous call. It does not block. A subscriber that takes changes under its own lock,
// and handles them before it releases the lock, never decides by a state that is older than the View.
func (s *Subscription) Take() []Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	changes := s.changes
	s.changes = nil
	clear(s.pending)
	return changes
}

// Add adds a change unless it is pending already.
func (s *Subscription) Add(c Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.pending[c]; ok {
		return
	}
	s.pending[c] = struct{}{}
	s.changes = append(s.changes, c)
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// Kind is a kind of object in one cluster.
type Kind struct {
	// Cluster is the name of the cluster.
	Cluster string
	schema.GroupVersionKind
}
