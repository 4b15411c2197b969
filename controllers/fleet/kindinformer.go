package fleet

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/healthscope/healthscope/controllers/observe"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/bundle"
	"github.com/healthscope/healthscope/healthscope/kubevela"
	"github.com/healthscope/healthscope/healthscope/rules"
)

// DefaultFindInterval is the default of Objects.FindInterval.
const DefaultFindInterval = 30 * time.Second

// InitialSyncTimeout is how long the initial list of a kind may take before its objects
// are reported as Unknown. It leaves room for a slow API server: with 10 seconds
// for each answer, discovery takes 30 seconds, and the list 10 more.
const InitialSyncTimeout = 90 * time.Second

// kindRules say how long the watch of a kind may fail before its objects count as not current. A restart of an API server,
// or of an aggregated one, takes less than a minute.
var kindRules = observe.Rules{Grace: time.Minute, CatchUp: 500 * time.Millisecond}

// rightHint says how to give the controller the right to read a kind, and workloadsHint how to give it the right to read
// Kubernetes' workloads in the member whose name is inserted.
const (
	rightHint     = "to allow it, label a ClusterRole with these verbs: healthscope.core.oam.dev/aggregate-to-controller=true"
	workloadsHint = "to allow it: healthscope clusters add %s --context CONTEXT --workloads, with the other flags that the cluster was added with"
)

// informerKey identifies an informer: by its kind, and by its namespace in a cluster whose namespaces are limited. In other
// clusters the namespace is empty, which means all.
type informerKey struct {
	Kind

	namespace string
}

// kindOptions are what the informers of all kinds share.
type kindOptions struct {
	// FindInterval is the maximum pause between attempts to read a kind that the cluster does not serve or refuses. Attempts share
	// a discovery result for half of it. It must not be changed after the first call of Want.
	FindInterval time.Duration

	labelKeys []string
	userRules rules.UserRules
	// clock is the clock of the fleet once Setup has been called.
	clock clock.WithTickerAndDelayedExecution
	// changes receives the changes.
	changes *Subscription
}

// kindInformer watches the objects of one kind, and holds a Lookup of each.
type kindInformer struct {
	informerKey
	kindOptions

	// local is true in the hub's own cluster.
	local bool
	// clients are the clients of the cluster's connection in use.
	clients  *atomic.Pointer[clusterClients]
	stop     context.CancelFunc
	informer *observe.Informer
	// store holds what was read last: what Get returns while the cluster answers. The budget counts all of it.
	store *observe.Store[*Lookup]
	// uncount is called once the objects that are being read are not held any more.
	uncount func()
	// answered is true once the API server has answered, and clusterScoped while the kind is served, and is not namespaced.
	answered, clusterScoped atomic.Bool

	mu sync.Mutex
	// since is when the current list began.
	since time.Time
	// staleState is the cluster's state that explains why the results are stale while they are being read again.
	staleState ClusterState
}

// newKindInformer returns an informer, which the caller runs.
func newKindInformer(o kindOptions, at informerKey, local bool, clients *atomic.Pointer[clusterClients], stop context.CancelFunc) *kindInformer {
	k := &kindInformer{informerKey: at, kindOptions: o, local: local, clients: clients, stop: stop, since: o.clock.Now(), uncount: func() {}}
	// The store notifies of no change before the initial list is complete; its completion is a KindChange.
	k.store = observe.NewStore(k.toLookup, func(a, b *Lookup) bool { return reflect.DeepEqual(a, b) }, k.notify)
	k.informer = observe.NewInformer(kindRules, observe.InformerOptions{
		TrackedOptions: observe.TrackedOptions{Clock: o.clock, MaxRetryInterval: o.FindInterval, Describe: k.describe, Answered: func() { k.answered.Store(true) }},
		Open:           k.open, Store: k.store, Changed: func(observe.State) { k.changes.Add(KindChange{k.Kind}) },
	})
	return k
}

