package observe

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

var (
	errForbidden   = apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("no right"))
	errUnsupported = apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil)
	errNoRoute     = errors.New("no route to host")
	bookmark       = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}}
)

// server is an API server that a test controls.
type server struct {
	lists, watches atomic.Int32
	last           atomic.Pointer[watch.FakeWatcher]
	behaviour      atomic.Pointer[behaviour]
}

// behaviour is how a server answers lists and opens watches. A streaming list (fromStart) delivers all objects first.
type behaviour struct {
	list  func(context.Context) error
	watch func(fromStart bool, stream *watch.FakeWatcher) error
}

func succeed(context.Context) error { return nil }

// source returns a ListerWatcher of the server.
func (s *server) source() cache.ListerWatcher {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
			s.lists.Add(1)
			if err := s.behaviour.Load().list(ctx); err != nil {
				return nil, err
			}
			return &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}, nil
		},
		WatchFuncWithContext: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
			s.watches.Add(1)
			stream := watch.NewFakeWithChanSize(10, false)
			s.last.Store(stream)
			return stream, s.behaviour.Load().watch(o.SendInitialEvents != nil, stream)
		},
	}
}

// healthy answers all requests without an error.
func (s *server) healthy() {
	s.behaviour.Store(&behaviour{succeed, func(fromStart bool, stream *watch.FakeWatcher) error {
		if fromStart {
			stream.Action(watch.Bookmark, bookmark)
		}
		return nil
	}})
}

// refuse answers all requests with an error.
func (s *server) refuse(err error) {
	s.behaviour.Store(&behaviour{func(context.Context) error { return err }, func(bool, *watch.FakeWatcher) error { return err }})
}

// serveWatch answers lists, and opens watches with open.
func (s *server) serveWatch(open func(fromStart bool, stream *watch.FakeWatcher) error) {
	s.behaviour.Store(&behaviour{succeed, open})
}

// refuseStreamingLists answers lists, refuses streaming lists as an old API server does, and answers other watches with err.
func (s *server) refuseStreamingLists(err error) {
	s.serveWatch(func(fromStart bool, _ *watch.FakeWatcher) error {
		if fromStart {
			return errUnsupported
		}
		return err
	})
}

// trackedTest is a reflector that reads from a server.
type trackedTest struct {
	*server

	t       *testing.T
	tracker *Tracker
	tracked *Tracked
	// stop ends the reflector, and returns how long that took.
	stop func() time.Duration
}

func (r *trackedTest) expect(after time.Duration, want string) State {
	r.t.Helper()
	<-time.After(after)
	synctest.Wait()
	s, _ := r.tracker.State()
	if label(s) != want {
		r.t.Errorf("got %s %q, want %s", label(s), s.Message, want)
	}
	return s
}

// TestTrackedCountsRefusalAsAnswer checks that a refusal calls Answered, not Failed: a server that refuses is reachable.
func TestTrackedCountsRefusalAsAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		err                        error
		wantAnswered, wantFailures bool
	}{
		"refused":       {errForbidden, true, false},
		"not reachable": {errNoRoute, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var answers, failures atomic.Int32
				s := &server{}
				s.refuse(c.err)
				tracked := NewTracked(s.source(), TrackedOptions{
					Tracker: NewTracker(rules, clock.RealClock{}, nil), Clock: clock.RealClock{}, Describe: func(Reason, error) string { return "" },
					Answered: func() { answers.Add(1) }, Failed: func(error) { failures.Add(1) },
				})
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if _, err := tracked.ListWithContext(ctx, metav1.ListOptions{}); err == nil {
					t.Fatal("a list succeeds that is refused")
				}
				if got := answers.Load() > 0; got != c.wantAnswered {
					t.Errorf("answered: %v, want %v", got, c.wantAnswered)
				}
				if got := failures.Load() > 0; got != c.wantFailures {
					t.Errorf("failed: %v, want %v", got, c.wantFailures)
				}
			})
		})
	}
}

// runTracked tests a reflector that reads through a Tracked in a synctest bubble.
func runTracked(t *testing.T, test func(r *trackedTest)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &trackedTest{server: &server{}, t: t, tracker: NewTracker(rules, clock.RealClock{}, nil)}
		r.healthy()
		r.tracked = NewTracked(r.source(), TrackedOptions{
			Tracker: r.tracker, Clock: clock.RealClock{}, MaxRetryInterval: 30 * time.Second,
			Describe: func(_ Reason, err error) string { return err.Error() },
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		reflector := cache.NewReflectorWithOptions(r.tracked, &corev1.ConfigMap{}, cache.NewStore(cache.MetaNamespaceKeyFunc), cache.ReflectorOptions{})
		start := func() {
			go func() {
				defer close(ended)
				reflector.RunWithContext(ctx)
			}()
		}
		r.stop = func() time.Duration {
			began := time.Now()
			cancel()
			<-ended
			return time.Since(began)
		}
		time.AfterFunc(time.Second, start) // Before that, the test sets the behaviour of the server.
		test(r)
		r.stop()
		if stream := r.last.Load(); stream != nil {
			stream.Stop()
		}
	})
}

func TestTrackedReopensWatches(t *testing.T) {
	t.Parallel()
	runTracked(t, func(r *trackedTest) {
		r.expect(0, pending)
		r.expect(1600*time.Millisecond, ready)
		for range 3 {
			r.last.Load().Stop()
			r.expect(10*time.Minute, ready)
		}
		if r.lists.Load() != 0 {
			t.Errorf("%d lists, want none", r.lists.Load())
		}
	})
}

