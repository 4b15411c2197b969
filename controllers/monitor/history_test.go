package monitor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/controllers/pruning"
	"github.com/healthscope/healthscope/healthscope/bundle"
)

// apiServer is a fake API server with one bundle, and its cache.
type apiServer struct {
	client.Reader

	stored *k8spluginv1alpha1.ResourceBundleState
	// cached is the bundle in a cache that lags; nil while it does not lag.
	cached *k8spluginv1alpha1.ResourceBundleState
	writes int
}

func (s *apiServer) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	newest := s.stored
	if s.cached != nil {
		newest = s.cached
	}
	newest.DeepCopyInto(object.(*k8spluginv1alpha1.ResourceBundleState)) //nolint:forcetypeassert // The reconciler reads nothing else.
	return nil
}

func (s *apiServer) put(_ context.Context, b *k8spluginv1alpha1.ResourceBundleState) error {
	if b.ResourceVersion != s.stored.ResourceVersion {
		return apierrors.NewConflict(bundleResource, b.Name, errors.New("it has been changed"))
	}
	version, _ := strconv.Atoi(s.stored.ResourceVersion)
	b.ResourceVersion = strconv.Itoa(version + 1)
	s.stored.ObjectMeta = *b.ObjectMeta.DeepCopy()
	s.stored.Status = *b.Status.DeepCopy()
	s.writes++
	return nil
}

func (s *apiServer) mark(context.Context, *k8spluginv1alpha1.ResourceBundleState, k8spluginv1alpha1.OutOfDate) error {
	return nil
}

// history applies random changes to the objects of two kinds and to a monitor that watches them.
type history struct {
	t     *rapid.T
	api   *apiServer
	clock *clocktesting.FakeClock
	// truth contains the existing objects, by kind and name.
	truth   map[string]map[string]*unstructured.Unstructured
	refused sets.Set[string]
	version int
	monitor *reconciler
	watches *watches
	// since contains the expected entries of status.resources, with their since.
	since map[string]k8spluginv1alpha1.ResourceHealth
}

var historyKinds = []string{"ConfigMap", "Pod"}

// chosen is the label value that the bundle selects. It differs from the bundle's name.
const chosen = "chosen"

func newHistory(t *rapid.T) *history {
	h := &history{
		t: t, api: &apiServer{stored: bundleAt("1")}, clock: clocktesting.NewFakeClock(time.Unix(1_000_000, 0)),
		truth: map[string]map[string]*unstructured.Unstructured{}, refused: sets.New[string](),
		since: map[string]k8spluginv1alpha1.ResourceHealth{},
	}
	h.api.stored.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{testKey: chosen}}
	for _, kind := range historyKinds {
		h.truth[kind] = map[string]*unstructured.Unstructured{}
	}
	h.start()
	return h
}

// start starts a monitor without any state, which reads everything again.
func (h *history) start() {
	h.api.cached = nil
	h.watches = &watches{
		membership: membership{keys: []string{testKey}}, writeStates: newWriteStates(), clock: h.clock,
		sourceOf: func(p place) source { return source{place: p} },
	}
	for _, kind := range historyKinds {
		w := h.watches.add(place{kind: schema.GroupVersionKind{Version: "v1", Kind: kind}, key: testKey})
		w.store.changed = func(touched sets.Set[selectorKey]) {
			if touched.Has(inNamespace(chosen)) {
				h.watches.writeStates.touch(sink)
			}
		}
		w.wake = func() { h.watches.writeStates.touch(sink) }
		if h.refused.Has(kind) {
			w.reportFailure(h.clock, errForbidden, false)
		} else {
			h.relist(w)
		}
	}
	h.monitor = &reconciler{
		bundles: h.api, status: h.api, gather: h.watches.gather,
		wakeAll: func(context.Context) {}, writeStates: h.watches.writeStates, guard: pruning.NewGuard("bundles"),
		recorder: events.NewFakeRecorder(100), clock: h.clock,
	}
}

func (h *history) watch(kind string) *watch {
	return h.watches.current[slices.Index(historyKinds, kind)]
}

// relist replaces the store of a watch with the current objects.
func (h *history) relist(w *watch) {
	var list []any
	for _, object := range h.truth[w.source.kind.Kind] {
		list = append(list, object.DeepCopy())
	}
	if err := w.store.Replace(list, ""); err != nil {
		h.t.Fatal(err)
	}
	w.reportReady(h.clock)
	w.changed(w.informer.State())
}

// newObject returns an object of a kind in a random state, which may be in the bundle.
func (h *history) newObject(kind, name, uid string) *unstructured.Unstructured {
	h.version++
	o := object("ns", name, rapid.SampledFrom([]string{chosen, chosen, chosen, sink.Name}).Draw(h.t, "label"), strconv.Itoa(h.version))
	o.SetKind(kind)
	o.SetUID(types.UID(uid))
	if kind == "Pod" {
		o.Object["status"] = map[string]any{"phase": rapid.SampledFrom([]string{"Pending", "Failed", "Succeeded"}).Draw(h.t, "phase")}
	}
	return o
}

