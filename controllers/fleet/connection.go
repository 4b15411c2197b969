package fleet

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"golang.org/x/oauth2"
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
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/controllers/observe"
)

// missingCRDHint says what to do when an API server does not serve bundles.
const missingCRDHint = " (k8splugin.io/v1alpha1): kubectl apply -k config/crd"

// leasesResource is the resource of the monitor's Lease.
const leasesResource = "leases"

// monitorLease is the name of the Lease of a cluster's monitor.
const monitorLease = "healthscope-monitor"

// maxRefusedPause is the maximum pause between attempts to read what the API server refuses.
const maxRefusedPause = 30 * time.Second

// drainTime is the pause before idle connections are closed a second time: a stream takes a moment to end.
const drainTime = time.Second

// connection is a connection to a cluster with one kubeconfig, for one set of
// namespaces. When these change, another connection replaces it. It stores bundles and nothing else.
type connection struct {
	// Access is how the cluster is reached, and the namespaces from which bundles are read.
	Access

	// token is the bearer token; nil when the cluster is reached without one.
	token *bearerToken
	clock clock.WithTickerAndDelayedExecution
	// wake is called when something may have changed. It does not block.
	wake func()
	// uncount are called once the bundles of this connection are not held any more.
	uncount []func()
	// store holds the bundles. bundles are the informers that read them, one for each namespace. lease reads the monitor's Lease; nil
	// without Options.Liveness. informers are all of them.
	store     bundleStore
	bundles   []*observe.Informer
	lease     *observe.Informer
	informers []*observe.Informer

	// mu guards liveness, to which the informers and the probes report.
	mu       sync.Mutex
	liveness *liveness

	// Only the member's goroutine uses the fields below. spec is the spec for which the connection was made; its token may have been renewed since.
	spec   clusterSpec
	cancel context.CancelFunc
	// synced is true once all bundles have been read through the connection.
	synced bool
}

// bearerToken is a token that can be changed while clients use it: the next request has the new one. An open watch keeps the one
// it was opened with, and the API server does not close it. It implements oauth2.TokenSource.
type bearerToken struct{ current atomic.Pointer[oauth2.Token] }

// Token implements oauth2.TokenSource. The token has no expiry, because client-go sends an expired token too.
func (t *bearerToken) Token() (*oauth2.Token, error) { return t.current.Load(), nil }

func (t *bearerToken) set(token string) { t.current.Store(&oauth2.Token{AccessToken: token}) }

// useToken replaces the token of a configuration by one that can be changed later, and returns it; nil when the configuration has no token, or reads it from a file.
func useToken(config *rest.Config) *bearerToken {
	if config.BearerToken == "" || config.BearerTokenFile != "" {
		return nil
	}
	token := &bearerToken{}
	token.set(config.BearerToken)
	config.BearerToken = ""
	config.Wrap(transport.TokenSourceWrapTransport(token))
	return token
}

// prepare makes the client, an informer of bundles for each namespace that may be read, or one for all, and an informer of the
// monitor's Lease. They send no request before run. changed is called for every bundle that changes.
func (c *connection) prepare(name string, changed func(types.NamespacedName), o Options) (err error) {
	if c.Client, err = c.meter.client(c.Config); err != nil {
		return err
	}
	gvk := k8spluginv1alpha1.GroupVersion.WithKind(k8spluginv1alpha1.ResourceBundleStateKind)
	c.reader, err = apiutil.RESTClientForGVK(gvk, false, false, c.Config, serializer.NewCodecFactory(memberScheme), c.Client)
	if err != nil {
		return err
	}
	namespaces := c.watchNamespaces()
	c.store = newBundleStore(name, namespaces, o.HealthChecks, changed)
	for _, namespace := range namespaces {
		source := toolscache.NewListWatchFromClient(c.reader, bundlesResource, namespace, fields.Everything())
		counted, uncount := c.meter.wrap(source, bundlesPage, usageOfBundle(o.HealthChecks))
		c.uncount = append(c.uncount, uncount)
		c.bundles = append(c.bundles, c.newInformer(bundleRules, "ResourceBundleStates", missingCRDHint, c.store[namespace], counted))
	}
	if o.Liveness == nil {
		return nil
	}
	leases, err := coordinationclient.NewForConfigAndClient(c.Config, c.Client)
	if err != nil {
		return err
	}
	source := toolscache.NewListWatchFromClient(leases.RESTClient(), leasesResource, o.Liveness.MonitorNamespace, fields.OneTermEqualSelector("metadata.name", monitorLease))
	c.lease = c.newInformer(leaseRules, "Leases", "", leaseStore{c}, listed{source})
	return nil
}

// listed lists before it watches. A reflector keeps all objects of a streaming list until it ends, and a member may send Leases without
// end; the size of a list is limited by the transport.
type listed struct{ *toolscache.ListWatch }

// IsWatchListSemanticsUnSupported makes a reflector list. client-go looks for this method.
func (listed) IsWatchListSemanticsUnSupported() bool { return true }

