package app

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/healthscope/healthscope/controllers/inventory"
)

// term is the manager of what this replica runs while it leads. It behaves as the manager of the program, but what is
// added to it (runnables, event handlers, metrics, HTTP handlers) is removed when the term ends.
type term struct {
	ctrl.Manager
	// Registerer is that of the program.
	prometheus.Registerer

	election  *leaderElection
	runnables []manager.Runnable

	mu sync.Mutex
	// cleanups remove what the term has added to objects that outlive it.
	cleanups []func()
}

// Add implements manager.Manager.
func (t *term) Add(r manager.Runnable) error {
	t.runnables = append(t.runnables, r)
	return nil
}

// GetCache implements cluster.Cluster.
func (t *term) GetCache() cache.Cache { return termCache{t.Manager.GetCache(), t} }

// GetFieldIndexer implements cluster.Cluster.
func (t *term) GetFieldIndexer() client.FieldIndexer { return t.GetCache() }

// AddMetricsServerExtraHandler implements manager.Manager. The path must be one that the program serves from its start.
func (t *term) AddMetricsServerExtraHandler(path string, handler http.Handler) error {
	if path != inventory.UnsyncedPath {
		return errors.Errorf("cannot serve %q: the program does not serve it when it starts", path)
	}
	t.election.unsynced.current.Store(&handler)
	t.onEnd(func() { t.election.unsynced.current.Store(nil) })
	return nil
}

// run runs what was added until ctx ends or a runnable fails. It returns when all runnables have stopped.
func (t *term) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, r := range t.runnables {
		group.Go(func() error { return r.Start(ctx) })
	}
	return group.Wait()
}

// onEnd calls f when the term has ended.
func (t *term) onEnd(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cleanups = append(t.cleanups, f)
}

// cleanUp removes what the term has added to objects that outlive it. It is called once, after run.
func (t *term) cleanUp() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, f := range t.cleanups {
		f()
	}
}

// Register implements prometheus.Registerer. It is the only method of a Registerer that is used.
func (t *term) Register(c prometheus.Collector) error {
	if err := t.Registerer.Register(c); err != nil {
		return err
	}
	t.onEnd(func() { t.Unregister(c) })
	return nil
}

// termCache is a cache of the program whose event handlers are removed when the term ends.
type termCache struct {
	cache.Cache

	term *term
}

// IndexField implements client.FieldIndexer. The index of a field must be the same in each term. leaderElection.setup calls it.
func (c termCache) IndexField(ctx context.Context, object client.Object, field string, values client.IndexerFunc) error {
	indexed, name := c.term.election.indexed, fmt.Sprintf("%T %s", object, field)
	if indexed[name] {
		return nil
	}
	err := c.Cache.IndexField(ctx, object, field, values)
	indexed[name] = err == nil
	return err
}

// GetInformer implements cache.Informers.
func (c termCache) GetInformer(ctx context.Context, object client.Object, options ...cache.InformerGetOption) (cache.Informer, error) {
	informer, err := c.Cache.GetInformer(ctx, object, options...)
	if err != nil {
		return nil, err
	}
	return termInformer{Informer: informer, term: c.term}, nil
}

type registration = toolscache.ResourceEventHandlerRegistration

// termInformer is an informer whose event handlers are removed when the term ends, except those of AddEventHandlerWithResyncPeriod,
// which nothing uses.
type termInformer struct {
	cache.Informer

	term *term
}

// AddEventHandler implements cache.Informer.
func (i termInformer) AddEventHandler(handler toolscache.ResourceEventHandler) (registration, error) {
	return i.AddEventHandlerWithOptions(handler, toolscache.HandlerOptions{})
}

// AddEventHandlerWithOptions implements cache.Informer.
func (i termInformer) AddEventHandlerWithOptions(handler toolscache.ResourceEventHandler, options toolscache.HandlerOptions) (registration, error) {
	added, err := i.Informer.AddEventHandlerWithOptions(handler, options)
	if err != nil {
		return nil, errors.Wrap(err, "cannot add an event handler")
	}
	i.term.onEnd(func() { _ = i.RemoveEventHandler(added) }) // It fails only if the informer has stopped.
	return added, nil
}