// step makes one random change.
func (h *history) step() {
	kind := rapid.SampledFrom(historyKinds).Draw(h.t, "kind")
	w := h.watch(kind)
	switch rapid.SampledFrom([]string{"object", "object", "object", "object", "relist", "refuse", "allow", "restart", "pass", "lag", "catch up"}).Draw(h.t, "step") {
	case "object":
		h.changeObject(kind)
	case "relist":
		if !h.refused.Has(kind) {
			h.relist(w)
		}
	case "refuse":
		h.refused.Insert(kind)
		w.reportFailure(h.clock, errForbidden, rapid.Bool().Draw(h.t, "lasts"))
	case "allow":
		h.refused.Delete(kind)
		h.relist(w)
	case "restart":
		h.start()
	case "lag":
		h.api.cached = h.api.stored.DeepCopy()
	case "catch up":
		h.api.cached = nil
	case "pass":
		h.clock.SetTime(h.clock.Now().Add(time.Duration(rapid.IntRange(0, 5000).Draw(h.t, "ms")) * time.Millisecond))
	}
}

// changeObject adds, updates, relabels, deletes or replaces an object. A monitor whose watch misses a change gets it from the
// next list.
func (h *history) changeObject(kind string) {
	name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(h.t, "name")
	objects, contents := h.truth[kind], h.watch(kind).store
	known := objects[name]
	heard := !h.refused.Has(kind) && rapid.IntRange(0, 3).Draw(h.t, "heard") > 0
	var err error
	switch rapid.SampledFrom([]string{"put", "put", "delete", "recreate"}).Draw(h.t, "change") {
	case "delete":
		delete(objects, name)
		if heard && known != nil {
			err = contents.Delete(known.DeepCopy())
		}
	case "put":
		uid := fmt.Sprint("uid-", h.version)
		if known != nil {
			uid = string(known.GetUID())
		}
		objects[name] = h.newObject(kind, name, uid)
	case "recreate":
		objects[name] = h.newObject(kind, name, fmt.Sprint("uid-", h.version))
	}
	if heard && objects[name] != nil {
		err = contents.Update(objects[name].DeepCopy())
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

// reconcile reconciles the bundle, and checks the written status.
func (h *history) reconcile() {
	writes := h.api.writes
	for range 3 {
		result, err := h.monitor.Reconcile(h.t.Context(), ctrl.Request{NamespacedName: sink})
		if err != nil {
			h.t.Fatal(err)
		}
		if result.RequeueAfter == 0 {
			break
		}
		h.clock.SetTime(h.clock.Now().Add(result.RequeueAfter))
	}
	if h.api.writes == writes {
		return
	}
	now := h.clock.Now().Truncate(time.Second)
	listed := map[string]k8spluginv1alpha1.ResourceHealth{}
	for _, r := range h.api.stored.Status.Resources {
		key := r.Kind + "/" + r.Name
		listed[key] = r
		want := now
		if before, ok := h.since[key]; ok && before.UID == r.UID && before.State == r.State {
			want = before.Since.Time
		}
		if !r.Since.Equal(&metav1.Time{Time: want}) {
			h.t.Fatalf("%s is %s since %s, want %s", key, r.State, r.Since, want)
		}
	}
	h.since = listed
}

// inBundle returns the current objects of the bundle.
func (h *history) inBundle() []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	for _, kind := range historyKinds {
		for o := range maps.Values(h.truth[kind]) {
			if o.GetLabels()[testKey] == chosen {
				objects = append(objects, o)
			}
		}
	}
	return objects
}

// TestBundleConvergesAfterAnyHistory applies a random history. After it, every kind can be read and is read once more. The test
// compares the bundle with one that is built only from the objects and the last status of the bundle.
func TestBundleConvergesAfterAnyHistory(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t)
		h.reconcile()
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			h.step()
			h.reconcile()
		}
		h.api.cached = nil
		before := h.api.stored.Status.DeepCopy()
		for _, kind := range historyKinds {
			h.refused.Delete(kind)
			h.relist(h.watch(kind))
		}
		h.reconcile()
		want := bundle.Build(h.inBundle(), before, h.clock.Now(), bundle.Options{})
		if got := h.api.stored.Status; !bundle.Equal(&want, &got) {
			t.Fatalf("the bundle differs from the truth (-want +got):\n%s", cmp.Diff(want, got))
		}
		writes := h.api.writes
		h.start()
		h.reconcile()
		if h.api.writes != writes {
			t.Fatal("a restart at the end leads to a write")
		}
	})
}
