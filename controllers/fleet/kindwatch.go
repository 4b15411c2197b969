package fleet

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/bundle"
	"github.com/healthscope/healthscope/healthscope/rules"
)

// listTimeout is the deadline of one request for a list, or for a page of it, and of the first list of bundles, however it is read.
const listTimeout = time.Minute

// findBackoff is how it is tried again to ask the cluster for its kinds after it gave no answer.
var findBackoff = wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 6, Cap: DefaultFindInterval}

// kindWatch holds the Results of the objects of one kind.
type kindWatch struct {
	place

	objects *Objects
	client  dynamic.Interface
	meter   *meter
	// catalogue tells how the kind is served.
	catalogue *catalogue
	notify    Notify
	started   time.Time
	cancel    context.CancelFunc

	mu sync.Mutex
	// unserved ends the informer, which runs for as long as the kind is served as it was found; nil while none runs.
	unserved context.CancelFunc
	synced   bool
	problem  *problem
	// wording decides whether the problem is told of in other words.
	wording wording
	// refused is since when every attempt to read the kind is refused, silent since when every one fails without
	// having been refused, and failing since when every one fails in any way; zero when they do not.
	refused, silent, failing time.Time
	results                  map[types.NamespacedName]healthscope.Result
	// past is what was known before the watch began, for as long as it has not been read; nil when nothing was.
	past *past
}

func (w *kindWatch) stop() { w.cancel() }

// run finds the resource of the kind and watches it, until ctx ends. A kind that is served no longer may come back with another name or scope.
func (w *kindWatch) run(ctx context.Context) {
	defer time.AfterFunc(SettleTime, w.overdue).Stop()
	var at time.Time
	for {
		resource, ok := w.find(ctx, at)
		if !ok {
			return
		}
		w.watch(ctx, resource)
		if !w.pause(ctx, w.objects.FindInterval) {
			return
		}
		at = time.Now()
	}
}

// overdue tells that what the watch before knew is not told any more, if the kind has still not been read.
func (w *kindWatch) overdue() {
	w.mu.Lock()
	news := w.past != nil && !w.synced && w.problem == nil
	w.mu.Unlock()
	if news {
		w.notify(w.Kind, types.NamespacedName{})
	}
}

// pause waits, and returns false when ctx ends.
func (w *kindWatch) pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// find returns the resource of the kind, however long it takes until the cluster serves it so that it can be referred to,
// by what the cluster has said since a time. It returns false when ctx ends.
//
// A kind gives no event when it comes or changes: this is the one thing that is asked for again and again, and only while
// somebody wants it. All kinds of a cluster share an answer, and wait for the same moment to ask again.
func (w *kindWatch) find(ctx context.Context, at time.Time) (schema.GroupVersionResource, bool) {
	backoff := findBackoff
	for {
		s := w.catalogue.since(ctx, at)
		if s == nil {
			return schema.GroupVersionResource{}, false
		}
		r, ok := s.kinds[w.GroupVersionKind]
		if ok && r.namespaced {
			return w.GroupVersion().WithResource(r.name), true
		}
		if fresh := w.started.Add(-discoveryAge); s.asked.Before(fresh) {
			at = fresh // What was not served so then may be now.
			continue
		}
		pause := w.objects.FindInterval
		switch {
		case ok:
			w.fail(&problem{healthscope.ReasonInvalidReference, fmt.Sprintf("%s %s is not namespaced; only objects in a namespace can be referred to", w.GroupVersion(), w.GroupVersionKind.Kind)})
		case s.knows(w.GroupVersionKind):
			w.fail(&problem{healthscope.ReasonKindNotFound, fmt.Sprintf("the cluster does not serve %s %s", w.GroupVersion(), w.GroupVersionKind.Kind)})
		default: // There was no answer, which says nothing about the kind.
			pause = backoff.Step()
		}
		at = s.answered.Add(pause)
		if !w.pause(ctx, time.Until(at)) {
			return schema.GroupVersionResource{}, false
		}
	}
}

