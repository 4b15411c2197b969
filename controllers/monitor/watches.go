package monitor

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlsource "sigs.k8s.io/controller-runtime/pkg/source"
)

type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]

// watches are all watches of a monitor. run follows them; as a source of the
// controller they wake the bundles that a changed object belongs to.
type watches struct {
	all []*watch
	// index makes bundles able to find what it looks for.
	index func(context.Context) error
	// bundles finds the bundles that make a claim.
	bundles func(context.Context, claim) ([]types.NamespacedName, error)
	ledger  *ledger
	logger  logr.Logger
	queue   atomic.Pointer[queue]
}

var _ ctrlsource.SyncingSource = &watches{}

// run follows all watches until ctx is done, and returns when they have ended.
func (s *watches) run(ctx context.Context) error {
	ctx = logr.NewContext(ctx, s.logger)
	var running sync.WaitGroup
	for _, w := range s.all {
		w.store.changed = func(touched sets.Set[claim]) { s.wake(ctx, touched) }
		running.Go(func() { w.run(ctx) })
	}
	running.Wait()
	return nil
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
	for _, w := range s.all {
		if err := w.awaitSettled(ctx); err != nil {
			return err
		}
	}
	return nil
}

// String names the source in the controller's log.
func (s *watches) String() string {
	return "labelled objects"
}

// wake puts the bundles that make one of the claims into the queue.
func (s *watches) wake(ctx context.Context, touched sets.Set[claim]) {
	q := s.queue.Load()
	if q == nil {
		return
	}
	for c := range touched {
		names, err := s.bundles(ctx, c)
		if err != nil {
			s.logger.Error(err, "Cannot find the bundles of a changed object", "namespace", c.namespace, "label", c.index())
			continue
		}
		for _, name := range names {
			s.ledger.touch(name)
			(*q).Add(ctrl.Request{NamespacedName: name})
		}
	}
}

// members returns the objects that make one of the claims and pass the
// selector, each once.
func (s *watches) members(claims []claim, selector labels.Selector) ([]*unstructured.Unstructured, error) {
	var candidates []*packed
	for _, w := range s.all {
		for _, c := range claims {
			if c.key == w.source.key {
				candidates = w.store.appendMembers(candidates, c)
			}
		}
	}
	members := make([]*unstructured.Unstructured, 0, len(candidates))
	seen := sets.New[types.UID]()
	for _, candidate := range candidates {
		if seen.Has(candidate.UID) {
			continue // It carries two of the keys.
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
