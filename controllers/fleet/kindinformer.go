package fleet

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/healthscope/healthscope/controllers/observe"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/bundle"
	"github.com/healthscope/healthscope/healthscope/rules"
)

// kindRules are what is tolerated of the watch of a kind. An API server that is restarted, or an API behind it, takes less
// than a minute.
var kindRules = observe.Rules{Grace: time.Minute, Settle: 500 * time.Millisecond}

// maxErrorText bounds the text of an error in a message, in bytes.
const maxErrorText = 200

// rightHint says how the controller gets the right to read a kind.
const rightHint = "to allow it, label a ClusterRole with these verbs: healthscope.core.oam.dev/aggregate-to-controller=true"

// confirmPause is the pause before a cluster is asked again whether it serves a kind, to confirm that it does not.
const confirmPause = observe.Doubt + time.Second

// kindInformer holds the Results of the objects of one kind. It implements cache.TransformingStore.
type kindInformer struct {
	place

	objects  *Objects
	changes  *Subscription
	stop     context.CancelFunc
	informer *observe.Informer

	mu sync.Mutex
	// access is how the cluster is reached.
	access access
	// since is since when the kind is being read, or read again.
	since time.Time
	// away is the cluster's state while its results were stale.
	away ClusterState
	// clusterScoped is true when the kind is served, and its objects are in no namespace.
	clusterScoped bool
	// results are what was read last, and read is true once all was.
	results map[types.NamespacedName]healthscope.Result
	read    bool
	// uncount is called when what is being read is not held any more.
	uncount func()
}

// newKindInformer returns what reads a kind once it runs.
func newKindInformer(o *Objects, at place, a access, changes *Subscription, stop context.CancelFunc) *kindInformer {
	w := &kindInformer{
		place: at, objects: o, access: a, changes: changes, stop: stop, since: o.clock.Now(),
		results: map[types.NamespacedName]healthscope.Result{}, uncount: func() {},
	}
	w.informer = observe.NewInformer(kindRules, observe.InformerOptions{
		TrackedOptions: observe.TrackedOptions{Clock: o.clock, MaxRefused: o.FindInterval, Describe: w.describe},
		Open:           w.open, Store: w, Changed: func(observe.State) { w.changes.Add(KindChange{w.Kind}) },
	})
	return w
}

// run reads the kind until ctx ends.
func (w *kindInformer) run(ctx context.Context) {
	defer func() { w.uncount() }()
	w.informer.Run(ctx)
}

// renew reads the kind again, because its cluster was away, is reached in another way, or is judged by other rules. What was
// read before holds until then, as that of a cluster in the state away.
func (w *kindInformer) renew(a access, away ClusterState) {
	w.mu.Lock()
	w.access, w.since, w.away = a, w.objects.clock.Now(), away
	w.mu.Unlock()
	w.informer.Reread(!away.Answers())
	w.objects.clock.AfterFunc(SettleTime, w.overdue)
}

// overdue adds a change if the kind has still not been read again: what was read before does not count any more.
func (w *kindInformer) overdue() {
	if w.informer.State().Status == observe.Pending {
		w.changes.Add(KindChange{w.Kind})
	}
}

// describe returns why the kind cannot be read, as text.
func (w *kindInformer) describe(reason observe.Reason, err error) string {
	gvk := w.GroupVersionKind
	switch {
	case reason == observe.Forbidden:
		return fmt.Sprintf("the controller may not list and watch %s %s; %s", gvk.GroupVersion(), gvk.Kind, rightHint)
	case reason == observe.NotServed && apierrors.ReasonForError(err) != metav1.StatusReasonUnknown:
		return fmt.Sprintf("the cluster does not serve %s %s for watching", gvk.GroupVersion(), gvk.Kind)
	case reason == observe.NotServed:
		return err.Error()
	}
	return fmt.Sprintf("cannot list and watch %s %s: %s", gvk.GroupVersion(), gvk.Kind, shortened(withoutAddress(err).Error()))
}

// open returns how the kind is listed and watched, as soon as the cluster serves it so that it can be referred to.
func (w *kindInformer) open(ctx context.Context) (cache.ListerWatcher, error) {
	w.mu.Lock()
	a := w.access
	w.mu.Unlock()
	resource, err := w.find(ctx, a.discovery)
	if err != nil {
		return nil, err
	}
	client := a.client.Resource(resource).Namespace(w.namespace)
	source, uncount := a.meter.count(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return client.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return client.Watch(ctx, options)
		},
	}, objectsPage, usageOfObject)
	w.uncount()
	w.uncount = uncount
	return source, nil
}

