package monitor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

// cachedBundles is a cache of bundles. look, if set, is called whenever all bundles are listed.
type cachedBundles struct {
	client.Reader
	noIndexer

	bundles []k8spluginv1alpha1.ResourceBundleState
	look    func()
	err     error
}

// noIndexer ignores indexes.
type noIndexer struct{}

func (noIndexer) IndexField(context.Context, client.Object, string, client.IndexerFunc) error {
	return nil
}

func (c cachedBundles) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	if len(options) == 1 && c.look != nil {
		c.look()
	}
	into, ok := list.(*k8spluginv1alpha1.ResourceBundleStateList)
	if !ok {
		return fmt.Errorf("bundles are listed into a %T", list)
	}
	into.Items = c.bundles
	return c.err
}

// withBundle gives a monitor one bundle with these entries, and a queue. look is called whenever all bundles are woken because
// of a change of the readable kinds.
func withBundle(t *testing.T, all *watches, look func(*k8spluginv1alpha1.ResourceBundleState), entries ...k8spluginv1alpha1.ResourceHealth) *k8spluginv1alpha1.ResourceBundleState {
	t.Helper()
	if err := all.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := bundleAt("1")
	b.Name, b.Status.Resources = "one", entries
	cached := cachedBundles{bundles: []k8spluginv1alpha1.ResourceBundleState{*b}, look: func() { look(b) }}
	all.bundles, all.indexer = cached, cached
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
	t.Cleanup(q.ShutDown)
	if err := all.Start(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	return b
}

// TestRecoveredGroupKeepsEntriesUntilRead has a group that responds to discovery again, and whose objects are read a while
// later.
func TestRecoveredGroupKeepsEntriesUntilRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gadget := []schema.GroupKind{{Group: "other.io", Kind: "Gadget"}}
		s := &kindServer{slow: map[string]bool{"v5": true}}
		s.serve(&discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{{Group: "other.io", Version: "v5"}: errPassing}},
			served("example.io/v1", kindServed("Widget", true)))
		all := startDiscovery(t, s)
		looks := 0
		b := withBundle(t, all, func(b *k8spluginv1alpha1.ResourceBundleState) {
			looks++
			if diff := cmp.Diff(gadget, unreadableOf(t, all, b)); diff != "" && s.isSlow("v5") {
				t.Errorf("unreadable kinds differ when the bundle is looked at (-want +got):\n%s", diff)
			}
		}, entryOf("other.io", "Gadget"))
		s.serve(nil, served("example.io/v1", kindServed("Widget", true)), served("other.io/v5", kindServed("Gadget", true)))
		s.change("other.io")
		for range 600 {
			after(100 * time.Millisecond)
			if diff := cmp.Diff(gadget, unreadableOf(t, all, b)); diff != "" {
				t.Fatalf("unreadable kinds differ before the group has been read (-want +got):\n%s", diff)
			}
		}
		if looks == 0 {
			t.Error("the bundle was never looked at after the group answered")
		}
		looks = 0
		s.setSlow("v5", false)
		after(10 * time.Second)
		if got := unreadableOf(t, all, b); len(got) > 0 || looks == 0 {
			t.Errorf("unreadable: %v after %d looks, want none after one: the group has been read", got, looks)
		}
	})
}

