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

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

var (
	errForbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "widgets"}, "", errors.New("no rights"))
	errPassing   = apierrors.NewInternalError(errors.New("storage is busy"))
)

// fakeServer plays the API server's part of a watch on one object, and notes
// what is asked and what is logged. Its methods are safe for concurrent use.
type fakeServer struct {
	mu                         sync.Mutex
	openErr, listErr, watchErr error
	opens                      []time.Time
	lists                      int
	stream                     *apiwatch.FakeWatcher
	logged                     []string
}

func (f *fakeServer) fail(openErr, listErr, watchErr error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.openErr, f.listErr, f.watchErr = openErr, listErr, watchErr
}

// breakOff ends the watch as an API server does that has lost its history.
func (f *fakeServer) breakOff() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stream != nil && !f.stream.IsStopped() {
		f.stream.Error(&apierrors.NewResourceExpired("too old").ErrStatus)
	}
}

func (f *fakeServer) open() (*cache.ListWatch, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.opens = append(f.opens, time.Now())
	if f.openErr != nil {
		return nil, f.openErr
	}
	return &cache.ListWatch{ListWithContextFunc: f.list, WatchFuncWithContext: f.watch}, nil
}

func (f *fakeServer) list(context.Context, metav1.ListOptions) (runtime.Object, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lists++
	if f.listErr != nil {
		return nil, f.listErr
	}
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMapList"}}
	list.SetResourceVersion("5")
	list.Items = []unstructured.Unstructured{*object("ns", "a", "one", "5")}
	return list, nil
}

func (f *fakeServer) watch(_ context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if options.SendInitialEvents != nil {
		return nil, errors.New("lists cannot be streamed")
	}
	if f.watchErr != nil {
		return nil, f.watchErr
	}
	f.stream = apiwatch.NewFakeWithChanSize(10, false)
	return f.stream, nil
}

// count says how many of the logged lines contain text.
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

// start follows the server until the test ends; messages beyond V(0) are not logged.
func (f *fakeServer) start(t *testing.T) *watch {
	t.Helper()
	w := newWatch(source{place: place{kind: configMap, key: testKey}})
	w.open = f.open
	w.store.changed = func(sets.Set[claim]) {}
	logger := funcr.New(func(_, line string) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.logged = append(f.logged, line)
	}, funcr.Options{})
	ctx, stop := context.WithCancel(logr.NewContext(t.Context(), logger))
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
	return w
}

func settled(w *watch) bool {
	synctest.Wait()
	select {
	case <-w.settled:
		return true
	default:
		return false
	}
}

func holds(w *watch) int {
	synctest.Wait()
	return len(w.store.appendMembers(nil, inNamespace("one")))
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
		w := f.start(t)
		if !settled(w) || holds(w) != 1 {
			t.Fatalf("settled: %t, objects: %d; want true, 1", settled(w), holds(w))
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

func TestWatchReadsAgainAfterItBrokeOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{}
		w := f.start(t)
		after(2 * time.Minute)
		f.breakOff()
		after(time.Second)
		if f.lists != 2 || holds(w) != 1 {
			t.Errorf("%d lists and %d objects a second after the watch broke off, want 2 and 1", f.lists, holds(w))
		}
	})
}

func TestWatchReportsARefusalOnceAndHoldsNothingUp(t *testing.T) {
	t.Parallel()
	refusals := map[string]struct{ openErr, listErr, watchErr error }{
		"NotServed":      {openErr: errNotServed},
		"Unsuitable":     {openErr: errCannotFollow},
		"ListForbidden":  {listErr: errForbidden},
		"WatchForbidden": {watchErr: errForbidden},
	}
	for name, refusal := range refusals {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := &fakeServer{}
				f.fail(refusal.openErr, refusal.listErr, refusal.watchErr)
				w := f.start(t)
				if !settled(w) {
					t.Fatal("a kind that cannot be read holds the others up")
				}
				after(24 * time.Hour)
				if got := f.count("going on without it"); got != 1 || len(f.logged) != 1 {
					t.Errorf("logged in a day: %q, want the refusal once", f.logged)
				}
				if got := len(f.opens); got < 10 || got > 20 {
					t.Errorf("the cluster was asked %d times in a day, want at growing intervals for an hour, then no more", got)
				}
				if first := f.opens[1].Sub(f.opens[0]); first > 2*time.Second {
					t.Errorf("the second attempt came after %s, want it soon: rights may come a moment later than the monitor", first)
				}
				f.fail(nil, nil, nil)
				w.retry()
				after(time.Second)
				if holds(w) != 1 || f.count("can be read again") != 1 {
					t.Errorf("after the right was granted: %d objects, logged %q; want 1 object and one line about it", holds(w), f.logged)
				}
			})
		})
	}
}

