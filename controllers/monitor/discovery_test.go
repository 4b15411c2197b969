package monitor

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

// kindServer is a fake API server whose kinds change. Each kind has one object, "a", in the bundle "one".
type kindServer struct {
	mu    sync.Mutex
	lists []*metav1.APIResourceList
	err   error
	// hidden are served too, but no discovery of all kinds contains them.
	hidden []*metav1.APIResourceList
	// slow are the resources that cannot be read for now.
	slow map[string]bool
	asks int
	// crds serves the CRDs. changes is the number of their changes.
	crds    fakeServer
	changes int
}

// change changes a CRD of a group, as for a change of its kinds.
func (s *kindServer) change(group string) {
	synctest.Wait()
	s.changes++
	s.crds.stream.Add(object("", "things."+group, "", strconv.Itoa(100+s.changes)))
}

func (s *kindServer) serve(err error, lists ...*metav1.APIResourceList) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists, s.err = lists, err
}

// hide serves kinds that the discovery of all kinds omits.
func (s *kindServer) hide(lists ...*metav1.APIResourceList) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hidden = lists
}

// all returns all served resources.
func (s *kindServer) all() []*metav1.APIResourceList {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Concat(s.lists, s.hidden)
}

func (s *kindServer) preferred() ([]*metav1.APIResourceList, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asks++
	return s.lists, s.err
}

// setSlow sets whether the resources of a version cannot be read.
func (s *kindServer) setSlow(version string, slow bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slow[version] = slow
}

func (s *kindServer) isSlow(version string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.slow[version]
}

// asked returns how often the kinds were discovered.
func (s *kindServer) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asks
}

func (s *kindServer) ServerGroups() (*metav1.APIGroupList, error) {
	var groups metav1.APIGroupList
	for _, list := range s.all() {
		groups.Groups = append(groups.Groups, metav1.APIGroup{Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: list.GroupVersion}}})
	}
	return &groups, nil
}

func (s *kindServer) ServerResourcesForGroupVersion(gv string) (*metav1.APIResourceList, error) {
	for _, list := range s.all() {
		if list.GroupVersion == gv {
			return list, nil
		}
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{}, gv)
}

func (s *kindServer) list(_ context.Context, resource schema.GroupVersionResource, _ string, _ metav1.ListOptions) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.slow[resource.Version] {
		return nil, errPassing
	}
	o := object("ns", "a", "one", "5")
	o.SetUID(types.UID(resource.Resource))
	o.SetAPIVersion(resource.GroupVersion().String())
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List"}, Items: []unstructured.Unstructured{*o}}
	list.SetResourceVersion("5")
	return list, nil
}

func (s *kindServer) watch(_ context.Context, _ schema.GroupVersionResource, _ string, options metav1.ListOptions) (apiwatch.Interface, error) {
	if options.SendInitialEvents != nil {
		return nil, apierrors.NewBadRequest("lists cannot be streamed")
	}
	return apiwatch.NewFakeWithChanSize(10, false), nil
}

// startDiscovery watches the server's kinds until the test ends.
func startDiscovery(t *testing.T, s *kindServer) *watches {
	t.Helper()
	all := watchesOf(s, s)
	discoverFrom(s, all)
	runWatches(t, all)
	return all
}

// discoverFrom makes watches follow the server's kinds, whose CRDs are watched.
func discoverFrom(s *kindServer, all *watches) {
	crds := newWatch(source{place: place{kind: configMap}, kinds: &s.crds, client: clientOf(&s.crds)}, clock.RealClock{}, logr.Discard())
	followKinds(all, Options{LabelKeys: []string{testKey}}, s.preferred, crds)
}

// watchesOf returns watches without places.
func watchesOf(kinds kindFinder, objects reader) *watches {
	return &watches{
		membership: membership{keys: []string{testKey}}, writeStates: newWriteStates(), logger: logr.Discard(), clock: clock.RealClock{},
		synced:   make(chan struct{}),
		sourceOf: func(p place) source { return source{place: p, kinds: kinds, client: clientOf(objects)} },
	}
}

// runWatches runs watches until the test ends.
func runWatches(t *testing.T, all *watches) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- all.run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// followed returns the watched kinds, and the versions in which a bundle has objects.
func followed(t *testing.T, all *watches) (kinds, versions []string) {
	t.Helper()
	synctest.Wait()
	for _, w := range all.snapshot() {
		kinds = append(kinds, w.source.kind.GroupVersion().String()+" "+w.source.kind.Kind)
	}
	b := bundleAt("1")
	b.Name = "one"
	members, _, err := all.gather(b)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range members {
		versions = append(versions, m.GetAPIVersion())
	}
	slices.Sort(kinds)
	slices.Sort(versions)
	return kinds, versions
}

