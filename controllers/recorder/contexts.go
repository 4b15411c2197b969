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
	// contextDebounce is how long a change of a context is delayed before the context is read again: rsync writes to it for each resource.
	contextDebounce = time.Second
	// maxContexts is the maximum number of whole contexts in memory. A context is in memory only while it is read.
	maxContexts = 8
)

// Contexts returns which resources must exist in clusters because contexts have deployed them. It caches the requirements of each context
// that was requested, and reads a context again when it changes. While etcd is unavailable, the cache is kept.
type Contexts struct {
	cache  *appcontext.Cache
	clock  clock.PassiveClock
	outage outage

	mu    sync.Mutex
	byID  map[string]*requirement
	queue workqueue.TypedRateLimitingInterface[string]
	// changed is called for the bundles whose requirements have changed.
	changed func(bundle types.NamespacedName)
}

// requirement is what a context requires. A context that does not exist has one too, so that it is not read again.
type requirement struct {
	status.Requirements

	// requestedAt is when the context was requested first, and bundles are those that it was requested for.
	requestedAt time.Time
	bundles     map[types.NamespacedName]struct{}
	// known is false until the context has been read.
	known bool
}

// SetupContexts adds a controller to a manager that reads contexts from a store, on the leader only.
func SetupContexts(mgr ctrl.Manager, store *appcontext.Store, spans trace.TracerProvider, now clock.PassiveClock) (*Contexts, error) {
	c := &Contexts{clock: now, byID: map[string]*requirement{}, changed: func(types.NamespacedName) {}}
	c.cache = appcontext.NewCache(store, appcontext.CacheOptions{MaxContexts: maxContexts, Changed: c.contextsChanged})
	if err := mgr.Add(manager.RunnableFunc(c.cache.Run)); err != nil {
		return nil, errors.Wrap(err, "cannot add the cache of AppContexts")
	}
	subject := func(id string) tracing.ObjectRef { return tracing.ObjectRef{Name: id} }
	err := builder.TypedControllerManagedBy[string](mgr).
		Named("appcontext").
		WatchesRawSource(source.TypedFunc[string](c.start)).
		WithOptions(controller.TypedOptions[string]{
			MaxConcurrentReconciles: maxContexts / 2, // A reconcile reads at most two.
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[string](minPause, maxPause),
		}).
		Complete(tracing.Reconciler(spans, "appcontext", subject, c))
	return c, errors.Wrap(err, "cannot set up the controller of AppContexts")
}

// Subscribe calls changed for each bundle that was passed to Missing and for which the result may have changed. changed must not block.
func (c *Contexts) Subscribe(changed func(bundle types.NamespacedName)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed = changed
}

// Missing returns what the context of a bundle named <id>-<app> requires and the app's bundles, whose members are given by cluster, do
// not contain. While the context is read for the first time, it returns the time of the first request.
func (c *Contexts) Missing(bundle, namespace string, members map[string][]healthscope.Member) (missing []healthscope.Key, reading time.Time) {
	id, app, ok := strings.Cut(bundle, "-")
	if !ok || id == "" || app == "" {
		return nil, time.Time{}
	}
	c.mu.Lock()
	r := c.byID[id]
	if r == nil {
		r = &requirement{requestedAt: c.clock.Now(), bundles: map[types.NamespacedName]struct{}{}}
		c.byID[id] = r
		if c.queue != nil {
			c.queue.Add(id)
		}
	}
	r.bundles[types.NamespacedName{Namespace: namespace, Name: bundle}] = struct{}{}
	required, known, requestedAt := r.Requirements, r.known, r.requestedAt
	c.mu.Unlock()
	if !known {
		return nil, requestedAt
	}
	return required.Missing(app, namespace, members), time.Time{}
}

// start enqueues the contexts that were requested before there was a queue.
func (c *Contexts) start(_ context.Context, q workqueue.TypedRateLimitingInterface[string]) error {
	c.mu.Lock()
	c.queue = q
	c.mu.Unlock()
	c.contextsChanged(nil)
	return nil
}

// contextsChanged enqueues the requested contexts among ids, or all requested contexts if ids is nil. A bundle has the id of the status
// context, although another context of the same deployment may be in force.
func (c *Contexts) contextsChanged(ids []string) {
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
			c.queue.AddAfter(id, contextDebounce)
		}
	}
}

// Reconcile reads a context, and calls changed for its bundles if its requirements have changed.
func (c *Contexts) Reconcile(ctx context.Context, id string) (ctrl.Result, error) {
	required, err := c.read(ctx, id)
	if ctx.Err() != nil {
		return ctrl.Result{}, nil //nolint:nilerr // The controller is stopping.
	}
	c.outage.update(err, log.FromContext(ctx))
	switch {
	case outageKind(err) != nil:
		return ctrl.Result{RequeueAfter: etcdRetry}, nil //nolint:nilerr // The outage has been logged.
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

// read returns the requirements of the context in force whose status context has the given id.
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
	meta, _ := snapshot.Meta() // Unreadable metadata name no subject.
	if subject, ok := meta.DeploymentRef(); ok {
		if view, err = c.cache.View(ctx, subject, ""); err != nil {
			return none, err
		}
	}
	if view.Context == nil || view.StatusContext == nil || view.StatusContext.ID() != id {
		return none, nil
	}
	return status.Decode(view, nil).Requirements(view.Info.Actions), nil
}
