package app

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// term is the manager of what runs while this replica leads. All else is that of the program's manager; what a term adds
// to it (runnables, event handlers, metrics, paths) is gone with the term.
type term struct {
	ctrl.Manager

	terms     *terms
	runnables []manager.Runnable

	mu sync.Mutex
	// ends undo what the term has added to what outlives it.
	ends []func()
}

func newTerm(t *terms) *term { return &term{Manager: t.mgr, terms: t} }

// Add implements manager.Manager.
func (t *term) Add(r manager.Runnable) error {
	t.runnables = append(t.runnables, r)
	return nil
}

// GetCache implements cluster.Cluster.
func (t *term) GetCache() cache.Cache { return t.cache(t.Manager.GetCache()) }

// GetFieldIndexer implements cluster.Cluster.
func (t *term) GetFieldIndexer() client.FieldIndexer { return t.cache(t.Manager.GetCache()) }

// AddMetricsServerExtraHandler implements manager.Manager, for the paths that the program serves.
func (t *term) AddMetricsServerExtraHandler(path string, handler http.Handler) error {
	t.onEnd(func() { _ = t.terms.handlers.set(path, nil) }) // It is known.
	return t.terms.handlers.set(path, handler)
}

// cache returns a cache whose event handlers are removed with the term.
func (t *term) cache(c cache.Cache) cache.Cache { return termCache{Cache: c, term: t} }

// run runs what was added until ctx ends or one fails, and returns when none runs any more.
func (t *term) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, r := range t.runnables {
		group.Go(func() error { return r.Start(ctx) })
	}
	return group.Wait()
}

// onEnd calls f when the term is over.
func (t *term) onEnd(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ends = append(t.ends, f)
}

// release undoes what the term has added to what outlives it.
func (t *term) release() {
	t.mu.Lock()
	ends := t.ends
	t.ends = nil
	t.mu.Unlock()
	for _, end := range ends {
		end()
	}
}

// Register implements prometheus.Registerer.
func (t *term) Register(c prometheus.Collector) error {
	if err := metrics.Registry.Register(c); err != nil {
		return err
	}
	t.onEnd(func() { metrics.Registry.Unregister(c) })
	return nil
}

// MustRegister implements prometheus.Registerer.
func (t *term) MustRegister(all ...prometheus.Collector) {
	for _, c := range all {
		if err := t.Register(c); err != nil {
			panic(err)
		}
	}
}

// Unregister implements prometheus.Registerer.
func (*term) Unregister(c prometheus.Collector) bool { return metrics.Registry.Unregister(c) }

// indexes are the fields that the cache of the program is indexed by. An index stays when the term ends that made it.
type indexes map[string]bool

// termCache is a cache that outlives a term.
type termCache struct {
	cache.Cache

	term *term
}

// IndexField implements client.FieldIndexer. A field has the same values in each term.
func (c termCache) IndexField(ctx context.Context, object client.Object, field string, values client.IndexerFunc) error {
	if c.term.terms.indexes[field] {
		return nil
	}
	if err := c.Cache.IndexField(ctx, object, field, values); err != nil {
		return err
	}
	c.term.terms.indexes[field] = true
	return nil
}

// GetInformer implements cache.Informers.
func (c termCache) GetInformer(ctx context.Context, object client.Object, options ...cache.InformerGetOption) (cache.Informer, error) {
	informer, err := c.Cache.GetInformer(ctx, object, options...)
	if err != nil {
		return nil, err
	}
	return termInformer{Informer: informer, term: c.term}, nil
}

// termInformer is an informer whose event handlers are removed when the term ends.
type termInformer struct {
	cache.Informer

	term *term
}

// AddEventHandler implements cache.Informer.
func (i termInformer) AddEventHandler(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.kept(i.Informer.AddEventHandler(handler))
}

// AddEventHandlerWithResyncPeriod implements cache.Informer.
func (i termInformer) AddEventHandlerWithResyncPeriod(handler toolscache.ResourceEventHandler, period time.Duration) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.kept(i.Informer.AddEventHandlerWithResyncPeriod(handler, period))
}

// AddEventHandlerWithOptions implements cache.Informer.
func (i termInformer) AddEventHandlerWithOptions(handler toolscache.ResourceEventHandler, options toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.kept(i.Informer.AddEventHandlerWithOptions(handler, options))
}

func (i termInformer) kept(registration toolscache.ResourceEventHandlerRegistration, err error) (toolscache.ResourceEventHandlerRegistration, error) {
	if err != nil {
		return nil, errors.Wrap(err, "cannot follow objects")
	}
	i.term.onEnd(func() { _ = i.RemoveEventHandler(registration) }) // It fails when the informer has ended, which is as good.
	return registration, nil
}
