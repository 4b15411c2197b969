package fleet

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/transport"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/controllers/observe"
	"github.com/healthscope/healthscope/healthscope/rules"
)

// missingBundles is the remedy when an API server does not serve bundles.
const missingCRDHint = " (k8splugin.io/v1alpha1): kubectl apply -k config/crd"

// leasesResource is the resource of the monitor's Lease.
const leasesResource = "leases"

// monitorLease is the name of the Lease of a cluster's monitor.
const monitorLease = "healthscope-monitor"

// maxRefusedPause bounds the pause between attempts to read what is refused.
const maxRefusedPause = 30 * time.Second

// drainTime is the pause before idle connections are closed for the second time: a stream takes a moment to end.
const drainTime = time.Second

// connection is one way to a cluster: with one kubeconfig, to one set of
// namespaces. When these change, there is another one. It holds bundles and nothing else.
type connection struct {
	// Access is how the cluster is reached, and from which namespaces bundles are read.
	Access

	// token is the bearer token; nil when the cluster is reached without one.
	token *observe.Token
	clock clock.WithTickerAndDelayedExecution
	// wake is called when something may have changed. It does not block.
	wake func()
	// uncount are called when the bundles of this connection are not held any more.
	uncount []func()
	// store holds the bundles, and bundles read them, one for each namespace. lease reads the monitor's Lease; nil without Options.Liveness.
	store   bundleStore
	bundles []*observe.Informer
	lease   *observe.Informer

	// mu guards liveness, to which all who read and probe report.
	mu       sync.Mutex
	liveness *liveness

	// What follows is the member's own. spec is what the connection was made for; its token may have been renewed since.
	spec   clusterSpec
	cancel context.CancelFunc
	// synced is true once all bundles have been read through the connection.
	synced bool
}

// useToken makes a configuration send a Token that can be changed, in place of the token that it has; nil when it has none, or reads it from a file.
func useToken(config *rest.Config) *observe.Token {
	if config.BearerToken == "" || config.BearerTokenFile != "" {
		return nil
	}
	token := observe.NewToken(config.BearerToken)
	config.BearerToken = ""
	config.Wrap(transport.TokenSourceWrapTransport(token))
	return token
}

// prepare makes what reads the cluster. Nothing is sent before the connection is served. changed is called for every bundle that changes.
func (c *connection) prepare(name string, changed func(types.NamespacedName), o Options) (err error) {
	if c.Client, err = c.meter.client(c.Config); err != nil {
		return err
	}
	if c.reader, err = newReader(c.Config, c.Client); err != nil {
		return err
	}
	if err = c.newBundleInformers(name, changed, o.HealthChecks); err != nil || o.Liveness == nil {
		return err
	}
	return c.newLeaseInformer(o.Liveness.MonitorNamespace)
}

// readBundles makes the informers of bundles: one for each namespace, or without any one for all.
func (c *connection) newBundleInformers(name string, changed func(types.NamespacedName), userRules rules.UserRules) error {
	gvk := k8spluginv1alpha1.GroupVersion.WithKind(k8spluginv1alpha1.ResourceBundleStateKind)
	bundles, err := apiutil.RESTClientForGVK(gvk, false, false, c.Config, serializer.NewCodecFactory(memberScheme), c.Client)
	if err != nil {
		return err
	}
	namespaces := c.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	c.store = newBundleStore(name, namespaces, userRules, changed)
	for _, namespace := range namespaces {
		source := toolscache.NewListWatchFromClient(bundles, bundlesResource, namespace, fields.Everything())
		counted, uncount := c.meter.wrap(source, bundlesPage, usageOfBundle(userRules))
		c.uncount = append(c.uncount, uncount)
		c.bundles = append(c.bundles, c.newInformer(bundleRules, "ResourceBundleStates", missingCRDHint, c.store[namespace], counted))
	}
	return nil
}