// TestNewVersionKeepsEntriesUntilRead has a version that replaces another one and that cannot be read for a while. The former version is
// served, or is not.
func TestNewVersionKeepsEntriesUntilRead(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		servesFormer   bool
		wantKinds      []string
		wantVersions   []string
		wantUnreadable []schema.GroupKind
	}{
		"served": {true, []string{"example.io/v1 Widget", "example.io/v2 Widget"}, []string{"example.io/v1"}, []schema.GroupKind{}},
		"gone":   {false, []string{"example.io/v2 Widget"}, nil, []schema.GroupKind{{Group: "example.io", Kind: "Widget"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &kindServer{slow: map[string]bool{"v2": true}}
				former := served("example.io/v1", kindServed("Widget", true))
				s.serve(nil, former)
				all := startDiscovery(t, s)
				b := withBundle(t, all, func(*k8spluginv1alpha1.ResourceBundleState) {}, entryOf("example.io", "Widget"))
				s.serve(nil, served("example.io/v2", kindServed("Widget", true)))
				s.hide(former)
				s.change("example.io")
				after(10 * time.Second)
				if got := unreadableOf(t, all, b); len(got) > 0 {
					t.Errorf("unreadable: %v while the former version shows the objects, want none", got)
				}
				if !tc.servesFormer {
					s.hide()
					all.snapshot()[0].informer.Relist(false) // As when the API server ends its watch.
				}
				after(time.Minute)
				wantFollowed(t, all, tc.wantKinds, tc.wantVersions)
				if diff := cmp.Diff(tc.wantUnreadable, unreadableOf(t, all, b)); diff != "" {
					t.Errorf("unreadable kinds differ while the version cannot be read (-want +got):\n%s", diff)
				}
				s.setSlow("v2", false)
				after(10 * time.Second)
				wantFollowed(t, all, []string{"example.io/v2 Widget"}, []string{"example.io/v2"})
				if got := unreadableOf(t, all, b); len(got) > 0 {
					t.Errorf("unreadable: %v after the version has been read, want none", got)
				}
			})
		})
	}
}

// TestOneIncompleteDiscoveryKeepsKinds has a discovery that omits a group for a moment, without an error.
func TestOneIncompleteDiscoveryKeepsKinds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		both := []*metav1.APIResourceList{served("example.io/v1", kindServed("Widget", true)), served("other.io/v1", kindServed("Gadget", true))}
		s := &kindServer{}
		s.serve(nil, both...)
		all := startDiscovery(t, s)
		after(time.Second)
		before := all.snapshot()
		for range 3 {
			s.serve(nil, both[:1]...)
			s.change("other.io")
			after(discoveryConfirmDelay / 2)
			s.serve(nil, both...)
			after(time.Hour)
			if !slices.Equal(before, all.snapshot()) {
				t.Fatal("a group that one discovery did not name was no longer watched")
			}
		}
		s.serve(nil, both[:1]...)
		s.change("other.io")
		after(3*time.Second + discoveryConfirmDelay)
		wantFollowed(t, all, []string{"example.io/v1 Widget"}, []string{"example.io/v1"})
	})
}

// TestRecoveredGroupIsConfirmed has a group that did not respond, and that a discovery then omits for a moment without an error.
func TestRecoveredGroupIsConfirmed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		widget, gadget := served("example.io/v1", kindServed("Widget", true)), served("other.io/v1", kindServed("Gadget", true))
		s := &kindServer{}
		s.serve(&discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{{Group: "other.io", Version: "v1"}: errPassing}}, widget)
		all := startDiscovery(t, s)
		b := withBundle(t, all, func(*k8spluginv1alpha1.ResourceBundleState) {}, entryOf("other.io", "Gadget"))
		after(time.Minute)
		s.serve(nil, widget)
		s.change("other.io")
		for range 6 {
			after(time.Second)
			if diff := cmp.Diff([]schema.GroupKind{{Group: "other.io", Kind: "Gadget"}}, unreadableOf(t, all, b)); diff != "" {
				t.Fatalf("unreadable kinds differ (-want +got):\n%s", diff)
			}
		}
		s.serve(nil, widget, gadget)
		after(2 * discoveryConfirmDelay)
		wantFollowed(t, all, []string{"example.io/v1 Widget", "other.io/v1 Gadget"}, []string{"example.io/v1", "other.io/v1"})
		if got := unreadableOf(t, all, b); len(got) > 0 {
			t.Errorf("unreadable: %v after the group has been read", got)
		}
	})
}

