package observe

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// informerTest is an Informer that reads from a server.
type informerTest struct {
	*server
	*Informer

	t      *testing.T
	opened atomic.Int32
	// storeDelay is how long Replace takes.
	storeDelay atomic.Int64

	mu sync.Mutex
	// states are the reported states in order, and replaced counts the calls of Replace.
	states   []string
	replaced int
}

// Replace counts its calls.
func (i *informerTest) Replace([]any, string) error {
	<-time.After(time.Duration(i.storeDelay.Load()))
	i.mu.Lock()
	defer i.mu.Unlock()
	i.replaced++
	return nil
}

// slowStore is the store of an Informer under test. It delays and counts the calls of Replace.
type slowStore struct {
	cache.Store

	of *informerTest
}

func (s slowStore) Replace(all []any, version string) error { return s.of.Replace(all, version) }

// runInformer tests an Informer in a synctest bubble.
func runInformer(t *testing.T, test func(i *informerTest)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		i := &informerTest{server: &server{}, t: t}
		i.healthy()
		i.Informer = NewInformer(rules, InformerOptions{
			TrackedOptions: TrackedOptions{Clock: clock.RealClock{}, MaxRetryInterval: 30 * time.Second, Describe: func(_ Reason, err error) string { return err.Error() }},
			Open: func(context.Context) (cache.ListerWatcher, error) {
				i.opened.Add(1)
				return i.source(), nil
			},
			Store: slowStore{cache.NewStore(cache.MetaNamespaceKeyFunc), i},
			Changed: func(s State) {
				i.mu.Lock()
				defer i.mu.Unlock()
				i.states = append(i.states, label(s))
			},
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			i.Run(ctx)
		}()
		test(i)
		began := time.Now()
		cancel()
		<-ended
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %s to end", took)
		}
		if stream := i.last.Load(); stream != nil {
			stream.Stop()
		}
	})
}

// expect asserts which states have been reported after some time, and how often Replace was called.
func (i *informerTest) expect(after time.Duration, replaced int, states ...string) {
	i.t.Helper()
	<-time.After(after)
	synctest.Wait()
	i.mu.Lock()
	defer i.mu.Unlock()
	same := len(states) == len(i.states)
	for n := range states {
		same = same && states[n] == i.states[n]
	}
	if !same || i.replaced != replaced {
		i.t.Errorf("went through %v, and stored all %d times; want %v and %d", i.states, i.replaced, states, replaced)
	}
}

func TestInformerReportsEachStateOnce(t *testing.T) {
	t.Parallel()
	runInformer(t, func(i *informerTest) {
		i.expect(time.Second, 1, ready)
		i.refuse(errNoRoute)
		i.last.Load().Stop()
		i.expect(time.Hour, 1, ready, "NoAnswer")
		i.healthy()
		i.expect(time.Minute, 1, ready, "NoAnswer", ready) // The watch went on where it had ended.
	})
}

// TestInformerIsReadyOnceStored checks that objects do not count as read before they are stored, however long that takes.
func TestInformerIsReadyOnceStored(t *testing.T) {
	t.Parallel()
	runInformer(t, func(i *informerTest) {
		i.storeDelay.Store(int64(10 * time.Second))
		i.expect(9*time.Second, 0)
		i.expect(2*time.Second, 1, ready)
		i.expect(time.Hour, 1, ready)
	})
}

func TestInformerReread(t *testing.T) {
	t.Parallel()
	runInformer(t, func(i *informerTest) {
		i.expect(time.Second, 1, ready)
		i.Relist(false)
		i.expect(time.Minute, 2, ready)
		i.refuse(errNoRoute)
		i.Relist(true)
		i.expect(10*time.Second, 2, ready, pending)
		i.healthy()
		i.expect(time.Minute, 3, ready, pending, ready)
	})
}