// readLease makes the informer of the monitor's Lease, which is in a namespace.
func (c *connection) newLeaseInformer(namespace string) error {
	leases, err := coordinationclient.NewForConfigAndClient(c.Config, c.Client)
	if err != nil {
		return errors.Wrapf(err, "cannot watch Lease %q", monitorLease)
	}
	source := toolscache.NewListWatchFromClient(leases.RESTClient(), leasesResource, namespace, fields.OneTermEqualSelector("metadata.name", monitorLease))
	c.lease = c.newInformer(leaseRules, "Leases", "", leaseStore{c}, source)
	return nil
}

// newInformer makes an informer of the connection. what names what it reads in messages, and remedy says what to do when it is not served.
func (c *connection) newInformer(r observe.Rules, what, remedy string, store toolscache.ReflectorStore, source toolscache.ListerWatcher) *observe.Informer {
	return observe.NewInformer(r, observe.InformerOptions{
		TrackedOptions: observe.TrackedOptions{
			Clock: c.clock, MaxRefused: maxRefusedPause,
			Describe: func(reason observe.Reason, err error) string { return describe(what, remedy, reason, err) },
			Answered: c.answered,
			Failed: func(err error) {
				c.updateLiveness(func(l *liveness, now time.Time) { l.unanswered(now, shortened(withoutAddress(err).Error())) })
			},
		},
		Open:    func(context.Context) (toolscache.ListerWatcher, error) { return source, nil },
		Store:   store,
		Changed: func(observe.State) { c.wake() },
	})
}

// describe returns why something cannot be read, as text.
func describe(what, remedy string, reason observe.Reason, err error) string {
	switch reason {
	case observe.Unauthorized:
		return errUnauthorized.Error()
	case observe.Forbidden:
		return "the controller may not list and watch " + what + ": " + shortened(err.Error())
	case observe.NotServed:
		return "the API server does not serve " + what + remedy
	case observe.NoAnswer:
	}
	return "cannot list and watch " + what + ": " + shortened(withoutAddress(err).Error())
}

// serve reads until ctx ends. When it returns nothing of the connection runs any more.
func (c *connection) run(ctx context.Context) {
	var running sync.WaitGroup
	for _, informer := range c.informers() {
		running.Go(func() { informer.Run(ctx) })
	}
	if !c.liveness.disabled() {
		running.Go(func() { c.runProbes(ctx) })
	}
	running.Wait()
	for _, uncount := range c.uncount {
		uncount()
	}
	closeIdle := func() { utilnet.CloseIdleConnectionsFor(c.Client.Transport) }
	closeIdle()
	c.clock.AfterFunc(drainTime, closeIdle)
}

// probe asks the API server every now and then whether it is there, until ctx ends. The first time is at random, so that a
// hub that starts does not ask all clusters at once. The hub's own API server, whose credentials Kubernetes renews, is asked
// only while nothing else comes from there.
func (c *connection) runProbes(ctx context.Context) {
	var backoff time.Duration
	for pause := rand.N(probeInterval); ; { //nolint:gosec // As above.
		select {
		case <-c.clock.After(pause):
		case <-ctx.Done():
			return
		}
		if pause = c.idleFor(); pause > 0 {
			continue
		}
		probeCtx, cancel := context.WithTimeout(ctx, c.liveness.timeout+probeGrace)
		err := c.Ask(probeCtx)
		cancel()
		if ctx.Err() != nil {
			return
		}
		recovered, maxPause := false, maxConnectPause
		c.updateLiveness(func(l *liveness, now time.Time) {
			recovered = l.probed(now, err)
			if !l.lastContact.IsZero() {
				maxPause = maxProbePause
			}
		})
		if recovered {
			c.kick()
		}
		pause, backoff = probeInterval, 0
		if err != nil && !errors.Is(err, errUnauthorized) {
			backoff = nextPause(backoff, maxPause)
			pause = jittered(backoff)
		}
	}
}

// idleFor returns how long the next probe can wait: of the hub's own API server, as long as it answers other requests.
func (c *connection) idleFor() (pause time.Duration) {
	c.readLiveness(func(l *liveness, now time.Time) {
		if l.local {
			pause = l.lastContact.Add(probeInterval).Sub(now)
		}
	})
	return pause
}