// TestServedKindStaysWatched has discoveries that all omit a group that is served.
func TestServedKindStaysWatched(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		widget, gadget := served("example.io/v1", kindServed("Widget", true)), served("other.io/v1", kindServed("Gadget", true))
		s := &kindServer{}
		s.serve(nil, widget, gadget)
		all := startDiscovery(t, s)
		after(time.Minute)
		before, asked := all.snapshot(), s.asked()
		s.serve(nil, widget)
		s.hide(gadget)
		s.change("other.io")
		after(24 * time.Hour)
		if !slices.Equal(before, all.snapshot()) {
			t.Error("a kind that is served was no longer watched")
		}
		if got := s.asked() - asked; got > 3 {
			t.Errorf("%d discoveries in a day in which nothing changed but once, want two or three", got)
		}
		s.hide()
		s.change("other.io")
		after(3*time.Second + discoveryConfirmDelay)
		wantFollowed(t, all, []string{"example.io/v1 Widget"}, []string{"example.io/v1"})
	})
}

// TestBundlesAreWokenWhenKindIsRemoved removes an aggregated API, which sends no events. Its objects, both read and remembered
// ones, must be removed from their bundles.
func TestBundlesAreWokenWhenKindIsRemoved(t *testing.T) {
	t.Parallel()
	readable, forbidding := &kindServer{}, &forbiddingServer{kindServer: &kindServer{}}
	for name, tc := range map[string]struct {
		s       *kindServer
		objects reader
	}{"which was read": {readable, readable}, "which could not be read": {forbidding.kindServer, forbidding}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				widget, gadget := served("example.io/v1", kindServed("Widget", true)), served("other.io/v1", kindServed("Gadget", true))
				s := tc.s
				s.serve(nil, widget, gadget)
				all := watchesOf(s, tc.objects)
				discoverFrom(s, all)
				runWatches(t, all)
				b := withBundle(t, all, func(*k8spluginv1alpha1.ResourceBundleState) {}, entryOf("other.io", "Gadget"))
				after(time.Minute)
				s.serve(nil, widget)
				s.change("other.io")
				after(discoveryConfirmDelay) // The kind is dropped a second later.
				state := all.writeStates.of(b)
				before := state.changes.Load()
				after(3 * time.Second)
				if state.changes.Load() == before {
					t.Error("the bundle did not hear that the kind is no longer watched")
				}
				if got := unreadableOf(t, all, b); len(got) > 0 && slices.ContainsFunc(got, func(k schema.GroupKind) bool { return k.Group == "other.io" }) {
					t.Errorf("unreadable: %v of a kind that is gone", got)
				}
			})
		})
	}
}

// busyServer rejects each watch with an initial list as too busy, like an API server whose cache of a kind cannot be filled.
type busyServer struct{ *kindServer }

func (s busyServer) watch(ctx context.Context, r schema.GroupVersionResource, namespace string, options metav1.ListOptions) (apiwatch.Interface, error) {
	if options.SendInitialEvents != nil && r.Group == "broken.io" {
		return nil, apierrors.NewTooManyRequests("the cache is being filled", 1)
	}
	return s.kindServer.watch(ctx, r, namespace, options)
}

