package fleet

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/controllers/fleet/kubeconfig"
	"github.com/healthscope/healthscope/controllers/observe"
	"github.com/healthscope/healthscope/healthscope/bundle"
	"github.com/healthscope/healthscope/healthscope/kubevela"
	"github.com/healthscope/healthscope/healthscope/rules"
)

// bundlesResource is the resource of bundles.
const bundlesResource = "resourcebundlestates"

// Estimates of the bytes that the hub holds of a bundle, of one of its resources and of an object that scopes refer to,
// without the strings that are not shared.
const (
	bundleBytes   = 1536
	resourceBytes = 768
	objectBytes   = 1536

	// resourceOverhead is the estimate for a resource that an object names.
	resourceOverhead = 64
)

// nameCopies is how often a name is held at most: the keys of stores, queues and indexes contain it.
const nameCopies = 6

// The page sizes of lists, which keep each answer within its maximum size.
const (
	bundlesPage = 20
	objectsPage = 500
)

// meteredListerWatcher reads a resource of a cluster within the cluster's budget: it
// counts each object as soon as it is decoded, before it is stored.
type meteredListerWatcher struct {
	toolscache.ListerWatcher

	meter *meter
	// usageOf trims an object to what is held, and returns the usage of the rest.
	usageOf func(runtime.Object) usage
	page    int64
	// maxObjects is the maximum number of objects in the initial events of a watch; zero means no limit.
	maxObjects int64

	// The lock of quotas guards the fields below. round counts the initial lists, by list or watch.
	counts map[types.NamespacedName]countedUsage
	round  int
}

// countedUsage is the usage of an object, and the round in which it was last seen.
type countedUsage struct {
	usage

	round int
}

// wrap returns a ListerWatcher that reads a resource within the budget. The caller calls uncount once nothing of the resource is held any more.
func (m *meter) wrap(next toolscache.ListerWatcher, page int64, usageOf func(runtime.Object) usage) (metered toolscache.ListerWatcher, uncount func()) {
	if m == nil {
		return next, func() {}
	}
	c := &meteredListerWatcher{ListerWatcher: next, meter: m, usageOf: usageOf, page: page, counts: map[types.NamespacedName]countedUsage{}}
	if c.maxObjects = m.quota.quotas.hard.Resources; page == bundlesPage {
		c.maxObjects = m.quota.quotas.hard.Bundles
	}
	return c, c.releaseAll
}

// ListWithContext implements cache.ListerWatcherWithContext. It reads in pages. It does not accept
// a list of any age (version 0), for which a server with a watch cache ignores the page size.
func (c *meteredListerWatcher) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if options.ResourceVersion == "0" {
		options.ResourceVersion, options.ResourceVersionMatch = "", ""
	}
	if options.Continue == "" {
		c.startRound()
	}
	options.Limit = c.page
	list, err := toolscache.ToListerWatcherWithContext(c.ListerWatcher).ListWithContext(ctx, options)
	if err != nil {
		return nil, err
	}
	if err := meta.EachListItem(list, c.admit); err != nil {
		return nil, err
	}
	return list, nil
}

// WatchWithContext implements cache.ListerWatcherWithContext.
func (c *meteredListerWatcher) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	fromStart := options.SendInitialEvents != nil && *options.SendInitialEvents
	if fromStart {
		c.startRound()
	} else {
		c.sweep() // The list has been stored.
	}
	stream, err := toolscache.ToListerWatcherWithContext(c.ListerWatcher).WatchWithContext(ctx, options)
	if err != nil {
		return nil, err
	}
	received := int64(0)
	return observe.Filter(stream, func(event watch.Event) bool {
		switch {
		case fromStart && observe.EndsInitialEvents(event):
			fromStart = false
			c.sweep()
		case fromStart && event.Type != watch.Bookmark:
			if received++; c.maxObjects > 0 && received > c.maxObjects {
				c.meter.cutOff(fmt.Sprintf("it has not ended a list after %d events", c.maxObjects))
			}
		case event.Type != watch.Bookmark && c.meter.awaitChange(ctx) != nil:
			return false
		}
		return c.count(event)
	}), nil
}

// count counts an event, and reports whether it is passed on.
func (c *meteredListerWatcher) count(event watch.Event) bool {
	switch event.Type {
	case watch.Added, watch.Modified:
		return c.admit(event.Object) == nil
	case watch.Deleted:
		c.release(event.Object)
	case watch.Bookmark, watch.Error:
	}
	return true
}

// startRound starts a round: all objects will be received again.
func (c *meteredListerWatcher) startRound() {
	c.meter.quota.quotas.mu.Lock()
	defer c.meter.quota.quotas.mu.Unlock()
	c.round++
}

// sweep ends a round: objects that were not received in it are not held any more.
func (c *meteredListerWatcher) sweep() {
	c.meter.quota.quotas.mu.Lock()
	defer c.meter.quota.quotas.mu.Unlock()
	for name, was := range c.counts {
		if was.round != c.round {
			c.releaseLocked(name)
		}
	}
}

// releaseAll notes that no object is held any more.
func (c *meteredListerWatcher) releaseAll() {
	c.startRound()
	c.sweep()
}

// admit counts an object before it is stored, and returns an error when it must not be stored.
func (c *meteredListerWatcher) admit(object runtime.Object) error {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	used := c.usageOf(object)
	q := c.meter.quota
	q.quotas.mu.Lock()
	defer q.quotas.mu.Unlock()
	if err := c.meter.err(); err != nil {
		return err
	}
	name := types.NamespacedName{Namespace: accessor.GetNamespace(), Name: accessor.GetName()}
	q.used = q.used.minus(c.counts[name].usage).plus(used)
	c.counts[name] = countedUsage{used, c.round}
	q.quotas.enforce(q)
	return c.meter.err()
}