// answered notes that the API server has answered. What waits for that begins at once.
func (c *connection) answered() {
	recovered := false
	c.updateLiveness(func(l *liveness, now time.Time) { recovered = l.answered(now) })
	if recovered {
		c.kick()
	}
}

// kick lets all attempts begin at once that wait.
func (c *connection) kick() {
	for _, informer := range c.informers() {
		informer.Kick()
	}
}

func (c *connection) informers() []*observe.Informer {
	all := append([]*observe.Informer(nil), c.bundles...)
	if c.lease != nil {
		all = append(all, c.lease)
	}
	return all
}

// reread reads bundles again, because rules have changed by which those of other monitors are judged.
func (c *connection) reread() {
	for _, informer := range c.bundles {
		if c.store.hasForeign() || informer.State().Status != observe.Ready {
			informer.Reread(false)
		}
	}
}

// update changes the liveness.
func (c *connection) updateLiveness(f func(l *liveness, now time.Time)) {
	c.mu.Lock()
	f(c.liveness, c.clock.Now())
	c.mu.Unlock()
	c.wake()
}

// read reads the liveness.
func (c *connection) readLiveness(f func(l *liveness, now time.Time)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.updateWatchStates()
	f(c.liveness, c.clock.Now())
}

// readStates sets in the liveness whether bundles and the Lease are current. Without informers, in tests, it has been set.
func (c *connection) updateWatchStates() {
	if len(c.bundles) > 0 {
		states := make([]observe.State, 0, len(c.bundles))
		for _, informer := range c.bundles {
			states = append(states, informer.State())
		}
		c.liveness.bundles = observe.All(states...)
	}
	if c.lease != nil {
		c.liveness.leases = c.lease.State()
	}
}

// assess returns the assessment now.
func (c *connection) assess() (a assessment) {
	c.readLiveness(func(l *liveness, now time.Time) { a = l.assess(now) })
	return a
}

// isSynced reports whether all bundles have been read over the connection, and are current.
func (c *connection) isSynced() (synced bool) {
	c.readLiveness(func(l *liveness, _ time.Time) { synced = l.bundles.Status == observe.Ready })
	return synced
}

// leaseStore reports the monitor's Lease to a connection. It implements cache.ReflectorStore.
type leaseStore struct{ *connection }

// Add implements cache.ReflectorStore.
func (s leaseStore) Add(object any) error {
	if lease, ok := object.(*coordinationv1.Lease); ok {
		s.updateLiveness(func(l *liveness, now time.Time) { l.leaseObserved(leaseFingerprint(lease), leaseDuration(lease), now) })
	}
	return nil
}

// Update implements cache.ReflectorStore.
func (s leaseStore) Update(object any) error { return s.Add(object) }

// Delete implements cache.ReflectorStore.
func (s leaseStore) Delete(any) error {
	s.updateLiveness(func(l *liveness, now time.Time) { l.leaseObserved("", 0, now) })
	return nil
}

// Replace implements cache.ReflectorStore.
func (s leaseStore) Replace(all []any, _ string) error {
	if len(all) == 0 {
		return s.Delete(nil)
	}
	return s.Add(all[0])
}

// Resync implements cache.ReflectorStore.
func (s leaseStore) Resync() error { return nil }

// markOf returns what changes with each renewal of a Lease.
func leaseFingerprint(l *coordinationv1.Lease) string {
	holder, renewed := "", ""
	if l.Spec.HolderIdentity != nil {
		holder = *l.Spec.HolderIdentity
	}
	if l.Spec.RenewTime != nil {
		renewed = l.Spec.RenewTime.UTC().Format(time.RFC3339Nano)
	}
	return fmt.Sprintf("%s %q %s", l.UID, holder, renewed)
}

func leaseDuration(l *coordinationv1.Lease) time.Duration {
	if l.Spec.LeaseDurationSeconds == nil {
		return 0
	}
	return time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second
}
