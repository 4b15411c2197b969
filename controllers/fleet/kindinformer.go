package fleet

import (
	"context"
	"fmt"
	"reflect"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/healthscope/healthscope/controllers/observe"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/bundle"
	"github.com/healthscope/healthscope/healthscope/kubevela"
	"github.com/healthscope/healthscope/healthscope/rules"
)

// DefaultFindInterval is the default of Objects.FindInterval.
const DefaultFindInterval = 30 * time.Second

// SettleTime is how long a kind may take to be read for the first time before
// its objects are called Unknown for that reason. A slow API server is no problem:
// with 10 seconds for an answer it takes 30 to find out how a kind is served, and 10 more to list it.
const SettleTime = 90 * time.Second

// kindRules are what is tolerated of the watch of a kind. An API server that is restarted, or an API behind it, takes less
// than a minute.
var kindRules = observe.Rules{Grace: time.Minute, Settle: 500 * time.Millisecond}

// rightHint says how the controller gets the right to read a kind, and workloadsHint how it gets that to read Kubernetes'
// workloads in the member that it is formatted with.
const (
	rightHint     = "to allow it, label a ClusterRole with these verbs: healthscope.core.oam.dev/aggregate-to-controller=true"
	workloadsHint = "to allow it: healthscope clusters add %s --context CONTEXT --workloads, with the other flags that the cluster was added with"
)

// confirmPause is the pause before a cluster is asked again whether it serves a kind, to confirm that it does not.
const confirmPause = observe.Doubt + time.Second

// place is where a kind is watched: in one namespace of a cluster whose namespaces are limited, and else in all of them.
type informerKey struct {
	Kind

	namespace string
}

// access is how the objects of a cluster are read; client is nil as long as they are not.
type clusterClients struct {
	client    dynamic.Interface
	discovery *apiDiscovery
	meter     *meter
}

// kindInformer holds what is kept of the objects of one kind.
type kindInformer struct {
	informerKey

	// local is true in the hub's own cluster.
	local    bool
	objects  *Objects
	changes  *Subscription
	stop     context.CancelFunc
	informer *observe.Informer
	// kept is what was read last: what Get returns while the cluster is seen. A budget counts it all.
	store *observe.Store[*Lookup]
	// uncount is called when what is being read is not held any more.
	uncount func()
	// answered is true once the API server has answered.
	answered atomic.Bool

	// What follows is guarded by the lock of objects. since is since when the kind is being read, or read again.
	since time.Time
	// away is the cluster's state while its results were stale.
	staleState ClusterState
	// clusterScoped is true when the kind is served, and its objects are in no namespace.
	clusterScoped bool
}

// newKindInformer returns what reads a kind once it runs. The caller has the lock of objects.
func newKindInformer(o *Objects, at informerKey, stop context.CancelFunc) *kindInformer {
	k := &kindInformer{informerKey: at, local: o.ensureCluster(at.Cluster).state.Local, objects: o, changes: o.changes, stop: stop, since: o.clock.Now(), uncount: func() {}}
	// Before all was read for the first time, that it is makes a KindChange.
	k.store = observe.NewStore(k.toLookup, func(a, b *Lookup) bool { return reflect.DeepEqual(a, b) }, k.notify)
	k.informer = observe.NewInformer(kindRules, observe.InformerOptions{
		TrackedOptions: observe.TrackedOptions{Clock: o.clock, MaxRefused: o.FindInterval, Describe: k.describe, Answered: func() { k.answered.Store(true) }},
		Open:           k.open, Store: k.store, Changed: func(observe.State) { k.changes.Add(KindChange{k.Kind}) },
	})
	return k
}

// changed adds a change of an object that was kept, is kept, or both.
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

// renew reads the kind again, because its cluster was away, is reached in another way, or is judged by other rules. What was
// read before holds until then, as that of a cluster in the state away. The caller has the lock of objects.
func (k *kindInformer) relist(staleState ClusterState) {
	k.since, k.staleState = k.objects.clock.Now(), staleState
	k.informer.Reread(!staleState.Answers())
	k.objects.clock.AfterFunc(SettleTime, k.overdue)
}

// overdue adds a change if the kind has still not been read again: what was read before does not count any more.
func (k *kindInformer) overdue() {
	if k.informer.State().Status == observe.Pending {
		k.changes.Add(KindChange{k.Kind})
	}
}