// find returns the resource of the kind, however long it takes until the cluster serves it in namespaces.
//
// There is no event when a kind comes or changes, so this is polled while a scope wants the kind. All kinds of a cluster
// share an answer, and wait for the same moment to ask again.
func (w *kindInformer) find(ctx context.Context, c *apiDiscovery) (schema.GroupVersionResource, error) {
	var failing time.Duration
	at := w.fresh()
	for {
		s := c.servedSince(ctx, at)
		if s == nil {
			return schema.GroupVersionResource{}, ctx.Err()
		}
		r, ok := s.kinds[w.GroupVersionKind]
		w.mu.Lock()
		w.clusterScoped = ok && !r.namespaced
		w.mu.Unlock()
		if ok && r.namespaced {
			return w.GroupVersion().WithResource(r.name), nil
		}
		pause := w.objects.FindInterval
		switch {
		case ok:
			w.refused(fmt.Sprintf("%s %s is not namespaced; only objects in a namespace can be referred to", w.GroupVersion(), w.GroupVersionKind.Kind))
		case s.isKnown(w.GroupVersionKind):
			w.refused(fmt.Sprintf("the cluster does not serve %s %s", w.GroupVersion(), w.GroupVersionKind.Kind))
		default: // There was no answer, which says nothing about the kind.
			failing = nextPause(failing, DefaultFindInterval)
			pause = jittered(failing)
		}
		if !w.informer.State().ConfirmBy().IsZero() {
			pause = min(pause, confirmPause)
		}
		at = s.answered.Add(pause) // Which all kinds have in common.
		select {
		case <-w.objects.clock.After(at.Sub(w.objects.clock.Now())):
		case <-ctx.Done():
		}
	}
}

// fresh returns how old what a cluster has said that it serves may be for the next reading.
func (w *kindInformer) fresh() time.Time {
	if !w.informer.State().ConfirmBy().IsZero() {
		return w.objects.clock.Now() // The API server has just said that it does not serve what it said it does.
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.since.Add(-discoveryAge)
}

// refused reports that the cluster does not serve the kind so that it can be referred to, which is what it says of all that it serves.
func (w *kindInformer) refused(message string) {
	w.informer.Tracker.Report(observe.Event{Kind: observe.Refused, Reason: observe.NotServed, Message: message, Certain: true})
}

// judged is what is kept of an object.
type judged struct {
	metav1.PartialObjectMetadata

	result healthscope.Result
}

// Transformer implements cache.TransformingStore.
func (w *kindInformer) Transformer() cache.TransformFunc {
	return func(object any) (any, error) { return w.judge(object), nil }
}

// judge keeps the Result of an object and drops the object. What is judged already stays as it is.
func (w *kindInformer) judge(object any) any {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object
	}
	bundle.Strip(u) // User rules see what they see in a monitor.
	j := &judged{result: rules.Evaluate(u, rules.Options{User: w.objects.user})}
	j.result.Cluster = w.Cluster
	for _, key := range w.objects.labels {
		if value, ok := u.GetLabels()[key]; ok {
			if j.result.Labels == nil {
				j.result.Labels = map[string]string{}
			}
			j.result.Labels[key] = value
		}
	}
	j.Namespace, j.Name, j.UID, j.ResourceVersion = u.GetNamespace(), u.GetName(), u.GetUID(), u.GetResourceVersion()
	return j
}

// Add implements cache.ReflectorStore.
func (w *kindInformer) Add(object any) error {
	j, ok := w.judge(object).(*judged)
	if !ok {
		return nil // A client returns nothing else than it was asked for.
	}
	name := types.NamespacedName{Namespace: j.Namespace, Name: j.Name}
	w.mu.Lock()
	before, known := w.results[name]
	w.results[name] = j.result
	w.mu.Unlock()
	if !known || !reflect.DeepEqual(before, j.result) {
		w.changes.Add(ObjectChange{w.Kind, name})
	}
	return nil
}

