package fleet

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

// reads is the cache of a connection as far as anybody asks for it: they start
// it, and wait until all has been read. The informers are the connection's own.
// Those that a cache makes for a set of namespaces come with goroutines that
// wait until all have been read, whether or not that can still happen.
type reads struct {
	cache.Cache

	of *connection
}

// GetCache implements cluster.Cluster.
func (c *connection) GetCache() cache.Cache { return reads{Cache: c.Cluster.GetCache(), of: c} }

// Start implements cache.Informers. It returns when ctx has ended.
func (r reads) Start(ctx context.Context) error {
	for _, informer := range r.of.informers() {
		r.of.run(func() { informer.RunWithContext(ctx) })
	}
	<-ctx.Done()
	return nil
}

// WaitForCacheSync implements cache.Informers.
func (r reads) WaitForCacheSync(ctx context.Context) bool {
	for _, informer := range r.of.informers() {
		select {
		case <-informer.HasSyncedChecker().Done():
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// readBundles makes the informers of bundles: one for each namespace, or without any one for all.
func (c *connection) readBundles(scheme *runtime.Scheme, namespaces []string, transform toolscache.TransformFunc, usageOf func(runtime.Object) usage) error {
	gvk := k8spluginv1alpha1.GroupVersion.WithKind(k8spluginv1alpha1.ResourceBundleStateKind)
	bundles, err := apiutil.RESTClientForGVK(gvk, false, false, c.config, serializer.NewCodecFactory(scheme), c.http)
	if err != nil {
		return err
	}
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, namespace := range namespaces {
		source, end := c.meter.count(toolscache.NewListWatchFromClient(bundles, bundlesResource, namespace, fields.Everything()), bundlesPage, usageOf)
		c.uncount = append(c.uncount, end)
		informer := c.newInformer(source, &k8spluginv1alpha1.ResourceBundleState{})
		if err := errors.Join(informer.SetTransform(transform), informer.SetWatchErrorHandlerWithContext(heard)); err != nil {
			return err
		}
	}
	return nil
}