// TestStartWaitsForFailingKindsOnlyForStartGrace starts a monitor while a kind is served but cannot be read, or its cache in the API server
// can never be filled.
func TestStartWaitsForFailingKindsOnlyForStartGrace(t *testing.T) {
	t.Parallel()
	slow, busy := &kindServer{slow: map[string]bool{"v9": true}}, busyServer{&kindServer{}}
	for name, tc := range map[string]struct {
		s       *kindServer
		objects reader
	}{"slow": {slow, slow}, "busy": {busy.kindServer, busy}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				tc.s.serve(nil, served("example.io/v1", kindServed("Widget", true)), served("broken.io/v9", kindServed("Gadget", true)))
				all := watchesOf(tc.s, tc.objects)
				followKinds(all, Options{LabelKeys: []string{testKey}}, tc.s.preferred)
				runWatches(t, all)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if err := all.WaitForSync(ctx); err != nil {
					t.Fatalf("the monitor does not start: %v", err)
				}
				if diff := cmp.Diff([]schema.GroupKind{{Group: "broken.io", Kind: "Gadget"}}, unreadableOf(t, all, bundleAt("1"))); diff != "" {
					t.Errorf("unreadable kinds differ (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestUnansweredGroupDoesNotDelayOthers has an aggregated API that has been down for hours, and a kind that is served a moment
// after its CRD exists.
func TestUnansweredGroupDoesNotDelayOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dead := &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{{Group: "dead.io", Version: "v1"}: errPassing}}
		widget := served("example.io/v1", kindServed("Widget", true))
		s := &kindServer{}
		s.serve(dead, widget)
		all := startDiscovery(t, s)
		after(2 * time.Hour)
		s.change("other.io")
		after(2 * time.Second)
		s.serve(dead, widget, served("other.io/v1", kindServed("Gadget", true)))
		after(discoveryConfirmDelay + time.Second)
		wantFollowed(t, all, []string{"example.io/v1 Widget", "other.io/v1 Gadget"}, []string{"example.io/v1", "other.io/v1"})
		asked := s.asked()
		after(time.Hour)
		if n := s.asked() - asked; n > 20 {
			t.Errorf("the cluster was asked for its kinds %d times in an hour in which nothing changed", n)
		}
	})
}

// forbiddingServer rejects all lists and watches, and counts the lists.
type forbiddingServer struct {
	*kindServer

	asked atomic.Int32
}

func (s *forbiddingServer) list(context.Context, schema.GroupVersionResource, string, metav1.ListOptions) (runtime.Object, error) {
	s.asked.Add(1)
	return nil, errForbidden
}

// TestRefusedKindsAreRetriedWhenTheirGroupChanges has discoveries that all fail, and new CRDs of other groups.
func TestRefusedKindsAreRetriedWhenTheirGroupChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &forbiddingServer{kindServer: &kindServer{}}
		s.serve(&discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{{Group: "other.io", Version: "v1"}: errPassing}},
			served("example.io/v1", kindServed("Widget", true)))
		all := watchesOf(s.kindServer, s)
		discoverFrom(s.kindServer, all)
		runWatches(t, all)
		after(2 * time.Hour)

		before := s.asked.Load()
		s.change("other.io")
		after(24 * time.Hour)
		if got := s.asked.Load() - before; got > 24*6*2 {
			t.Errorf("a refused kind was asked for %d times in a day in which its group did not change, want every ten minutes", got)
		}
		crd := object("", "widgets.example.io", "", "7")
		for _, change := range []struct {
			what string
			make func(runtime.Object)
		}{{"came", s.crds.stream.Add}, {"went", s.crds.stream.Delete}} {
			before = s.asked.Load()
			change.make(crd)
			after(2 * discoveryDelay)
			if s.asked.Load() == before {
				t.Errorf("a refused kind was not asked for after its CRD %s", change.what)
			}
		}
	})
}

// TestStopLogsNoError changes objects whose bundles were never read, until the monitor stops.
func TestStopLogsNoError(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	var logged []string
	all := &watches{
		membership: membership{bundles: cachedBundles{err: errors.New("the bundles have not been read")}},
		logger:     funcr.New(func(_, line string) { logged = append(logged, line) }, funcr.Options{}), synced: make(chan struct{}),
	}
	close(all.synced)
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
	defer q.ShutDown()
	all.queue.Store(&q)
	wakeBoth := func() {
		all.wake(ctx, sets.New(inNamespace("one")))
		all.wakeAll(ctx)
	}
	if wakeBoth(); len(logged) != 2 {
		t.Errorf("while it runs, two errors are to be logged, not %q", logged)
	}
	stop()
	if wakeBoth(); len(logged) != 2 {
		t.Errorf("when it stops, nothing more is to be logged, not %q", logged[2:])
	}
}