// TestInformerRelistSkipsThePause checks that Relist begins a delayed attempt at once.
func TestInformerRelistSkipsThePause(t *testing.T) {
	t.Parallel()
	for range 20 {
		runInformer(t, func(i *informerTest) {
			i.expect(time.Second, 1, ready)
			i.refuse(errForbidden)
			i.last.Load().Stop()
			i.expect(10*time.Minute, 1, ready, "Forbidden")
			i.healthy()
			i.Relist(false)
			i.expect(time.Second, 2, ready, "Forbidden", ready)
		})
	}
}

// TestInformerReopensWhenNotServed checks that each attempt discovers again what is not served: it may be served as another resource.
func TestInformerReopensWhenNotServed(t *testing.T) {
	t.Parallel()
	runInformer(t, func(i *informerTest) {
		i.expect(time.Second, 1, ready)
		i.refuse(apierrors.NewNotFound(schema.GroupResource{Resource: "widgets"}, ""))
		i.last.Load().Stop()
		i.expect(time.Minute, 1, ready, "NotServed")
		opened := i.opened.Load()
		if opened < 3 {
			t.Errorf("opened %d times", opened)
		}
		i.healthy()
		i.expect(time.Minute, 2, ready, "NotServed", ready)
		i.last.Load().Stop()
		i.expect(time.Minute, 2, ready, "NotServed", ready)
		if now := i.opened.Load(); now > opened+1 {
			t.Errorf("opened %d times more when it was served", now-opened)
		}
	})
}

// TestInformerRelistsWhenExpired checks that an expired watch leads to a list, not to another Open.
func TestInformerRelistsWhenExpired(t *testing.T) {
	t.Parallel()
	runInformer(t, func(i *informerTest) {
		i.expect(time.Second, 1, ready)
		i.serveWatch(func(fromStart bool, stream *watch.FakeWatcher) error {
			if !fromStart {
				return apierrors.NewResourceExpired("too old resource version")
			}
			stream.Action(watch.Bookmark, bookmark)
			return nil
		})
		i.last.Load().Stop()
		i.expect(time.Minute, 2, ready)
		if i.opened.Load() != 1 {
			t.Errorf("opened %d times", i.opened.Load())
		}
	})
}

// TestInformerPausesBetweenReads has servers whose answers end each read. A reflector does not pause then.
func TestInformerPausesBetweenReads(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(s *server){
		"every watch is too old":    func(s *server) { s.refuseStreamingLists(apierrors.NewResourceExpired("too old resource version")) },
		"every request is rejected": func(s *server) { s.refuse(apierrors.NewBadRequest("an HTTP request to an HTTPS server")) },
		"every watch is rejected":   func(s *server) { s.refuseStreamingLists(apierrors.NewBadRequest("no watches")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runInformer(t, func(i *informerTest) {
				answer(i.server)
				<-time.After(2 * time.Minute)
				if n := i.lists.Load() + i.watches.Load(); n < 10 || n > 200 {
					t.Errorf("%d requests in two minutes, want at most three after each pause of up to %s", n, maxPause)
				}
			})
		})
	}
}

// TestInformerWaitsForItsList checks that a list whose context has ended returns before Run does: a reflector does not wait for it. It needs
// the real time, because the time of a bubble stops while a goroutine waits for a lock.
func TestInformerWaitsForItsList(t *testing.T) {
	t.Parallel()
	s, begun, returned := &server{}, make(chan struct{}), false
	s.behaviour.Store(&behaviour{
		list: func(ctx context.Context) error {
			close(begun)
			<-ctx.Done()
			<-time.After(50 * time.Millisecond)
			returned = true
			return ctx.Err()
		},
		watch: func(bool, *watch.FakeWatcher) error { return errUnsupported },
	})
	i := NewInformer(rules, InformerOptions{
		TrackedOptions: TrackedOptions{Clock: clock.RealClock{}, Describe: func(_ Reason, err error) string { return err.Error() }},
		Open:           func(context.Context) (cache.ListerWatcher, error) { return s.source(), nil },
		Store:          cache.NewStore(cache.MetaNamespaceKeyFunc), Changed: func(State) {},
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-begun
		cancel()
	}()
	i.Run(ctx)
	if !returned {
		t.Error("a list continues")
	}
}
