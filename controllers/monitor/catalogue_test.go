package monitor

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

// kindServer plays an API server whose kinds change. Each kind has one object, "a", in the bundle "one".
type kindServer struct {
	mu    sync.Mutex
	lists []*metav1.APIResourceList
	err   error
	// slow are the resources that cannot be read for now.
	slow map[string]bool
	asks int
}

func (s *kindServer) serve(err error, lists ...*metav1.APIResourceList) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists, s.err = lists, err
}

func (s *kindServer) preferred() ([]*metav1.APIResourceList, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asks++
	return s.lists, s.err
}

// setSlow says whether the resources of a version cannot be read.
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

// asked is how often the kinds were discovered.
func (s *kindServer) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asks
}

func (s *kindServer) ServerGroups() (*metav1.APIGroupList, error) { return &metav1.APIGroupList{}, nil }

func (s *kindServer) ServerResourcesForGroupVersion(gv string) (*metav1.APIResourceList, error) {
	parsed, err := schema.ParseGroupVersion(gv)
	return served(gv, kindServed("Widget", true), kindServed("Gadget", true), kindServed(parsed.Version, true)), err
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
		return nil, errors.New("lists cannot be streamed")
	}
	return apiwatch.NewFakeWithChanSize(10, false), nil
}

// startCatalogue follows the server's kinds until the test ends.
func startCatalogue(t *testing.T, s *kindServer) (*watches, *catalogue) {
	t.Helper()
	c := newCatalogue(Options{LabelKeys: []string{testKey}}, s.preferred)
	all := watchesOf(c, s, s)
	runWatches(t, all)
	return all, c
}

// watchesOf are the watches of a catalogue's kinds.
func watchesOf(c *catalogue, kinds kindFinder, objects reader) *watches {
	return &watches{
		membership: membership{keys: []string{testKey}}, kinds: c, ledger: newLedger(), logger: logr.Discard(),
		stops: map[*watch]context.CancelFunc{}, synced: make(chan struct{}),
		sourceOf: func(p place) source { return source{place: p, kinds: kinds, reader: objects} },
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

// followed are the kinds that are watched, and the versions in which a bundle has objects.
func followed(t *testing.T, all *watches) (kinds, versions []string) {
	t.Helper()
	synctest.Wait()
	for _, w := range all.snapshot() {
		kinds = append(kinds, w.source.kind.GroupVersion().String()+" "+w.source.kind.Kind)
	}
	b := bundleAt("1")
	b.Name = "one"
	members, err := all.members(b)
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

func TestCatalogueFollowsKinds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &kindServer{slow: map[string]bool{}}
		s.serve(nil, served("example.io/v1", kindServed("Widget", true)))
		all, c := startCatalogue(t, s)
		if err := all.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantFollowed(t, all, []string{"example.io/v1 Widget"}, []string{"example.io/v1"})

		// Many kinds come within a moment.
		asked := s.asked()
		s.serve(nil, served("example.io/v1", kindServed("Widget", true)), served("other.io/v1", kindServed("Gadget", true)))
		for range 50 {
			c.notice()
			after(10 * time.Millisecond)
		}
		after(time.Minute)
		wantFollowed(t, all, []string{"example.io/v1 Widget", "other.io/v1 Gadget"}, []string{"example.io/v1", "other.io/v1"})
		if got := s.asked() - asked; got > 3 {
			t.Errorf("%d discoveries for one installation, want one or two and one to confirm", got)
		}

		// A version takes the place of another one, and cannot be read at first.
		s.setSlow("v2", true)
		s.serve(nil, served("example.io/v2", kindServed("Widget", true)), served("other.io/v1", kindServed("Gadget", true)))
		c.notice()
		after(10 * time.Second)
		wantFollowed(t, all, []string{"example.io/v1 Widget", "example.io/v2 Widget", "other.io/v1 Gadget"}, []string{"example.io/v1", "other.io/v1"})
		s.setSlow("v2", false)
		after(10 * time.Second)
		wantFollowed(t, all, []string{"example.io/v2 Widget", "other.io/v1 Gadget"}, []string{"example.io/v2", "other.io/v1"})

		// A kind is removed.
		s.serve(nil, served("example.io/v2", kindServed("Widget", true)))
		c.notice()
		after(2*time.Second + kindsConfirm)
		wantFollowed(t, all, []string{"example.io/v2 Widget"}, []string{"example.io/v2"})
		asked = s.asked()
		after(24 * time.Hour)
		if got := s.asked() - asked; got > 1 {
			t.Errorf("%d discoveries in a day in which nothing changed, want none but the one to confirm", got)
		}
	})
}

func TestCatalogueKeepsWhatItCannotDiscover(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &kindServer{}
		s.serve(nil, served("example.io/v1", kindServed("Widget", true)), served("other.io/v1", kindServed("Gadget", true)))
		all, c := startCatalogue(t, s)
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
			c.notice()
			after(time.Minute)
			kinds, _ := followed(t, all)
			if want := []string{"example.io/v1 Widget", "other.io/v1 Gadget"}; !slices.Equal(kinds, want) {
				t.Errorf("%s: followed %v, want %v", name, kinds, want)
			}
			if !c.inDoubt("other.io") {
				t.Errorf("%s: the group is not in doubt", name)
			}
		}
		s.serve(nil, served("example.io/v1", kindServed("Widget", true)))
		after(10 * time.Minute)
		wantFollowed(t, all, []string{"example.io/v1 Widget"}, []string{"example.io/v1"})
		if c.inDoubt("other.io") {
			t.Error("the group is still in doubt")
		}
	})
}

// entryOf is an entry of status.resources of some object of a kind.
func entryOf(group, kind string) k8spluginv1alpha1.ResourceHealth {
	return k8spluginv1alpha1.ResourceHealth{Group: group, Version: "v1", Kind: kind, Namespace: "ns", Name: "a", State: "Ready"}
}

// TestKindsInDoubtStay starts a monitor while a group gives no answer: what the
// bundle said of the group's objects must not be taken back.
func TestKindsInDoubtStay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &kindServer{}
		s.serve(&discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{{Group: "other.io", Version: "v1"}: errPassing}},
			served("example.io/v1", kindServed("Widget", true)))
		all, _ := startCatalogue(t, s)
		if err := all.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		b := bundleAt("1")
		b.Status.Resources = append(b.Status.Resources, entryOf("other.io", "Gadget"), entryOf("gone.io", "Thing"), entryOf("example.io", "Widget"))
		if diff := cmp.Diff([]schema.GroupKind{{Group: "other.io", Kind: "Gadget"}}, all.unreadable(b)); diff != "" {
			t.Errorf("unreadable kinds differ (-want +got):\n%s", diff)
		}
	})
}