// notify adds the changes for an object that was added, changed or removed: was is nil when it was added, and is when it was removed.
func (k *kindInformer) notify(name types.NamespacedName, was, is *Lookup) {
	if was != nil {
		k.changes.Add(ObjectChange{k.Kind, name, was.Labels})
	}
	if is != nil && (was == nil || was.Labels != is.Labels) {
		k.changes.Add(ObjectChange{k.Kind, name, is.Labels})
	}
}

// run reads the kind until ctx ends.
func (k *kindInformer) run(ctx context.Context) {
	defer func() { k.uncount() }()
	k.informer.Run(ctx)
}

// relist reads the kind again, because its cluster was unreachable, has another connection, or because rules have changed.
// The previous results stay until then, as those of a cluster in staleState, but no longer than InitialSyncTimeout.
func (k *kindInformer) relist(staleState ClusterState) {
	k.mu.Lock()
	k.since, k.staleState = k.clock.Now(), staleState
	k.mu.Unlock()
	k.informer.Relist(!staleState.Answers())
	k.clock.AfterFunc(InitialSyncTimeout, func() {
		if k.informer.State().Status == observe.Pending {
			k.changes.Add(KindChange{k.Kind})
		}
	})
}

// describe returns a message that explains why the kind cannot be read.
func (k *kindInformer) describe(reason observe.Reason, err error) string {
	gvk, hint := k.GroupVersionKind, rightHint
	if !k.local && (gvk.Group == "apps" || gvk.Group == "batch") {
		hint = fmt.Sprintf(workloadsHint, k.Cluster)
	}
	switch {
	case reason == observe.Forbidden:
		return fmt.Sprintf("the controller may not list and watch %s %s; %s", gvk.GroupVersion(), gvk.Kind, hint)
	case reason == observe.NotServed && apierrors.ReasonForError(err) != metav1.StatusReasonUnknown:
		return fmt.Sprintf("the cluster does not serve %s %s for watching", gvk.GroupVersion(), gvk.Kind)
	case reason == observe.NotServed:
		return err.Error()
	}
	return fmt.Sprintf("cannot list and watch %s %s: %s", gvk.GroupVersion(), gvk.Kind, shortened(withoutAddress(err).Error()))
}

// open returns a ListerWatcher for the kind as the cluster serves it now. There is no event when a kind is added or changes, so
// discovery is asked again at each attempt. All kinds of a cluster share its answers.
func (k *kindInformer) open(ctx context.Context) (cache.ListerWatcher, error) {
	c := k.clients.Load()
	r, err := c.discovery.find(ctx, k.GroupVersionKind, k.discoveredAfter())
	k.clusterScoped.Store(err == nil && !r.namespaced)
	switch {
	case err != nil:
		return nil, err
	case !r.namespaced:
		return nil, notServedError(fmt.Sprintf("%s %s is not namespaced; only objects in a namespace can be referred to", k.GroupVersion(), k.GroupVersionKind.Kind))
	}
	source, uncount := c.Meter(observe.NewListerWatcher(c.client.Resource(k.GroupVersion().WithResource(r.name)).Namespace(k.namespace)))
	k.uncount()
	k.uncount = uncount
	return source, nil
}