func wantFollowed(t *testing.T, all *watches, wantKinds, wantVersions []string) {
	t.Helper()
	kinds, versions := followed(t, all)
	if diff := cmp.Diff(wantKinds, kinds); diff != "" {
		t.Errorf("kinds differ (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantVersions, versions); diff != "" {
		t.Errorf("the objects' versions differ (-want +got):\n%s", diff)
	}
}

func TestDiscoveryFollowsKinds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &kindServer{slow: map[string]bool{}}
		s.serve(nil, served("example.io/v1", kindServed("Widget", true)))
		all := startDiscovery(t, s)
		if err := all.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantFollowed(t, all, []string{"example.io/v1 Widget"}, []string{"example.io/v1"})

		// Many kinds are added within a moment.
		asked := s.asked()
		s.serve(nil, served("example.io/v1", kindServed("Widget", true)), served("other.io/v1", kindServed("Gadget", true)))
		for range 50 {
			s.change("other.io")
			after(10 * time.Millisecond)
		}
		after(time.Minute)
		wantFollowed(t, all, []string{"example.io/v1 Widget", "other.io/v1 Gadget"}, []string{"example.io/v1", "other.io/v1"})
		if got := s.asked() - asked; got > 3 {
			t.Errorf("%d discoveries for one installation, want one or two and one to confirm", got)
		}

		// A version replaces another one, and cannot be read at first.
		s.setSlow("v2", true)
		s.serve(nil, served("example.io/v2", kindServed("Widget", true)), served("other.io/v1", kindServed("Gadget", true)))
		s.change("example.io")
		after(10 * time.Second)
		wantFollowed(t, all, []string{"example.io/v1 Widget", "example.io/v2 Widget", "other.io/v1 Gadget"}, []string{"example.io/v1", "other.io/v1"})
		s.setSlow("v2", false)
		after(10 * time.Second)
		wantFollowed(t, all, []string{"example.io/v2 Widget", "other.io/v1 Gadget"}, []string{"example.io/v2", "other.io/v1"})

		// A kind is removed.
		s.serve(nil, served("example.io/v2", kindServed("Widget", true)))
		s.change("other.io")
		after(3*time.Second + discoveryConfirmDelay)
		wantFollowed(t, all, []string{"example.io/v2 Widget"}, []string{"example.io/v2"})
		asked = s.asked()
		after(24 * time.Hour)
		if got := s.asked() - asked; got > 1 {
			t.Errorf("%d discoveries in a day in which nothing changed, want none but the one to confirm", got)
		}
	})
}

// isUncertain reports whether the cluster may serve further kinds of the group other.io.
func isUncertain(all *watches) bool {
	b := bundleAt("1")
	b.Status.Resources = append(b.Status.Resources, entryOf("other.io", "Any"))
	_, unreadable, err := all.gather(b)
	return err == nil && slices.Contains(unreadable, schema.GroupKind{Group: "other.io", Kind: "Any"})
}

func TestDiscoveryKeepsUnansweredGroups(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &kindServer{}
		s.serve(nil, served("example.io/v1", kindServed("Widget", true)), served("other.io/v1", kindServed("Gadget", true)))
		all := startDiscovery(t, s)
		after(time.Second)
		broken := &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{{Group: "other.io", Version: "v1"}: errPassing}}
		for name, answer := range map[string]struct {
			err   error
			lists []*metav1.APIResourceList
		}{
			"a group that fails": {broken, []*metav1.APIResourceList{served("example.io/v1", kindServed("Widget", true))}},
			"all that fails":     {errPassing, nil},
			"an empty answer":    {nil, nil},
		} {
			s.serve(answer.err, answer.lists...)
			s.change("other.io")
			after(time.Minute)
			kinds, _ := followed(t, all)
			if want := []string{"example.io/v1 Widget", "other.io/v1 Gadget"}; !slices.Equal(kinds, want) {
				t.Errorf("%s: followed %v, want %v", name, kinds, want)
			}
			if !isUncertain(all) {
				t.Errorf("%s: the group is not in doubt", name)
			}
		}
		s.serve(nil, served("example.io/v1", kindServed("Widget", true)))
		after(10 * time.Minute)
		wantFollowed(t, all, []string{"example.io/v1 Widget"}, []string{"example.io/v1"})
		if isUncertain(all) {
			t.Error("the group is still in doubt")
		}
	})
}

// entryOf returns an entry of status.resources for an object of a kind.
func entryOf(group, kind string) k8spluginv1alpha1.ResourceHealth {
	return k8spluginv1alpha1.ResourceHealth{Group: group, Version: "v1", Kind: kind, Namespace: "ns", Name: "a", State: "Ready"}
}

