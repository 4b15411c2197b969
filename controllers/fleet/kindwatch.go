package fleet

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/rules"
)

// listTimeout is the deadline of one request for a list, or for a page of it.
const listTimeout = time.Minute

// doubtTime is how long a kind that has been read must be refused before that is
// believed: an API server that starts knows neither rights nor CRDs at first.
const doubtTime = 10 * time.Second

// findBackoff is how it is tried again to ask the cluster for its kinds after it gave no answer.
var findBackoff = wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 6, Cap: DefaultFindInterval}

// kindWatch holds the Results of the objects of one kind.
type kindWatch struct {
	objects *Objects
	gvk     schema.GroupVersionKind
	notify  func(schema.GroupVersionKind, types.NamespacedName)
	started time.Time
	cancel  context.CancelFunc

	mu      sync.Mutex
	synced  bool
	problem *problem
	// refused is since when the kind, which has been read before, is refused; zero when it is not.
	refused time.Time
	results map[types.NamespacedName]healthscope.Result
}

// problem is why the objects of a kind cannot be seen.
type problem struct {
	reason  healthscope.Reason
	message string
}

func (w *kindWatch) stop() { w.cancel() }

func (w *kindWatch) get(name types.NamespacedName, unknown healthscope.Result) Lookup {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.problem != nil {
		unknown.Reason, unknown.Message = w.problem.reason, w.problem.message
		return Lookup{Result: unknown}
	}
	if !w.synced {
		return Lookup{Result: unknown, Settling: time.Since(w.started) < SettleTime}
	}
	if r, ok := w.results[name]; ok {
		return Lookup{Result: r}
	}
	unknown.State, unknown.Reason = healthscope.NotPresent, healthscope.ReasonNotFound
	unknown.Message = fmt.Sprintf("%s %q does not exist in namespace %q", w.gvk.Kind, name.Name, name.Namespace)
	return Lookup{Result: unknown}
}

// run finds the resource of the kind and watches it until ctx ends.
func (w *kindWatch) run(ctx context.Context) {
	if mapping := w.find(ctx); mapping != nil {
		w.watch(ctx, mapping.Resource)
	}
}

// find returns the resource of the kind, however long it takes until the
// cluster serves it. It returns nil when ctx ends, and for a kind that cannot be referred to.
//
// A kind gives no event when it comes: this is the one thing that is asked for
// again and again, and only while somebody wants it.
func (w *kindWatch) find(ctx context.Context) *meta.RESTMapping {
	backoff := findBackoff
	for {
		mapping, err := w.objects.mapper.RESTMapping(w.gvk.GroupKind(), w.gvk.Version)
		var pause time.Duration
		switch {
		case err == nil && mapping.Scope.Name() != meta.RESTScopeNameNamespace:
			w.fail(&problem{healthscope.ReasonInvalidReference, fmt.Sprintf("%s %s is not namespaced; only objects in a namespace can be referred to", w.gvk.GroupVersion(), w.gvk.Kind)})
			return nil
		case err == nil:
			return mapping
		case meta.IsNoMatchError(err):
			w.fail(&problem{healthscope.ReasonKindNotFound, fmt.Sprintf("the cluster does not serve %s %s", w.gvk.GroupVersion(), w.gvk.Kind)})
			pause = w.objects.FindInterval
		default: // There was no answer, which says nothing about the kind.
			pause = backoff.Step()
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}

func (w *kindWatch) watch(ctx context.Context, resource schema.GroupVersionResource) {
	client := w.objects.client.Resource(resource)
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			ctx, cancel := context.WithTimeout(ctx, listTimeout)
			defer cancel()
			return client.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			stream, err := client.Watch(ctx, options)
			if err == nil {
				w.clear()
			}
			return stream, err
		},
	}
	informer := cache.NewSharedIndexInformerWithOptions(lw, &unstructured.Unstructured{}, cache.SharedIndexInformerOptions{})
	// Neither call can fail before the informer runs.
	_ = informer.SetTransform(w.judge)
	_ = informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		if p := readProblem(w.gvk, err); p != nil {
			w.fail(p)
		}
	})
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    w.store,
		UpdateFunc: func(_, object any) { w.store(object) },
		DeleteFunc: w.forget,
	})
	if err != nil {
		return // The informer has been stopped.
	}
	go func() {
		select {
		case <-registration.HasSyncedChecker().Done():
			w.settle()
		case <-ctx.Done():
		}
	}()
	informer.RunWithContext(ctx)
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
	j := &judged{result: rules.Evaluate(u)}
	j.result.Cluster = w.objects.cluster
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
		w.notify(w.gvk, name)
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
	w.notify(w.gvk, name)
}

// settle marks the kind as read.
func (w *kindWatch) settle() {
	w.mu.Lock()
	w.synced, w.problem = true, nil
	w.mu.Unlock()
	w.notify(w.gvk, types.NamespacedName{})
}

// clear takes a problem back, now that the kind can be watched, and tells if
// that is news. A kind that has never been read keeps its problem until it has: until then there is nothing better to say.
func (w *kindWatch) clear() {
	w.mu.Lock()
	w.refused = time.Time{}
	news := w.synced && w.problem != nil
	if news {
		w.problem = nil
	}
	w.mu.Unlock()
	if news {
		w.notify(w.gvk, types.NamespacedName{})
	}
}

// fail notes why the kind cannot be seen, and tells if that is news.
func (w *kindWatch) fail(p *problem) {
	w.mu.Lock()
	if w.doubts() {
		w.mu.Unlock()
		return
	}
	news := w.problem == nil || *w.problem != *p
	w.problem = p
	w.mu.Unlock()
	if news {
		w.notify(w.gvk, types.NamespacedName{})
	}
}

// doubts says whether a refusal is too young to be believed. The reflector tries again and again, so that it will be told of again.
func (w *kindWatch) doubts() bool {
	if !w.synced || w.problem != nil {
		return false
	}
	if w.refused.IsZero() {
		w.refused = time.Now()
	}
	return time.Since(w.refused) < doubtTime
}

// readProblem says why a kind cannot be read; nil when the watch merely has to start again.
func readProblem(gvk schema.GroupVersionKind, err error) *problem {
	switch {
	case apierrors.IsForbidden(err):
		return &problem{healthscope.ReasonForbidden, fmt.Sprintf("the controller may not list and watch %s %s", gvk.GroupVersion(), gvk.Kind)}
	case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
		return &problem{healthscope.ReasonKindNotFound, fmt.Sprintf("the cluster does not serve %s %s for watching", gvk.GroupVersion(), gvk.Kind)}
	default:
		return nil
	}
}
