package monitor

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/healthscope/healthscope/controllers/observe"
)

var (
	errForbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "widgets"}, "", errors.New("no rights"))
	errPassing   = apierrors.NewInternalError(errors.New("storage is busy"))
	errNotFound  = apierrors.NewNotFound(schema.GroupResource{Resource: "widgets"}, "")
)

// reader responds in place of a client.
type reader interface {
	list(ctx context.Context, resource schema.GroupVersionResource, namespace string, options metav1.ListOptions) (runtime.Object, error)
	watch(ctx context.Context, resource schema.GroupVersionResource, namespace string, options metav1.ListOptions) (apiwatch.Interface, error)
}

// clientOf returns a client that uses a reader.
func clientOf(r reader) func(schema.GroupVersionResource, string) cache.ListerWatcher {
	return func(resource schema.GroupVersionResource, namespace string) cache.ListerWatcher {
		return &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				return r.list(ctx, resource, namespace, options)
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
				return r.watch(ctx, resource, namespace, options)
			},
		}
	}
}

// fakeServer is an API server that serves one kind with one object. It implements kindFinder and reader, and stores the log.
type fakeServer struct {
	mu sync.Mutex
	// fault is its current fault.
	fault fault
	// attempts are the times of the requests for lists and watches, and of those for the kind.
	attempts []time.Time
	stream   *apiwatch.FakeWatcher
	logged   []string
}

// fault holds the errors of the API server for discovery, lists and watches; nil means that it serves them.
type fault struct{ discovery, list, watch error }

// notServed is the fault of an API server that no longer serves the kind.
var notServed = fault{observe.ErrNotServed, errNotFound, errNotFound}

func (f *fakeServer) fail(with fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = with
}

// breakOff ends the watch like an API server that has lost its history.
func (f *fakeServer) breakOff() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stream != nil && !f.stream.IsStopped() {
		f.stream.Error(&apierrors.NewResourceExpired("too old").ErrStatus)
	}
}

func (f *fakeServer) ServerResourcesForGroupVersion(version string) (*metav1.APIResourceList, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.attempts = append(f.attempts, time.Now())
	resource := metav1.APIResource{Name: "configmaps", Kind: configMap.Kind, Namespaced: true, Verbs: metav1.Verbs{"list", "watch"}}
	switch {
	case errors.Is(f.fault.discovery, observe.ErrNotServed):
		return nil, errNotFound
	case errors.Is(f.fault.discovery, observe.ErrUnsuitable):
		resource.Verbs = metav1.Verbs{"list"}
	case f.fault.discovery != nil:
		return nil, f.fault.discovery
	}
	return &metav1.APIResourceList{GroupVersion: version, APIResources: []metav1.APIResource{resource}}, nil
}

func (f *fakeServer) ServerGroups() (*metav1.APIGroupList, error) { return &metav1.APIGroupList{}, nil }

func (f *fakeServer) list(context.Context, schema.GroupVersionResource, string, metav1.ListOptions) (runtime.Object, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.attempts = append(f.attempts, time.Now())
	if f.fault.list != nil {
		return nil, f.fault.list
	}
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMapList"}}
	list.SetResourceVersion("5")
	list.Items = []unstructured.Unstructured{*object("ns", "a", "one", "5")}
	return list, nil
}

func (f *fakeServer) watch(_ context.Context, _ schema.GroupVersionResource, _ string, options metav1.ListOptions) (apiwatch.Interface, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if options.SendInitialEvents != nil {
		return nil, apierrors.NewBadRequest("lists cannot be streamed")
	}
	f.attempts = append(f.attempts, time.Now())
	if f.fault.watch != nil {
		return nil, f.fault.watch
	}
	f.stream = apiwatch.NewFakeWithChanSize(10, false)
	return f.stream, nil
}