// discoveredAfter returns the earliest time of a discovery result that may be used for the next list.
func (k *kindInformer) discoveredAfter() time.Time {
	now := k.clock.Now()
	if confirmBy := k.informer.State().ConfirmBy(); !confirmBy.IsZero() { // The API server has answered that it does not serve the kind, in contradiction to discovery.
		return later(confirmBy.Add(-observe.ConfirmAfter), now.Add(-maxDiscoveryAge))
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return later(k.since.Add(-maxDiscoveryAge), now.Add(-k.FindInterval/2))
}

// toLookup returns the part of an object that is kept.
func (k *kindInformer) toLookup(object any) *Lookup {
	u, ok := object.(*unstructured.Unstructured)
	if !ok { // A client returns nothing else than it was asked for.
		return &Lookup{Result: healthscope.Result{State: healthscope.Unknown, Reason: healthscope.ReasonNotSynced}}
	}
	bundle.Redact(u) // User rules get the same input as in a monitor.
	result := rules.Evaluate(u, rules.Options{User: k.userRules})
	result.Cluster = k.Cluster
	for _, key := range k.labelKeys {
		if value, ok := u.GetLabels()[key]; ok {
			if result.Labels == nil {
				result.Labels = map[string]string{}
			}
			result.Labels[key] = value
		}
	}
	kept := &Lookup{Result: result, Labels: intern(NewLabelSet(u.GetLabels())), Status: statusOf(u, result), Component: kubevela.ReadComponent(u)}
	kept.Resources, kept.Named = resourcesOf(u)
	if k.GroupVersionKind == kubevela.ApplicationKind {
		kept.Application = kubevela.ReadApplication(u.Object)
	}
	return kept
}

// visibility returns the visibility of the objects of the kind in a cluster that answers, or in the hub's own one in an outage. For that
// outage, and until the kind is read again, no scope is judged: it would be Unknown for a moment once it can be written.
func (k *kindInformer) visibility(unknown healthscope.Result, outage bool) visibility {
	k.mu.Lock()
	defer k.mu.Unlock()
	since := k.since
	if outage {
		since = k.clock.Now()
	}
	switch state := k.informer.State(); {
	case state.Status == observe.Ready:
		unknown.State, unknown.Reason, unknown.Message = healthscope.NotPresent, healthscope.ReasonNotFound, ""
		return visibility{kind: k, others: Lookup{Result: unknown}}
	case state.Status == observe.Problem:
		unknown.Reason, unknown.Message = k.reasonOf(state.Reason), state.Message
		if k.local && state.Reason == observe.NoAnswer && k.clock.Since(since) < kindRules.Grace {
			return visibility{others: settlingLookup(unknown, since, k.clock.Now())}
		}
		return visibility{others: Lookup{Result: unknown}}
	case !k.store.HasSynced() || k.clock.Since(k.since) >= InitialSyncTimeout:
		others := settlingLookup(unknown, k.since, k.clock.Now())
		others.Listing = others.Syncing && k.answered.Load() && !state.IsFailing()
		return visibility{others: others}
	}
	return visibility{kind: k, staleState: new(k.staleState), others: unreachableLookup(unknown, k.staleState)}
}

// reasonOf returns the reason of objects whose kind cannot be read, for the reason of its informer.
func (k *kindInformer) reasonOf(reason observe.Reason) healthscope.Reason {
	switch reason {
	case observe.Forbidden:
		return healthscope.ReasonForbidden
	case observe.NotServed:
		if k.clusterScoped.Load() {
			return healthscope.ReasonInvalidReference
		}
		return healthscope.ReasonKindNotFound
	case observe.NoAnswer, observe.Unauthorized:
	}
	return healthscope.ReasonNotSynced
}

// settlingLookup returns the Lookup of an object whose initial list began at a time.
func settlingLookup(unknown healthscope.Result, since, now time.Time) Lookup {
	return Lookup{Result: unknown, Syncing: now.Sub(since) < InitialSyncTimeout, Since: since}
}

// unreachableLookup returns the Lookup of an object that was never read, in a cluster that is unreachable.
func unreachableLookup(unknown healthscope.Result, s ClusterState) Lookup {
	unknown.Reason, unknown.Message, unknown.Since = s.Reachability.Reason(), s.Problem(), s.Since
	return Lookup{Result: unknown}
}

// visibility is which results hold for the objects of a kind in a namespace of a cluster.
type visibility struct {
	// kind holds the results of the objects that have been read; nil when none of them holds now.
	kind *kindInformer
	// staleState is the state of the cluster that makes the results stale; nil when they are current.
	staleState *ClusterState
	// others is what is known of an object that has not been read.
	others Lookup
}

// lookup returns the Lookup of an object that has been read, which is stale if its cluster is.
func (s visibility) lookup(kept *Lookup) Lookup {
	found := *kept
	if s.staleState == nil {
		return found
	}
	stale := healthscope.MarkUnreachable([]healthscope.Member{{Result: kept.Result}}, s.staleState.Reachability.Reason(), s.staleState.Problem(), s.staleState.Since)[0]
	found.Result, found.LastState = stale.Result, stale.LastState
	return found
}
