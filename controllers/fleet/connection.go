package fleet

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/controllers/observe"
)

// missingBundles is what an API server lacks that does not serve bundles, for people.
const missingBundles = " (k8splugin.io/v1alpha1): apply config/crd"

// The resources that are watched on every connection.
const (
	bundlesResource = "resourcebundlestates"
	leasesResource  = "leases"
)

// connection is one way to a cluster: with one kubeconfig, to one set of
// namespaces. When these change, there is another one. It holds bundles and nothing else.
type connection struct {
	// config and http are how to reach the API server.
	config *rest.Config
	http   *http.Client
	// token is the bearer token; nil when the cluster is reached without one.
	token *observe.Token
	// reader reads bundles, whole.
	reader rest.Interface
	// namespaces are those from which bundles are read; none means all.
	namespaces []string
	pulse      *pulse
	// rules happens when other rules are in force.
	rules *occasion
	// meter counts what is held of the cluster.
	meter *meter

	mu sync.Mutex
	// stores hold the bundles, one for each namespace that is watched.
	stores []toolscache.SharedIndexInformer
	// uncount are to be called when nothing is held any more of what was read.
	uncount []func()
	// running are the informers; over is true when nothing may be added to them any more.
	running sync.WaitGroup
	over    bool
}

// connectOptions are what all connections have in common.
type connectOptions struct {
	scheme *runtime.Scheme
	// leaseNamespace is the namespace of the monitor's Lease; empty when nobody looks for it.
	leaseNamespace string
	// rules happens when other rules are in force.
	rules     *occasion
	transform func(cluster string) toolscache.TransformFunc
	// usage says what is held of a bundle.
	usage func(runtime.Object) usage
}

// newConnection prepares the connection to a cluster. Nothing is sent before it is run.
func newConnection(name string, config *rest.Config, namespaces []string, p *pulse, m *meter, o connectOptions) (*connection, error) {
	c := &connection{config: config, namespaces: namespaces, pulse: p, meter: m, rules: o.rules, token: useToken(config)}
	var err error
	if c.http, err = m.client(config); err != nil {
		return nil, errors.Wrapf(err, "cannot make a client for cluster %q", name)
	}
	if c.reader, err = newReader(config, c.http); err != nil {
		return nil, errors.Wrapf(err, "cannot make a client for cluster %q", name)
	}
	err = c.readBundles(o.scheme, namespaces, o.transform(name), o.usage)
	return c, errors.Wrapf(err, "cannot make a client for cluster %q", name)
}

// heard takes the errors of watches, of which the pulse has heard already.
func heard(context.Context, *toolscache.Reflector, error) {}

// newInformer makes an informer, with a look at all of its requests.
func (c *connection) newInformer(next toolscache.ListerWatcher, object runtime.Object) toolscache.SharedIndexInformer {
	w := watched{pulse: c.pulse, resource: leasesResource, what: "Leases", state: func(l *liveness) *readState { return &l.leases }}
	if _, ok := object.(*k8spluginv1alpha1.ResourceBundleState); ok {
		w = watched{
			pulse: c.pulse, resource: bundlesResource, what: "ResourceBundleStates", remedy: missingBundles,
			state: func(l *liveness) *readState { return &l.bundles }, rules: c.rules, foreign: c.holdsForeign,
		}
	}
	informer := toolscache.NewSharedIndexInformer(newWatched(next, w), object, 0, toolscache.Indexers{})
	if w.resource == bundlesResource {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.stores = append(c.stores, informer)
	}
	return informer
}

// linger is when connections that are idle are closed for the second time: a stream takes a moment to end.
const linger = time.Second

// serve reads bundles until ctx ends, and calls synced once all have been read. When it returns nothing of the connection runs any more.
func (c *connection) serve(ctx context.Context, synced func()) {
	defer func() {
		hangUp := func() { utilnet.CloseIdleConnectionsFor(c.http.Transport) }
		hangUp()
		time.AfterFunc(linger, hangUp)
	}()
	defer c.finish()
	informers := c.informers()
	for _, informer := range informers {
		c.run(func() { informer.RunWithContext(ctx) })
	}
	for _, informer := range informers {
		select {
		case <-informer.HasSyncedChecker().Done():
		case <-ctx.Done():
			return
		}
	}
	synced()
	<-ctx.Done()
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

// run runs something, unless the connection is at its end.
func (c *connection) run(do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.running.Go(do)
	}
}

