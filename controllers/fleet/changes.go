package fleet

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Change says what has changed in a View or in Objects, and not how: what it is like now is read there. Changes are
// comparable, so that a subscriber gets one only once, however often the same thing changes before the subscriber looks.
type Change interface{ isChange() }

// BundleChange says that a bundle came, changed or went.
type BundleChange struct {
	BundleKey

	// Labels are those that the bundle has, or had before: when they change there is a BundleChange with each.
	Labels LabelSet
}

// ClusterChange says that a cluster came or went, or that its state changed. A later LastSeen alone is no change.
type ClusterChange struct {
	// Cluster is the name of the cluster.
	Cluster string
}

// SelectionChange says that labels may select other clusters: a cluster has other labels, or can be seen for the first time.
type SelectionChange struct{}

// CompleteChange says that it is known from now on which clusters there are.
type CompleteChange struct{}

// RejectionChange says that other Secrets are rejected, or for other reasons.
type RejectionChange struct{}

// ObjectChange says that an object came, changed or went.
type ObjectChange struct {
	Kind

	// Name is the name of the object.
	Name types.NamespacedName
	// Labels are those that the object has, or had before: when they change there is an ObjectChange with each.
	Labels LabelSet
}

// KindChange says that all objects of a kind may have changed: the kind was read for the first time, cannot be read any
// more, or its cluster came, went, or can be seen or not.
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

// Subscription holds the changes that a subscriber has not taken yet. It is safe for concurrent use.
type Subscription struct {
	ready chan struct{}

	mu sync.Mutex
	// changes are in the order in which they came, and pending says which these are.
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

// Ready is sent something when there are changes to take.
func (s *Subscription) Ready() <-chan struct{} { return s.ready }

// Take returns the changes since it was called last. It does not block. A
// subscriber that takes changes under a lock of its own, and handles them before it releases the lock, never decides by what
// is older than the View.
func (s *Subscription) Take() []Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	changes := s.changes
	s.changes = nil
	clear(s.pending)
	return changes
}

// Add adds a change unless the subscription holds it.
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

// Kind is a kind of objects in one cluster.
type Kind struct {
	// Cluster is the name of the cluster.
	Cluster string
	schema.GroupVersionKind
}