// TestUncertainKindsAreUnreadable starts a monitor while a group does not respond: the bundle must keep its entries for the
// objects of the group.
func TestUncertainKindsAreUnreadable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &kindServer{}
		s.serve(&discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{{Group: "other.io", Version: "v1"}: errPassing}},
			served("example.io/v1", kindServed("Widget", true)))
		all := startDiscovery(t, s)
		if err := all.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		after(2 * discoveryConfirmDelay)
		b := bundleAt("1")
		b.Status.Resources = append(b.Status.Resources, entryOf("other.io", "Gadget"), entryOf("gone.io", "Thing"), entryOf("example.io", "Widget"))
		if diff := cmp.Diff([]schema.GroupKind{{Group: "other.io", Kind: "Gadget"}}, unreadableOf(t, all, b)); diff != "" {
			t.Errorf("unreadable kinds differ (-want +got):\n%s", diff)
		}
	})
}

// TestFirstDiscoveryIsConfirmed starts a monitor together with an API server that does not serve all of its kinds at first, and
// with one that has lost a kind while no monitor ran.
func TestFirstDiscoveryIsConfirmed(t *testing.T) {
	t.Parallel()
	gadget := []schema.GroupKind{{Group: "other.io", Kind: "Gadget"}}
	for name, tc := range map[string]struct {
		then         []*metav1.APIResourceList
		wantVersions []string
	}{
		"served a moment later": {then: []*metav1.APIResourceList{served("other.io/v1", kindServed("Gadget", true))}, wantVersions: []string{"example.io/v1", "other.io/v1"}},
		"gone":                  {wantVersions: []string{"example.io/v1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				widget := served("example.io/v1", kindServed("Widget", true))
				s := &kindServer{}
				s.serve(nil, widget)
				all := startDiscovery(t, s)
				var looks atomic.Int32
				b := withBundle(t, all, func(*k8spluginv1alpha1.ResourceBundleState) { looks.Add(1) }, entryOf("other.io", "Gadget"), entryOf("example.io", "Widget"))
				if diff := cmp.Diff(gadget, unreadableOf(t, all, b)); diff != "" {
					t.Errorf("unreadable kinds differ at the start (-want +got):\n%s", diff)
				}
				after(discoveryConfirmDelay / 2)
				s.serve(nil, append(tc.then, widget)...)
				if diff := cmp.Diff(gadget, unreadableOf(t, all, b)); diff != "" {
					t.Errorf("unreadable kinds differ after a while (-want +got):\n%s", diff)
				}
				after(discoveryConfirmDelay)
				if got := unreadableOf(t, all, b); len(got) > 0 || looks.Load() == 0 {
					t.Errorf("unreadable: %v after %d looks, want none after one: the discovery is confirmed", got, looks.Load())
				}
				if _, versions := followed(t, all); !slices.Equal(versions, tc.wantVersions) {
					t.Errorf("objects of %v, want %v", versions, tc.wantVersions)
				}
				asked := s.asked()
				after(24 * time.Hour)
				if got := s.asked() - asked; got > 0 {
					t.Errorf("%d discoveries in a day in which nothing changed, want none", got)
				}
			})
		})
	}
}

// TestStartWithoutDiscovery starts a monitor while the API server does not answer discovery at all.
func TestStartWithoutDiscovery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &kindServer{}
		s.serve(errPassing)
		all := startDiscovery(t, s)
		after(time.Hour)
		s.serve(nil, served("example.io/v1", kindServed("Widget", true)))
		after(discoveryConfirmDelay + time.Second)
		wantFollowed(t, all, []string{"example.io/v1 Widget"}, []string{"example.io/v1"})
	})
}

// TestSlowDiscoveryIsConfirmed starts a monitor whose first discovery takes longer than the time after which it is confirmed. Soon after it,
// kinds change.
func TestSlowDiscoveryIsConfirmed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &kindServer{}
		s.serve(nil, served("example.io/v1", kindServed("Widget", true)))
		all := watchesOf(s, s)
		followKinds(all, Options{LabelKeys: []string{testKey}}, func() ([]*metav1.APIResourceList, error) {
			if s.asked() == 0 {
				<-time.After(2 * discoveryConfirmDelay)
			}
			return s.preferred()
		})
		runWatches(t, all)
		after(2*discoveryConfirmDelay + discoveryConfirmDelay/2)
		if s.asked() < 2 || !isUncertain(all) {
			t.Errorf("%d discoveries, want two, and that the second does not confirm the first, which was answered a moment before", s.asked())
		}
		after(discoveryConfirmDelay)
		if isUncertain(all) {
			t.Error("the discovery is not confirmed")
		}
	})
}

// unreadableOf returns the kinds whose objects in a bundle are unknown.
func unreadableOf(t *testing.T, all *watches, b *k8spluginv1alpha1.ResourceBundleState) []schema.GroupKind {
	t.Helper()
	_, kinds, err := all.gather(b)
	if err != nil {
		t.Fatal(err)
	}
	return kinds
}
