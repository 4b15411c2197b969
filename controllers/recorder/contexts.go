package recorder

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/healthscope/healthscope/controllers/tracing"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/status"
)

const (
	// contextPause is how long a context that changes waits before it is read again: rsync writes to it for each resource.
	contextPause = time.Second
	// wholeContexts is how many contexts are in memory whole, which they are only while they are read.
	wholeContexts = 8
)

// Contexts returns which resources must be in clusters because contexts have brought them there. It caches what each context
// that it was asked about requires, and reads a context again when it changes. While etcd is unavailable, the cache stays.
type Contexts struct {
	cache  *appcontext.Cache
	clock  clock.PassiveClock
	outage outage

	mu    sync.Mutex
	byID  map[string]*requirement
	queue workqueue.TypedRateLimitingInterface[string]
	// changed is called for the bundles for which there is another answer.
	changed func(bundle types.NamespacedName)
}

// requirement is what a context requires. There is also one for a context that does not exist, so that it is not read again.
type requirement struct {
	status.Requirements

	// asked is when it was asked for first, and bundles are those that it was asked for.
	asked   time.Time
	bundles map[types.NamespacedName]struct{}
	// known is false until the context has been read.
	known bool
}

// SetupContexts adds to a manager what reads contexts from a store, on the replica that leads.
func SetupContexts(mgr ctrl.Manager, store *appcontext.Store, spans trace.TracerProvider, now clock.PassiveClock) (*Contexts, error) {
	c := &Contexts{clock: now, byID: map[string]*requirement{}, changed: func(types.NamespacedName) {}}
	c.cache = appcontext.NewCache(store, appcontext.CacheOptions{MaxContexts: wholeContexts, Changed: c.touched})
	if err := mgr.Add(manager.RunnableFunc(c.cache.Run)); err != nil {
		return nil, errors.Wrap(err, "cannot add the cache of AppContexts")
	}
	subject := func(id string) tracing.Subject { return tracing.Subject{Name: id} }
	err := builder.TypedControllerManagedBy[string](mgr).
		Named("appcontext").
		WatchesRawSource(source.TypedFunc[string](c.start)).
		WithOptions(controller.TypedOptions[string]{
			MaxConcurrentReconciles: wholeContexts / 2, // One reads two at most.
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[string](minPause, maxPause),
		}).
		Complete(tracing.Reconciler(spans, "appcontext", subject, c))
	return c, errors.Wrap(err, "cannot set up the controller of AppContexts")
}

// Subscribe calls changed for each bundle that Missing was asked about and for which it may have another answer. changed must not block.
func (c *Contexts) Subscribe(changed func(bundle types.NamespacedName)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed = changed
}

// Missing returns what the context with the id of a bundle, <id>-<app>, requires and what is not in the app's bundles, whose
// members are given by cluster. While the context is being read for the first time, it returns since when.
func (c *Contexts) Missing(bundle, namespace string, members map[string][]healthscope.Member) (missing []healthscope.Key, reading time.Time) {
	id, app, ok := strings.Cut(bundle, "-")
	if !ok || id == "" || app == "" {
		return nil, time.Time{}
	}
	c.mu.Lock()
	r := c.byID[id]
	if r == nil {
		r = &requirement{asked: c.clock.Now(), bundles: map[types.NamespacedName]struct{}{}}
		c.byID[id] = r
		if c.queue != nil {
			c.queue.Add(id)
		}
	}
	r.bundles[types.NamespacedName{Namespace: namespace, Name: bundle}] = struct{}{}
	required, known, asked := r.Requirements, r.known, r.asked
	c.mu.Unlock()
	if !known {
		return nil, asked
	}
	return required.Missing(app, namespace, members), time.Time{}
}

// start enqueues all contexts that were asked about before there was a queue.
func (c *Contexts) start(_ context.Context, q workqueue.TypedRateLimitingInterface[string]) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = q
	for id := range c.byID {
		q.Add(id)
	}
	return nil
}

// touched enqueues those of some contexts, or for nil of all, that were asked about. A bundle has the id of the context that
// keeps the states, which another context of the same deployment may have replaced.
func (c *Contexts) touched(ids []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queue == nil {
		return
	}
	if ids == nil {
		for id := range c.byID {
			c.queue.Add(id)
		}
	}
	for _, id := range ids {
		if c.byID[id] != nil {
			c.queue.AddAfter(id, contextPause)
		}
	}
}

// Reconcile reads a context, and calls changed for the bundles for which it requires something else than before.
func (c *Contexts) Reconcile(ctx context.Context, id string) (ctrl.Result, error) {
	logger := log.FromContext(ctx)
	required, err := c.read(ctx, id)
	c.outage.over(err, logger)
	switch {
	case ctx.Err() != nil:
		return ctrl.Result{}, nil //nolint:nilerr // The controller is stopping.
	case isOutage(err):
		c.outage.begin(err, logger)
		return ctrl.Result{RequeueAfter: etcdRetry}, nil
	case err != nil:
		return ctrl.Result{}, errors.Wrapf(err, "cannot read what context %q requires", id)
	}
	c.mu.Lock()
	r, changed := c.byID[id], c.changed
	var bundles []types.NamespacedName
	if !r.known || !r.Equal(required) {
		r.known, r.Requirements = true, required
		bundles = slices.Collect(maps.Keys(r.bundles))
	}
	c.mu.Unlock()
	for _, bundle := range bundles {
		changed(bundle)
	}
	return ctrl.Result{}, nil
}

// read returns what is required by the context that is in force of those that keep their states in the one with an id.
func (c *Contexts) read(ctx context.Context, id string) (status.Requirements, error) {
	none := status.Requirements{}
	snapshot, _, err := c.cache.Snapshot(ctx, id)
	if errors.Is(err, appcontext.ErrNotFound) || errors.Is(err, appcontext.ErrInvalid) {
		return none, nil
	}
	if err != nil {
		return none, err
	}
	view := appcontext.View{Context: snapshot, StatusContext: snapshot}
	meta, _ := snapshot.Meta() // What cannot be read names nothing.
	if subject, ok := meta.Subject(); ok {
		if view, err = c.cache.View(ctx, subject, ""); err != nil {
			return none, err
		}
	}
	if view.Context == nil || view.StatusContext == nil || view.StatusContext.ID() != id {
		return none, nil
	}
	return status.Decode(view, nil).Requirements(view.Info.Actions), nil
}