// Update implements cache.ReflectorStore.
func (w *kindInformer) Update(object any) error { return w.Add(object) }

// Delete implements cache.ReflectorStore.
func (w *kindInformer) Delete(object any) error {
	j, ok := w.judge(object).(*judged)
	if !ok {
		return nil
	}
	name := types.NamespacedName{Namespace: j.Namespace, Name: j.Name}
	w.mu.Lock()
	delete(w.results, name)
	w.mu.Unlock()
	w.changes.Add(ObjectChange{w.Kind, name})
	return nil
}

// Replace implements cache.ReflectorStore. Before all was read for the first time, that it is makes a KindChange.
func (w *kindInformer) Replace(all []any, _ string) error {
	results := make(map[types.NamespacedName]healthscope.Result, len(all))
	for _, object := range all {
		if j, ok := w.judge(object).(*judged); ok {
			results[types.NamespacedName{Namespace: j.Namespace, Name: j.Name}] = j.result
		}
	}
	w.mu.Lock()
	before, read := w.results, w.read
	w.results, w.read = results, true
	w.mu.Unlock()
	if !read {
		return nil
	}
	for _, name := range changedNames(before, results) {
		w.changes.Add(ObjectChange{w.Kind, name})
	}
	return nil
}

// Resync implements cache.ReflectorStore.
func (w *kindInformer) Resync() error { return nil }

// changedNames returns the names of what is in one of two sets of Results only, or not the same in both.
func changedNames(before, after map[types.NamespacedName]healthscope.Result) []types.NamespacedName {
	names := slices.Collect(maps.Keys(after))
	for name := range before {
		if _, ok := after[name]; !ok {
			names = append(names, name)
		}
	}
	return slices.DeleteFunc(names, func(name types.NamespacedName) bool {
		a, was := before[name]
		b, is := after[name]
		return was && is && reflect.DeepEqual(a, b)
	})
}

// lostLookup returns what is to be said of an object that was seen so last, if it was, in a cluster that cannot be seen.
func staleLookup(seen healthscope.Result, ok bool, unknown healthscope.Result, s ClusterState) Lookup {
	was := []healthscope.Member{{Result: unknown}}
	if ok {
		was[0].Result = seen
	}
	gone := healthscope.Lost(was, s.Reachability.Reason(), fmt.Sprintf("cluster %q: %s", s.Name, s.Message), s.Since)[0]
	if !ok {
		gone.LastState, gone.Message = "", fmt.Sprintf("cluster %q: %s", s.Name, s.Message)
	}
	return Lookup{Result: gone.Result, LastState: gone.LastState}
}

// get returns what is to be said of an object in a cluster that is seen.
func (w *kindInformer) get(name types.NamespacedName, unknown healthscope.Result) Lookup {
	state := w.informer.State()
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case state.Status == observe.Ready:
		return w.present(name, unknown)
	case state.Status == observe.Problem:
		unknown.Reason, unknown.Message = w.reasonOf(state.Reason), state.Message
		return Lookup{Result: unknown}
	case !w.read || w.objects.clock.Since(w.since) >= SettleTime:
		return w.objects.settling(unknown, w.since)
	}
	seen, ok := w.results[name]
	return staleLookup(seen, ok, unknown, w.away)
}

// reasonOf returns the reason of objects of a kind that cannot be read for a reason.
func (w *kindInformer) reasonOf(reason observe.Reason) healthscope.Reason {
	switch {
	case reason == observe.Forbidden:
		return healthscope.ReasonForbidden
	case reason == observe.NotServed && w.clusterScoped:
		return healthscope.ReasonInvalidReference
	case reason == observe.NotServed:
		return healthscope.ReasonKindNotFound
	}
	return healthscope.ReasonNotSynced
}

// present returns what is to be said of an object of a kind that has been read.
func (w *kindInformer) present(name types.NamespacedName, unknown healthscope.Result) Lookup {
	if r, ok := w.results[name]; ok {
		return Lookup{Result: r}
	}
	unknown.State, unknown.Reason = healthscope.NotPresent, healthscope.ReasonNotFound
	unknown.Message = fmt.Sprintf("%s %q does not exist in namespace %q", w.GroupVersionKind.Kind, name.Name, name.Namespace)
	return Lookup{Result: unknown}
}

var _ cache.TransformingStore = (*kindInformer)(nil)
