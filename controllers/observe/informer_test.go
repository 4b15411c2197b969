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

// informing is an Informer that reads a server.
type informing struct {
	*server
	*Informer

	t      *testing.T
	opened atomic.Int32
	// storing is how long it takes to store all there is.
	storing atomic.Int64

	mu sync.Mutex
	// states are those that were reported, one after the other, and replaced is how often all was stored.
	states   []string
	replaced int
}

// Replace counts what is stored.
func (i *informing) Replace([]any, string) error {
	<-time.After(time.Duration(i.storing.Load()))
	i.mu.Lock()
	defer i.mu.Unlock()
	i.replaced++
	return nil
}

// storing is the store of an Informer under test, which counts.
type storing struct {
	cache.Store

	of *informing
}

func (s storing) Replace(all []any, version string) error { return s.of.Replace(all, version) }

// inform runs a test of an Informer with time of its own.
func inform(t *testing.T, test func(i *informing)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		i := &informing{server: &server{}, t: t}
		i.healthy()
		i.Informer = NewInformer(rules, InformerOptions{
			TrackedOptions: TrackedOptions{Clock: clock.RealClock{}, MaxRefused: 30 * time.Second, Describe: func(_ Reason, err error) string { return err.Error() }},
			Open: func(context.Context) (cache.ListerWatcher, error) {
				i.opened.Add(1)
				return i.source(), nil
			},
			Store: storing{cache.NewStore(cache.MetaNamespaceKeyFunc), i},
			Changed: func(s State) {
				i.mu.Lock()
				defer i.mu.Unlock()
				i.states = append(i.states, what(s))
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

// expect asserts what has been reported after some time, and how often all was stored.
func (i *informing) expect(after time.Duration, replaced int, states ...string) {
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
	inform(t, func(i *informing) {
		i.expect(time.Second, 1, ready)
		i.refuse(errNoRoute)
		i.last.Load().Stop()
		i.expect(time.Hour, 1, ready, "NoAnswer")
		i.healthy()
		i.expect(time.Minute, 1, ready, "NoAnswer", ready) // The watch went on where it had ended.
	})
}

// What has been delivered and is not stored yet does not count as read, however long it takes to store it.
func TestInformerIsReadyOnceAllIsStored(t *testing.T) {
	t.Parallel()
	inform(t, func(i *informing) {
		i.storing.Store(int64(10 * time.Second))
		i.expect(9*time.Second, 0)
		i.expect(2*time.Second, 1, ready)
		i.expect(time.Hour, 1, ready)
	})
}

func TestInformerReadsAgain(t *testing.T) {
	t.Parallel()
	inform(t, func(i *informing) {
		i.expect(time.Second, 1, ready)
		i.Reread(false)
		i.expect(time.Minute, 2, ready)
		i.refuse(errNoRoute)
		i.Reread(true)
		i.expect(10*time.Second, 2, ready, pending)
		i.healthy()
		i.expect(time.Minute, 3, ready, pending, ready)
	})
}

// An attempt that is put off begins at once.
func TestInformerReadsAgainWhatIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	for range 20 {
		inform(t, func(i *informing) {
			i.expect(time.Second, 1, ready)
			i.refuse(errForbidden)
			i.last.Load().Stop()
			i.expect(10*time.Minute, 1, ready, "Forbidden")
			i.healthy()
			i.Reread(false)
			i.expect(time.Second, 2, ready, "Forbidden", ready)
		})
	}
}

// What the cluster does not serve any more may be served in another way: that is found out at each attempt.
func TestInformerOpensAgainWhatIsNotServed(t *testing.T) {
	t.Parallel()
	inform(t, func(i *informing) {
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

// A watch of a server that expires is no reason to open again.
func TestInformerListsAgainWhatHasExpired(t *testing.T) {
	t.Parallel()
	inform(t, func(i *informing) {
		i.expect(time.Second, 1, ready)
		i.watchBy(func(fromStart bool, stream *watch.FakeWatcher) error {
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