// describe returns why the kind cannot be read, as text.
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

// open returns how the kind is listed and watched, as soon as the cluster serves it so that it can be referred to.
func (k *kindInformer) open(ctx context.Context) (cache.ListerWatcher, error) {
	a, err := k.objects.clientsOf(k.Cluster)
	if err != nil {
		return nil, err
	}
	resource, err := k.findResource(ctx, a.discovery)
	if err != nil {
		return nil, err
	}
	source, uncount := a.meter.wrap(observe.SourceOf(a.client.Resource(resource).Namespace(k.namespace)), objectsPage, usageOfObject)
	k.uncount()
	k.uncount = uncount
	return source, nil
}

// find returns the resource of the kind, however long it takes until the cluster serves it in namespaces.
//
// There is no event when a kind comes or changes, so this is polled while a scope wants the kind. All kinds of a cluster
// share an answer, and wait for the same moment to ask again.
func (k *kindInformer) findResource(ctx context.Context, c *apiDiscovery) (schema.GroupVersionResource, error) {
	var backoff time.Duration
	at := k.discoveredAfter()
	for {
		s := c.resultSince(ctx, at)
		if s == nil {
			return schema.GroupVersionResource{}, ctx.Err()
		}
		r, ok := s.kinds[k.GroupVersionKind]
		k.objects.mu.Lock()
		k.clusterScoped = ok && !r.namespaced
		k.objects.mu.Unlock()
		if ok && r.namespaced {
			return k.GroupVersion().WithResource(r.name), nil
		}
		pause := k.objects.FindInterval
		switch {
		case ok:
			k.reportNotServed(fmt.Sprintf("%s %s is not namespaced; only objects in a namespace can be referred to", k.GroupVersion(), k.GroupVersionKind.Kind))
		case s.isConclusive(k.GroupVersionKind):
			k.reportNotServed(fmt.Sprintf("the cluster does not serve %s %s", k.GroupVersion(), k.GroupVersionKind.Kind))
		default: // There was no answer, which says nothing about the kind.
			backoff = nextPause(backoff, DefaultFindInterval)
			pause = jittered(backoff)
		}
		if !k.informer.State().ConfirmBy().IsZero() {
			pause = min(pause, confirmPause)
		}
		at = s.answeredAt.Add(pause) // Which all kinds have in common.
		select {
		case <-k.objects.clock.After(at.Sub(k.objects.clock.Now())):
		case <-ctx.Done():
		}
	}
}

// fresh returns how old what a cluster has said that it serves may be for the next reading.
func (k *kindInformer) discoveredAfter() time.Time {
	if !k.informer.State().ConfirmBy().IsZero() {
		return k.objects.clock.Now() // The API server has just said that it does not serve what it said it does.
	}
	k.objects.mu.Lock()
	defer k.objects.mu.Unlock()
	return k.since.Add(-maxDiscoveryAge)
}

// reportNotServed reports that the cluster does not serve the kind in a way that references need. Discovery lists
// everything that is served, so that the first such answer is certain.
func (k *kindInformer) reportNotServed(message string) {
	k.informer.Tracker.Report(observe.Event{Kind: observe.Refused, Reason: observe.NotServed, Message: message, Certain: true})
}

// keep returns what is kept of an object.
func (k *kindInformer) toLookup(object any) *Lookup {
	u, ok := object.(*unstructured.Unstructured)
	if !ok { // A client returns nothing else than it was asked for.
		return &Lookup{Result: healthscope.Result{State: healthscope.Unknown, Reason: healthscope.ReasonNotSynced}}
	}
	bundle.Redact(u) // User rules see what they see in a monitor.
	result := rules.Evaluate(u, rules.Options{User: k.objects.userRules})
	result.Cluster = k.Cluster
	for _, key := range k.objects.labelKeys {
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

// reasonOf returns the reason of objects of a kind that cannot be read for a reason.
func (k *kindInformer) reasonOf(reason observe.Reason) healthscope.Reason {
	switch reason {
	case observe.Forbidden:
		return healthscope.ReasonForbidden
	case observe.NotServed:
		if k.clusterScoped {
			return healthscope.ReasonInvalidReference
		}
		return healthscope.ReasonKindNotFound
	case observe.NoAnswer, observe.Unauthorized:
	}
	return healthscope.ReasonNotSynced
}