// release notes that an object is not held any more.
func (c *meteredListerWatcher) release(object runtime.Object) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return
	}
	c.meter.quota.quotas.mu.Lock()
	defer c.meter.quota.quotas.mu.Unlock()
	c.releaseLocked(types.NamespacedName{Namespace: accessor.GetNamespace(), Name: accessor.GetName()})
}

// releaseLocked is release for callers that hold the lock.
func (c *meteredListerWatcher) releaseLocked(name types.NamespacedName) {
	if c.meter.err() == nil {
		c.meter.quota.used = c.meter.quota.used.minus(c.counts[name].usage)
	}
	delete(c.counts, name)
}

// usageOfBundle returns a function that trims a bundle to what is held, and returns the usage of the rest.
func usageOfBundle(userRules rules.UserRules) func(runtime.Object) usage {
	return func(object runtime.Object) usage {
		b, ok := object.(*k8spluginv1alpha1.ResourceBundleState)
		if !ok {
			return usage{bytes: bundleBytes}
		}
		annotations, writes := b.Annotations, b.ManagedFields
		bundle.Trim(b, userRules)
		b.Annotations, b.ManagedFields = annotations, writes // The store reads from them when the bundle was written.
		u := usage{bundles: 1, resources: int64(len(b.Status.Resources)), bytes: bundleBytes + nameCopies*totalLength(b.Name, string(b.UID), b.ResourceVersion) + labelBytes(b.Labels)}
		for i := range b.Status.Resources {
			r := &b.Status.Resources[i]
			u.bytes += resourceBytes + totalLength(r.Group, r.Version, r.Kind, r.Namespace, r.Name, r.UID, r.State, r.Reason, r.Message) + labelBytes(r.Labels)
			if r.Owner != nil {
				u.bytes += totalLength(r.Owner.Name)
			}
		}
		return u
	}
}

// usageOfObject returns the usage of an object that scopes refer to.
func usageOfObject(object runtime.Object) usage {
	u := usage{resources: 1, bytes: objectBytes}
	if accessor, err := meta.Accessor(object); err == nil {
		u.bytes += nameCopies*totalLength(accessor.GetNamespace(), accessor.GetName(), string(accessor.GetUID()), accessor.GetResourceVersion()) + labelBytes(accessor.GetLabels())
	}
	if o, ok := object.(*unstructured.Unstructured); ok && strings.Contains(o.GroupVersionKind().Group, ".") { // Kubernetes' own kinds have rules.
		u.bytes += statusUsage(o)
	}
	return u
}

func totalLength(texts ...string) (bytes int64) {
	for _, t := range texts {
		bytes += int64(len(t))
	}
	return bytes
}

func labelBytes(labels map[string]string) (bytes int64) {
	for key, value := range labels {
		bytes += totalLength(key, value)
	}
	return bytes
}

// client returns a client for a cluster, which reads nothing any more once the cluster exceeds its budget.
func (m *meter) client(config *rest.Config) (*http.Client, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil || m == nil {
		return client, err
	}
	next := client.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	return &http.Client{Transport: &meteredTransport{next, m}, Timeout: client.Timeout}, nil
}

// meteredTransport ends all requests to a cluster as soon as it exceeds its budget.
type meteredTransport struct {
	next  http.RoundTripper
	meter *meter
}

// WrappedRoundTripper implements net.RoundTripperWrapper of apimachinery, by which idle connections are closed.
func (m *meteredTransport) WrappedRoundTripper() http.RoundTripper { return m.next }

// RoundTrip implements http.RoundTripper.
func (m *meteredTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if err := m.meter.err(); err != nil {
		return nil, err
	}
	response, err := m.next.RoundTrip(request)
	bundles := path.Base(request.URL.Path) == bundlesResource
	if err != nil {
		m.checkTooLarge(bundles, err)
		return nil, err
	}
	response.Body = &meteredBody{ReadCloser: response.Body, transport: m, bundles: bundles}
	return response, nil
}

// checkTooLarge cuts the cluster off when its bundles are too large to be read. For another kind, it is a problem of that kind only.
func (m *meteredTransport) checkTooLarge(bundles bool, err error) {
	if tooLarge := (*kubeconfig.TooLargeError)(nil); bundles && errors.As(err, &tooLarge) {
		m.meter.cutOff(err.Error())
	}
}

// meteredBody is the body of an answer. Reading it fails once the cluster exceeds its budget.
type meteredBody struct {
	io.ReadCloser

	transport *meteredTransport
	bundles   bool
}

// Read implements io.Reader.
func (b *meteredBody) Read(p []byte) (int, error) {
	if err := b.transport.meter.err(); err != nil {
		return 0, err
	}
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.transport.checkTooLarge(b.bundles, err)
	}
	return n, err
}

var _ toolscache.ListerWatcherWithContext = (*meteredListerWatcher)(nil)

// statusUsage returns the maximum number of bytes that are kept of an object's status.
func statusUsage(u *unstructured.Unstructured) int64 {
	if u.Object["status"] == nil {
		return 0
	}
	bytes := int64(maxStatusText)
	resources, _ := resourcesOf(u)
	for _, r := range resources {
		bytes += resourceOverhead + totalLength(r.APIVersion, r.Kind, r.Namespace, r.Name)
	}
	if u.GroupVersionKind() == kubevela.ApplicationKind {
		for _, a := range kubevela.ReadApplication(u.Object).Applied {
			bytes += 2*resourceOverhead + totalLength(a.Group, a.Version, a.Kind, a.Cluster, a.Namespace, a.Name)
		}
	}
	return bytes
}