// finish waits for all that runs.
func (c *connection) finish() {
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	c.running.Wait()
	for _, end := range c.uncount {
		end()
	}
}

// watchBundles calls changed for every bundle that comes, changes or goes. It must be called before the connection is started.
func (c *connection) watchBundles(changed func(types.NamespacedName)) error {
	tell := func(object any) {
		if gone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
			object = gone.Obj
		}
		if h, ok := object.(*held); ok {
			changed(types.NamespacedName{Namespace: h.Namespace, Name: h.Name})
		}
	}
	for _, informer := range c.informers() {
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: tell, UpdateFunc: func(_, object any) { tell(object) }, DeleteFunc: tell}); err != nil {
			return errors.Wrap(err, "cannot watch ResourceBundleStates")
		}
	}
	return nil
}

// watchLease tells the pulse of the monitor's Lease, which is in a namespace, until ctx ends.
func (c *connection) watchLease(ctx context.Context, namespace string) error {
	leases, err := coordinationclient.NewForConfigAndClient(c.config, c.http)
	if err != nil {
		return errors.Wrapf(err, "cannot watch Lease %q", monitorLease)
	}
	source := toolscache.NewListWatchFromClient(leases.RESTClient(), "leases", namespace, fields.OneTermEqualSelector("metadata.name", monitorLease))
	informer := c.newInformer(source, &coordinationv1.Lease{})
	if err := informer.SetWatchErrorHandlerWithContext(heard); err != nil {
		return errors.Wrapf(err, "cannot watch Lease %q", monitorLease)
	}
	seen := func(object any) {
		if l, ok := object.(*coordinationv1.Lease); ok {
			c.pulse.tell(func(life *liveness, now time.Time) { life.observed(markOf(l), durationOf(l), now) })
		}
	}
	gone := func(any) { c.pulse.tell(func(life *liveness, now time.Time) { life.observed("", 0, now) }) }
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: seen, UpdateFunc: func(_, object any) { seen(object) }, DeleteFunc: gone})
	if err != nil {
		return errors.Wrapf(err, "cannot watch Lease %q", monitorLease)
	}
	c.awaitLease()
	c.run(func() { informer.RunWithContext(ctx) })
	go func() {
		select {
		case <-registration.HasSyncedChecker().Done():
			c.pulse.tell(func(life *liveness, now time.Time) {
				if !life.lease.present {
					life.observed("", 0, now)
				}
			})
		case <-ctx.Done():
		}
	}()
	return nil
}

// awaitLease notes that the monitor's Lease begins to be read, which takes time: nobody has asked for it before.
func (c *connection) awaitLease() {
	c.pulse.tell(func(life *liveness, now time.Time) { life.leases.since = now })
}

// markOf returns what changes with each renewal of a Lease.
func markOf(l *coordinationv1.Lease) string {
	holder, renewed := "", ""
	if l.Spec.HolderIdentity != nil {
		holder = *l.Spec.HolderIdentity
	}
	if l.Spec.RenewTime != nil {
		renewed = l.Spec.RenewTime.UTC().Format(time.RFC3339Nano)
	}
	return fmt.Sprintf("%s %q %s", l.UID, holder, renewed)
}

func durationOf(l *coordinationv1.Lease) time.Duration {
	if l.Spec.LeaseDurationSeconds == nil {
		return 0
	}
	return time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second
}

// get returns a bundle; nil when there is none.
func (c *connection) get(name types.NamespacedName) *held {
	for _, store := range c.informers() {
		if object, ok, err := store.GetStore().GetByKey(name.String()); err == nil && ok {
			if h, ok := object.(*held); ok {
				return h
			}
		}
	}
	return nil
}

// all returns the names of all bundles.
func (c *connection) all() []types.NamespacedName {
	var names []types.NamespacedName
	for _, store := range c.informers() {
		for _, object := range store.GetStore().List() {
			if h, ok := object.(*held); ok {
				names = append(names, types.NamespacedName{Namespace: h.Namespace, Name: h.Name})
			}
		}
	}
	return names
}

func (c *connection) informers() []toolscache.SharedIndexInformer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.stores)
}