func TestWatchWaitsOutAPassingFailure(t *testing.T) {
	t.Parallel()
	failures := map[string]struct{ openErr, listErr error }{
		"Discovery": {openErr: errPassing},
		"List":      {listErr: errPassing},
		"NotFound":  {listErr: apierrors.NewNotFound(schema.GroupResource{}, "")},
	}
	for name, failure := range failures {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := &fakeServer{}
				f.fail(failure.openErr, failure.listErr, nil)
				w := f.start(t)
				after(patience - 10*time.Second)
				if settled(w) {
					t.Fatal("a kind that could not be read yet counts as read")
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				cause := errors.Join(failure.openErr, failure.listErr)
				if err := w.awaitSettled(ctx); err == nil || !strings.Contains(err.Error(), cause.Error()) {
					t.Errorf("awaitSettled: %v, want the cause %q", err, cause)
				}
				after(time.Hour)
				if got := f.count("trying again"); got != 1 || len(f.logged) != 1 {
					t.Errorf("logged in an hour: %q, want the failure once", f.logged)
				}
				f.fail(nil, nil, nil)
				after(8 * time.Second)
				if !settled(w) || holds(w) != 1 {
					t.Errorf("8 s after the failure passed: settled: %t, objects: %d; want true, 1", settled(w), holds(w))
				}
			})
		})
	}
}

func TestWatchSaysWhetherItsKindCanBeRead(t *testing.T) {
	t.Parallel()
	notFound := apierrors.NewNotFound(schema.GroupResource{}, "")
	type failure struct {
		openErr, listErr error
		want             unread
	}
	cases := map[string]struct {
		reason   string
		failures []failure
		// wantCalls is how often the bundles are looked at again.
		wantCalls int
	}{
		"Forbidden":       {"Nobody knows what there is.", []failure{{nil, errForbidden, unreadForbidden}}, 2},
		"ForbiddenThenNo": {"A right that is missing is missing through an outage.", []failure{{nil, errForbidden, unreadForbidden}, {nil, errPassing, unreadForbidden}}, 2},
		"NoAnswer":        {"It has never been read.", []failure{{nil, errPassing, unreadNoAnswer}}, 1},
		"ReadThenPassing": {"What has been read is known for a while.", []failure{{}, {nil, errPassing, ""}}, 1},
		"NotServed":       {"There is no such kind, and so there are no objects.", []failure{{errNotServed, notFound, ""}}, 1},
		"ForbiddenThenNotServed": {
			"The kind is gone.", []failure{{nil, errForbidden, unreadForbidden}, {errNotServed, notFound, ""}}, 2,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := &fakeServer{}
				f.fail(tc.failures[0].openErr, tc.failures[0].listErr, nil)
				w := newWatch(source{place: place{kind: configMap, key: testKey}})
				w.open = f.open
				w.store.changed = func(sets.Set[claim]) {}
				if got := w.unreadable(); got != unreadNoAnswer {
					t.Errorf("Before the first list unreadable: %q, want %q: what was known before must stay", got, unreadNoAnswer)
				}
				var calls atomic.Int32
				w.readable = func() { calls.Add(1) }
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() {
					defer close(done)
					w.run(ctx)
				}()
				for i, next := range tc.failures {
					f.fail(next.openErr, next.listErr, nil)
					if i > 0 {
						f.breakOff()
					}
					after(20 * time.Minute)
					if got := w.unreadable(); got != next.want {
						t.Errorf("%s Unreadable: %q, want %q", tc.reason, got, next.want)
					}
				}
				f.fail(nil, nil, nil)
				after(20 * time.Minute)
				if got := w.unreadable(); got != "" || int(calls.Load()) != tc.wantCalls {
					t.Errorf("%s In the end unreadable: %q, and %d calls; want none and %d", tc.reason, got, calls.Load(), tc.wantCalls)
				}
				stop()
				<-done
			})
		})
	}
}

func TestWatchKeepsWhatItHas(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason           string
		openErr, listErr error
		want             int
	}{
		"Forbidden": {"A right that is missing for a moment must not make resources vanish.", nil, errForbidden, 1},
		"Passing":   {"A failure says nothing about the objects.", nil, errPassing, 1},
		"NotFound":  {"A 404 without a look at what is served proves nothing.", errPassing, apierrors.NewNotFound(schema.GroupResource{}, ""), 1},
		"NotServed": {"Where the kind is gone its objects are.", errNotServed, apierrors.NewNotFound(schema.GroupResource{}, ""), 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := &fakeServer{}
				w := f.start(t)
				after(time.Minute)
				f.fail(tc.openErr, tc.listErr, nil)
				f.breakOff()
				after(time.Hour)
				if got := holds(w); got != tc.want {
					t.Errorf("%s %d objects, want %d", tc.reason, got, tc.want)
				}
			})
		})
	}
}

func TestWatchDoesNotRunHotWhenEachAttemptBreaksOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fakeServer{}
		f.start(t)
		for range 200 {
			synctest.Wait()
			f.breakOff()
			after(3 * time.Second)
		}
		// 600 s at an attempt every 5 to 7.5 s, and a few quick ones at first.
		if f.lists > 130 {
			t.Errorf("%d lists in ten minutes, want a pause between them", f.lists)
		}
	})
}