// newInformer makes an informer of the connection. Messages name the resource as what, and remedy says what to do when it is not served.
func (c *connection) newInformer(r observe.Rules, what, remedy string, store toolscache.ReflectorStore, source toolscache.ListerWatcher) *observe.Informer {
	informer := observe.NewInformer(r, observe.InformerOptions{
		TrackedOptions: observe.TrackedOptions{
			Clock: c.clock, MaxRetryInterval: maxRefusedPause,
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
	c.informers = append(c.informers, informer)
	return informer
}

// describe returns a message that explains why a resource cannot be read.
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

// run runs the informers and the probes until ctx ends, and returns once all of them have stopped.
func (c *connection) run(ctx context.Context) {
	var running sync.WaitGroup
	for _, informer := range c.informers {
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

// runProbes probes the API server regularly until ctx ends. The time of the first probe is random, so that a hub that starts
// does not probe all clusters at once. The hub's own API server, whose credentials Kubernetes renews, is probed only while it
// answers no other requests.
func (c *connection) runProbes(ctx context.Context) {
	pauses := retries(maxConnectPause)
	for pause := rand.N(probeInterval); sleep(ctx, c.clock, pause) == nil; { //nolint:gosec // The time of a probe is no secret.
		if pause = c.idleFor(); pause > 0 {
			continue
		}
		probeCtx, cancel := context.WithTimeout(ctx, c.liveness.timeout+probeGrace)
		err := c.CheckReady(probeCtx)
		cancel()
		if ctx.Err() != nil {
			return
		}
		recovered, hasAnswered := false, false
		c.updateLiveness(func(l *liveness, now time.Time) { recovered, hasAnswered = l.probed(now, err), !l.lastContact.IsZero() })
		if recovered {
			c.kick()
		}
		if pause = probeInterval; err == nil || errors.Is(err, errUnauthorized) {
			pauses = retries(maxProbePause)
		} else if pause = pauses.Step(); hasAnswered { // Other requests at least.
			pause = min(pause, maxProbePause)
		}
	}
}

// idleFor returns how long the next probe can wait: for the hub's own API server, until probeInterval after its last answer.
func (c *connection) idleFor() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.liveness.local {
		return 0
	}
	return c.liveness.lastContact.Add(probeInterval).Sub(c.clock.Now())
}

// answered notes that the API server has answered. After an outage, the member is assessed and waiting informers retry at once. Any
// other answer, of which there may be thousands in a second, counts at the next regular assessment.
func (c *connection) answered() {
	c.mu.Lock()
	recovered := c.liveness.answered(c.clock.Now())
	c.mu.Unlock()
	if recovered {
		c.wake()
		c.kick()
	}
}

// kick lets all informers that wait before a retry begin at once.
func (c *connection) kick() {
	for _, informer := range c.informers {
		informer.RetryNow()
	}
}

// reread reads bundles again, because the rules by which those of other monitors are judged have changed.
func (c *connection) reread() {
	for _, informer := range c.bundles {
		if c.store.hasForeign() || informer.State().Status != observe.Ready {
			informer.Relist(false)
		}
	}
}

// updateLiveness calls f with the liveness, which f may change, and wakes the member.
func (c *connection) updateLiveness(f func(l *liveness, now time.Time)) {
	c.mu.Lock()
	f(c.liveness, c.clock.Now())
	c.mu.Unlock()
	c.wake()
}

// continueFrom copies what the old connection knows of the cluster.
func (c *connection) continueFrom(old *connection) {
	old.mu.Lock()
	before := *old.liveness
	old.mu.Unlock()
	c.updateLiveness(func(l *liveness, _ time.Time) { l.continueFrom(&before) })
}

// updateWatchStates sets the states of the informers in the liveness. Tests without informers set them directly.
func (c *connection) updateWatchStates() {
	if len(c.bundles) > 0 {
		states := make([]observe.State, 0, len(c.bundles))
		for _, informer := range c.bundles {
			states = append(states, informer.State())
		}
		c.liveness.bundles = observe.Aggregate(states...)
	}
	if c.lease != nil {
		c.liveness.leases = c.lease.State()
	}
}

// assess returns the current assessment. own and foreign report which monitors fill the bundles.
func (c *connection) assess(own, foreign bool) assessment {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.updateWatchStates()
	c.liveness.own, c.liveness.foreign, c.liveness.synced = own, foreign, c.synced
	return c.liveness.assess(c.clock.Now())
}

// isSynced reports whether the connection has read all bundles and they are current.
func (c *connection) isSynced() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.updateWatchStates()
	return c.liveness.bundles.Status == observe.Ready
}

// leaseStore reports the monitor's Lease to a connection. It keeps no object, whatever the API server sends. It implements cache.ReflectorStore.
type leaseStore struct{ *connection }

// Add implements cache.ReflectorStore.
func (s leaseStore) Add(object any) error {
	if lease, ok := object.(*coordinationv1.Lease); ok {
		fingerprint := fmt.Sprintf("%s %q %s", lease.UID, ptr.Deref(lease.Spec.HolderIdentity, ""), ptr.Deref(lease.Spec.RenewTime, metav1.MicroTime{}).UTC())
		duration := time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second
		s.updateLiveness(func(l *liveness, now time.Time) { l.leaseObserved(fingerprint, duration, now) })
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