// TestTrackedReplacesIdleWatch checks that a watch that delivers nothing is replaced, without a list: it may be broken.
func TestTrackedReplacesIdleWatch(t *testing.T) {
	t.Parallel()
	runTracked(t, func(r *trackedTest) {
		r.expect(2*time.Second, ready)
		before := r.watches.Load()
		r.expect(time.Hour, ready)
		if got := r.watches.Load() - before; r.lists.Load() != 0 || got < 15 || got > 20 {
			t.Errorf("%d lists and %d watches within an hour, want none and one every three minutes", r.lists.Load(), got)
		}
	})
}

// TestTrackedPausesAfterBrokenStreamingList checks the pauses without which a reflector repeats a broken streaming list thousands of times a second.
func TestTrackedPausesAfterBrokenStreamingList(t *testing.T) {
	t.Parallel()
	runTracked(t, func(r *trackedTest) {
		r.serveWatch(func(_ bool, stream *watch.FakeWatcher) error {
			stream.Stop()
			return nil
		})
		s := r.expect(11*time.Second, pending)
		if got := r.watches.Load(); got > 10 || got < 3 {
			t.Errorf("%d watches in 10 seconds, want some, and at most 10", got)
		}
		if s.Status == Ready {
			t.Error("what was never read is Ready")
		}
		r.healthy()
		r.expect(6*time.Second, ready)
	})
}

func TestTrackedPausesWhenRefusedUntilKick(t *testing.T) {
	t.Parallel()
	runTracked(t, func(r *trackedTest) {
		r.refuse(errForbidden)
		s := r.expect(2*time.Minute, "Forbidden")
		if s.Message != errForbidden.Error() {
			t.Errorf("says %q", s.Message)
		}
		if got := r.watches.Load(); r.lists.Load() != 0 || got > 15 {
			t.Errorf("%d lists and %d watches within two minutes, want none and at most 15", r.lists.Load(), got)
		}
		r.expect(8*time.Minute, "Forbidden")
		before := r.watches.Load()
		r.expect(5*time.Minute, "Forbidden")
		if got := r.watches.Load() - before; got < 10 || got > 21 {
			t.Errorf("%d attempts within 5 minutes, want one every 15 to 30 seconds", got)
		}
		r.healthy()
		r.tracked.RetryNow()
		r.expect(time.Second, ready)
	})
}

// TestTrackedConfirmsRefusal checks that an attempt is made as soon as it can confirm the refusal of a place that has been read.
func TestTrackedConfirmsRefusal(t *testing.T) {
	t.Parallel()
	runTracked(t, func(r *trackedTest) {
		r.expect(10*time.Minute, ready)
		r.refuse(errForbidden)
		r.last.Load().Stop()
		r.expect(ConfirmAfter-time.Second, ready)
		r.expect(2*time.Second, "Forbidden")
		r.refuse(errNoRoute)
		r.expect(rules.Grace, "Forbidden")
		r.expect(2*maxPause+rules.Grace, "NoAnswer")
		r.healthy()
		r.expect(maxPause+time.Second, ready)
	})
}

func TestTrackedFallsBackToList(t *testing.T) {
	t.Parallel()
	runTracked(t, func(r *trackedTest) {
		r.refuseStreamingLists(nil)
		r.expect(3*time.Second, ready)
		if r.lists.Load() != 1 {
			t.Errorf("%d lists, want one", r.lists.Load())
		}
		// A client that may list but not watch is refused.
		r.refuseStreamingLists(errForbidden)
		r.last.Load().Stop()
		r.expect(ConfirmAfter+2*maxPause, "Forbidden")
	})
}

func TestTrackedStaysReadyWhenExpired(t *testing.T) {
	t.Parallel()
	runTracked(t, func(r *trackedTest) {
		r.expect(10*time.Minute, ready)
		r.serveWatch(func(fromStart bool, stream *watch.FakeWatcher) error {
			if !fromStart {
				return apierrors.NewResourceExpired("too old resource version")
			}
			stream.Action(watch.Bookmark, bookmark)
			return nil
		})
		r.last.Load().Stop()
		for range 100 {
			r.expect(time.Second, ready)
		}
	})
}

// TestTrackedPausesWhenEveryWatchExpires checks that a server whose lists are always too old to watch from is not asked
// without a pause.
func TestTrackedPausesWhenEveryWatchExpires(t *testing.T) {
	t.Parallel()
	runTracked(t, func(r *trackedTest) {
		r.refuseStreamingLists(apierrors.NewResourceExpired("too old resource version"))
		<-time.After(2 * time.Minute)
		if n := time.Duration(r.lists.Load()); n < 2 || n > 2*time.Minute/maxPause {
			t.Errorf("%d lists in two minutes, want more than one, and not more than one each %s", n, maxPause)
		}
	})
}

func TestTrackedStopsPromptly(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(s *server){
		"while it watches":    func(s *server) { s.healthy() },
		"while it pauses":     func(s *server) { s.refuse(errNoRoute) },
		"while it is refused": func(s *server) { s.refuse(errForbidden) },
		"while a list is not answered": func(s *server) {
			s.behaviour.Store(&behaviour{
				list:  func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
				watch: func(bool, *watch.FakeWatcher) error { return errUnsupported },
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runTracked(t, func(r *trackedTest) {
				prepare(r.server)
				<-time.After(time.Minute)
				if took := r.stop(); took > time.Second {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}