// count returns how many of the logged lines contain text.
func (f *fakeServer) count(text string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, line := range f.logged {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// start follows the server until the test ends. It counts in calls how often bundles are woken. Messages above V(0) are not
// logged.
func (f *fakeServer) start(t *testing.T, calls *atomic.Int32) *watch {
	t.Helper()
	logger := funcr.New(func(_, line string) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.logged = append(f.logged, line)
	}, funcr.Options{})
	w := newWatch(source{place: place{kind: configMap, key: testKey}, kinds: f, client: clientOf(f)}, clock.RealClock{}, logger)
	w.store.changed = func(sets.Set[selectorKey]) {}
	w.wake = func() { calls.Add(1) }
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.informer.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
	return w
}

func isSettled(w *watch) bool {
	synctest.Wait()
	return w.isSettled()
}

// holds returns the number of objects that the watch shows.
func holds(w *watch) int {
	synctest.Wait()
	return len(w.appendMembers(nil, inNamespace("one")))
}

// after lets d pass in the test's bubble.
func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestWatchFillsItsStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{}
		w := f.start(t, &atomic.Int32{})
		if !isSettled(w) || holds(w) != 1 {
			t.Fatalf("settled: %t, objects: %d; want true, 1", isSettled(w), holds(w))
		}
		f.stream.Add(object("ns", "b", "one", "6"))
		if got := holds(w); got != 2 {
			t.Errorf("%d objects after another appeared, want 2", got)
		}
		f.stream.Delete(object("ns", "a", "one", "7"))
		if got := holds(w); got != 1 {
			t.Errorf("%d objects after one was deleted, want 1", got)
		}
		if got := len(f.logged); got != 0 {
			t.Errorf("a watch that works logged %q", f.logged)
		}
	})
}

func TestWatchReportsRefusalOnceWithoutBlocking(t *testing.T) {
	t.Parallel()
	refusals := map[string]struct {
		fault fault
		// holds is how long the other kinds wait.
		holds time.Duration
	}{
		"NotServed":      {notServed, observe.ConfirmAfter},
		"Unsuitable":     {fault{discovery: observe.ErrUnsuitable}, 0},
		"ListForbidden":  {fault{list: errForbidden}, 0},
		"WatchForbidden": {fault{watch: errForbidden}, 0},
	}
	for name, refusal := range refusals {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := &fakeServer{}
				f.fail(refusal.fault)
				w := f.start(t, &atomic.Int32{})
				after(refusal.holds + time.Second)
				if !isSettled(w) {
					t.Fatal("a kind that cannot be read holds the others up")
				}
				after(24 * time.Hour)
				if got := f.count("bundles are filled without it"); got != 1 || len(f.logged) != 1 {
					t.Errorf("logged in a day: %q, want the refusal once", f.logged)
				}
				if got := len(f.attempts); got < 24*6 || got > 24*6*5 {
					t.Errorf("the cluster was asked %d times in a day, want at growing intervals of at most ten minutes", got)
				}
				if second := f.attempts[1].Sub(f.attempts[0]); second > 2*time.Second {
					t.Errorf("the second attempt came after %s, want it soon: rights may come a moment later than the monitor", second)
				}
				f.fail(fault{})
				w.retry()
				after(time.Second)
				if holds(w) != 1 || f.count("can be read again") != 1 {
					t.Errorf("after the right was granted: %d objects, logged %q; want 1 object and one line about it", holds(w), f.logged)
				}
			})
		})
	}
}

func TestWatchToleratesTransientFailure(t *testing.T) {
	t.Parallel()
	failures := map[string]struct {
		fault fault
		cause string
	}{
		"Discovery": {fault{discovery: errPassing}, errPassing.Error()},
		"List":      {fault{list: errPassing}, errPassing.Error()},
		"NotFound":  {fault{list: errNotFound}, `"configmaps", which is served`},
	}
	for name, failure := range failures {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := &fakeServer{}
				f.fail(failure.fault)
				w := f.start(t, &atomic.Int32{})
				after(startGrace - 10*time.Second)
				if isSettled(w) {
					t.Fatal("a kind that could not be read yet counts as read")
				}
				all := watchesOf(f, f)
				all.current = append(all.current, w)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if err := all.WaitForSync(ctx); err == nil || !strings.Contains(err.Error(), failure.cause) {
					t.Errorf("WaitForSync: %v, want the cause %q", err, failure.cause)
				}
				after(20 * time.Second)
				if !isSettled(w) {
					t.Error("a kind that fails holds the others up for ever")
				}
				after(time.Hour)
				if got := f.count("trying again"); got != 1 || len(f.logged) != 1 {
					t.Errorf("logged in an hour: %q, want the failure once", f.logged)
				}
				f.fail(fault{})
				after(8 * time.Second)
				if holds(w) != 1 {
					t.Errorf("8 s after the failure passed: %d objects, want 1", holds(w))
				}
			})
		})
	}
}