// listWatch returns how the kind is read. The requests themselves tell what is
// the matter with them: the reflector keeps some errors of watches to itself.
func (w *kindWatch) listWatch(resource schema.GroupVersionResource) *cache.ListWatch {
	client := w.client.Resource(resource).Namespace(w.namespace)
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			deadline, cancel := context.WithTimeout(ctx, listTimeout)
			defer cancel()
			list, err := client.List(deadline, options)
			if err != nil {
				w.failed(ctx, err)
				return nil, err
			}
			return list, nil
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			stream, err := client.Watch(ctx, options)
			if err != nil {
				w.failed(ctx, err)
				return nil, err
			}
			w.clear()
			return stream, nil
		},
	}
}

// failed notes that a request failed, unless its context has ended.
func (w *kindWatch) failed(ctx context.Context, err error) {
	if p := readProblem(w.GroupVersionKind, err); p != nil && ctx.Err() == nil {
		w.fail(p)
	}
}

// watch holds the Results of a resource until ctx ends, or the resource is certain to be served no longer.
func (w *kindWatch) watch(ctx context.Context, resource schema.GroupVersionResource) {
	ctx, end := context.WithCancel(ctx)
	var settling sync.WaitGroup
	defer settling.Wait()
	defer end()
	w.begin(end)
	defer w.begin(nil)
	source, uncount := w.meter.count(w.listWatch(resource), objectsPage, usageOfObject)
	defer uncount()
	informer := cache.NewSharedIndexInformerWithOptions(source, &unstructured.Unstructured{}, cache.SharedIndexInformerOptions{})
	// Neither call can fail before the informer runs.
	_ = informer.SetTransform(w.judge)
	_ = informer.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {}) // The requests have told of it.
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    w.store,
		UpdateFunc: func(_, object any) { w.store(object) },
		DeleteFunc: w.forget,
	})
	if err != nil {
		return // The informer has been stopped.
	}
	settling.Go(func() {
		select {
		case <-registration.HasSyncedChecker().Done():
			w.settle()
		case <-ctx.Done():
		}
	})
	informer.RunWithContext(ctx)
}

// begin notes how the informer is ended that begins to run, and forgets what one before it has read; nil for none.
func (w *kindWatch) begin(end context.CancelFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unserved = end
	if end != nil {
		w.synced, w.results = false, map[types.NamespacedName]healthscope.Result{}
	}
}

// judged is what the informer keeps of an object.
type judged struct {
	metav1.PartialObjectMetadata
	result healthscope.Result
}

// judge is the informer's transform: it keeps the Result and drops the object.
func (w *kindWatch) judge(object any) (any, error) {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil
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
	return j, nil
}

func (w *kindWatch) store(object any) {
	j, ok := object.(*judged)
	if !ok {
		return
	}
	name := types.NamespacedName{Namespace: j.Namespace, Name: j.Name}
	w.mu.Lock()
	before, known := w.results[name]
	w.results[name] = j.result
	news := w.synced && (!known || !reflect.DeepEqual(before, j.result))
	w.mu.Unlock()
	if news {
		w.notify(w.Kind, name)
	}
}

func (w *kindWatch) forget(object any) {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	j, ok := object.(*judged)
	if !ok {
		return
	}
	name := types.NamespacedName{Namespace: j.Namespace, Name: j.Name}
	w.mu.Lock()
	delete(w.results, name)
	w.mu.Unlock()
	w.notify(w.Kind, name)
}

// settle marks the kind as read.
func (w *kindWatch) settle() {
	w.mu.Lock()
	w.synced, w.problem, w.past = true, nil, nil
	w.refused, w.silent, w.failing = time.Time{}, time.Time{}, time.Time{}
	w.mu.Unlock()
	w.notify(w.Kind, types.NamespacedName{})
}

// clear takes a problem back, now that the kind can be watched, and tells if
// that is news. A kind that has never been read keeps its problem until it has: until then there is nothing better to say.
func (w *kindWatch) clear() {
	w.mu.Lock()
	w.refused, w.silent, w.failing = time.Time{}, time.Time{}, time.Time{}
	news := w.synced && w.problem != nil
	if news {
		w.problem = nil
	}
	w.mu.Unlock()
	if news {
		w.notify(w.Kind, types.NamespacedName{})
	}
}