// moment is shorter than the time after which a refusal is confirmed.
const moment = observe.ConfirmAfter / 2

func TestWatchVisibility(t *testing.T) {
	t.Parallel()
	type step struct {
		fault fault
		lasts time.Duration
		want  visibility
		holds int
	}
	const long = 20 * time.Minute
	ready := step{fault{}, long, "", 1}
	cases := map[string]struct {
		steps []step
		// looks is how often the bundles are woken.
		looks int32
	}{
		"a right is missing": {[]step{{fault{list: errForbidden}, time.Second, forbidden, 0}, ready}, 2},
		"a right is missing, then there is no answer": {
			[]step{{fault{list: errForbidden}, long, forbidden, 0}, {fault{list: errPassing}, long, forbidden, 0}, ready}, 2,
		},
		"a right is missing for a moment": {[]step{ready, {fault{list: errForbidden}, moment, "", 1}, ready}, 1},
		"a right is taken":                {[]step{ready, {fault{list: errForbidden}, long, forbidden, 1}, ready}, 3},
		"there is no answer at the start": {[]step{{fault{list: errPassing}, long, neverSynced, 0}, ready}, 1},
		"there is no answer":              {[]step{ready, {fault{discovery: errPassing, list: errPassing}, long, "", 1}, ready}, 1},
		"the token is not accepted":       {[]step{ready, {fault{list: apierrors.NewUnauthorized("")}, long, "", 1}, ready}, 1},
		"a 404 of what is served":         {[]step{ready, {fault{list: errNotFound}, long, "", 1}, ready}, 1},
		"a 404, and no discovery":         {[]step{ready, {fault{discovery: errPassing, list: errNotFound}, long, "", 1}, ready}, 1},
		"not served at the start, for a moment": {
			[]step{{notServed, moment, neverSynced, 0}, ready}, 1,
		},
		"never served":                  {[]step{{notServed, long, gone, 0}, ready}, 2},
		"never served as can be shown":  {[]step{{fault{discovery: observe.ErrUnsuitable}, time.Second, gone, 0}, ready}, 2},
		"not served for a moment":       {[]step{ready, {notServed, moment, "", 1}, ready}, 1},
		"gone":                          {[]step{ready, {notServed, long, gone, 0}, ready}, 3},
		"a right is missing, then gone": {[]step{ready, {fault{list: errForbidden}, long, forbidden, 1}, {notServed, time.Second, forbidden, 1}, {notServed, long, gone, 0}}, 3},
		"gone, then a right is missing for a moment": {
			[]step{ready, {notServed, long, gone, 0}, {fault{discovery: errForbidden}, time.Second, gone, 0}, {notServed, long, gone, 0}}, 2,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := &fakeServer{fault: tc.steps[0].fault}
				var looks atomic.Int32
				w := f.start(t, &looks)
				for i, s := range tc.steps {
					f.fail(s.fault)
					if i > 0 {
						f.breakOff()
						w.retry()
					}
					after(s.lasts)
					if got := w.visibility(); got != s.want || holds(w) != s.holds {
						t.Errorf("step %d: visibility %q and %d objects, want %q and %d", i, got, holds(w), s.want, s.holds)
					}
				}
				if looks.Load() != tc.looks {
					t.Errorf("bundles were looked at %d times, want %d", looks.Load(), tc.looks)
				}
			})
		})
	}
}
