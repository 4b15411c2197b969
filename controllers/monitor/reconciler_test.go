package monitor

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/controllers/pruning"
	"github.com/healthscope/healthscope/healthscope/bundle"
)

// rig is a reconciler with one bundle and a client that fails on demand. It tests
// what the suite, which uses a real API server, cannot: injected errors, a cache
// that lags, and exact times.
type rig struct {
	*reconciler
	t       *testing.T
	api     client.Client
	clock   *clocktesting.FakePassiveClock
	objects []*unstructured.Unstructured
	// stale, if set, is the bundle that the cache returns.
	stale *k8spluginv1alpha1.ResourceBundleState
	// writeErr, if set, is the error of a write.
	writeErr error
	// refuseAbove, if set, limits writeErr to writes of more bytes of status.
	refuseAbove int
	// prune makes the API server prune the fields that other projects' CRDs do not have.
	prune bool
	// dropStatus makes the API server store no status.
	dropStatus bool
	// onWrite, if set, is called before a write.
	onWrite func(types.NamespacedName)
	writes  int
	// marks are the written marks. markErr is the error of a write of a mark.
	marks   []k8spluginv1alpha1.OutOfDate
	markErr error
	// mu guards writes in tests with several workers.
	mu sync.Mutex
	// unreadable are the kinds that cannot be read, woken counts the calls of wakeAll, and events records the events.
	unreadable []schema.GroupKind
	woken      int
	events     *events.FakeRecorder
}

func newRig(t *testing.T) *rig {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := k8spluginv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	g := &rig{t: t, events: events.NewFakeRecorder(100), clock: clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0))}
	g.api = fake.NewClientBuilder().WithScheme(scheme).
		WithObjects(&k8spluginv1alpha1.ResourceBundleState{ObjectMeta: metav1.ObjectMeta{Namespace: sink.Namespace, Name: sink.Name, UID: "1"}}).
		WithStatusSubresource(&k8spluginv1alpha1.ResourceBundleState{}).
		WithIndex(&k8spluginv1alpha1.ResourceBundleState{}, metav1.ObjectNameField, func(o client.Object) []string { return []string{o.GetName()} }).
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				if b, ok := obj.(*k8spluginv1alpha1.ResourceBundleState); ok && g.stale != nil {
					g.stale.DeepCopyInto(b)
					return nil
				}
				return c.Get(ctx, key, obj, opts...)
			},
		}).Build()
	g.reconciler = &reconciler{
		bundles: g.api,
		status:  g,
		live:    g.api,
		gather: func(*k8spluginv1alpha1.ResourceBundleState) ([]*unstructured.Unstructured, []schema.GroupKind, error) {
			return g.objects, g.unreadable, nil
		},
		reads: func(_ *k8spluginv1alpha1.ResourceBundleState, e k8spluginv1alpha1.ResourceHealth) bool {
			return e.Kind != "Secret" && !slices.Contains(g.unreadable, schema.GroupKind{Group: e.Group, Kind: e.Kind})
		},
		wakeAll:     func(context.Context) { g.woken++ },
		writeStates: newWriteStates(),
		guard:       pruning.NewGuard("ResourceBundleStates"),
		recorder:    g.events,
		clock:       g.clock,
		options:     bundle.Options{HardLimit: bundle.DefaultHardLimit},
	}
	return g
}

// put implements statusWriter.
func (g *rig) put(ctx context.Context, b *k8spluginv1alpha1.ResourceBundleState) error {
	g.mu.Lock()
	g.writes++
	g.mu.Unlock()
	if _, ok := ctx.Deadline(); !ok {
		g.t.Error("a write has no deadline")
	}
	if g.onWrite != nil {
		g.onWrite(nameOfBundle(b))
	}
	if g.writeErr != nil && (g.refuseAbove == 0 || sizeOf(&b.Status) > g.refuseAbove) {
		return g.writeErr
	}
	stored := b.DeepCopy()
	if g.prune {
		stored.Status.Summary, stored.Status.Resources = nil, nil
	}
	if g.dropStatus {
		return nil // A write that changes nothing does not change the resourceVersion.
	}
	err := g.api.Status().Update(ctx, stored, fieldOwner)
	b.ObjectMeta = stored.ObjectMeta
	return err
}

// mark implements statusWriter.
func (g *rig) mark(_ context.Context, _ *k8spluginv1alpha1.ResourceBundleState, o k8spluginv1alpha1.OutOfDate) error {
	g.marks = append(g.marks, o)
	return g.markErr
}

// change replaces the objects of the bundle, as watches would.
func (g *rig) change(objects ...*unstructured.Unstructured) {
	g.objects = objects
	g.writeStates.touch(sink)
}

func (g *rig) reconcile() ctrl.Result {
	g.t.Helper()
	result, err := g.Reconcile(g.t.Context(), ctrl.Request{NamespacedName: sink})
	if err != nil {
		g.t.Fatalf("Reconcile: %v", err)
	}
	return result
}

// stored returns the bundle in the API server.
func (g *rig) stored() *k8spluginv1alpha1.ResourceBundleState {
	g.t.Helper()
	b := &k8spluginv1alpha1.ResourceBundleState{}
	stale := g.stale
	g.stale = nil
	defer func() { g.stale = stale }()
	if err := g.api.Get(g.t.Context(), sink, b); err != nil {
		g.t.Fatalf("Get: %v", err)
	}
	return b
}

// wantWrites checks the number of writes since the last call.
func (g *rig) wantWrites(want int) {
	g.t.Helper()
	if g.writes != want {
		g.t.Errorf("%d writes, want %d", g.writes, want)
	}
	g.writes = 0
}

func TestReconcileWritesOnlyWhatDiffers(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.change(object("ns", "a", "1-sink", "1"))
	if result := g.reconcile(); result.RequeueAfter != 0 {
		t.Errorf("a first change waits %s, want none", result.RequeueAfter)
	}
	g.wantWrites(1)
	if got := g.stored().Status.ResourceCount; got != 1 {
		t.Errorf("resourceCount is %d, want 1", got)
	}

	g.clock.SetTime(g.clock.Now().Add(time.Hour))
	g.reconcile()
	g.change(object("ns", "a", "1-sink", "1"))
	g.reconcile()
	g.writeStates = newWriteStates() // As after a restart.
	g.reconcile()
	g.wantWrites(0)

	g.onWrite = func(types.NamespacedName) { // An object changes while another change is being written.
		g.onWrite = nil
		g.change(object("ns", "a", "1-sink", "1"))
	}
	g.change()
	g.reconcile()
	g.reconcile()
	g.wantWrites(2)
}

// TestReconcileUsesSelectorWhileCacheLags changes an object before the cache has the write for the previous change.
func TestReconcileUsesSelectorWhileCacheLags(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	b := g.stored()
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"emco/deployment-id": "another-name"}}
	if err := g.api.Update(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	g.stale = g.stored()
	var asked []*metav1.LabelSelector
	g.gather = func(b *k8spluginv1alpha1.ResourceBundleState) ([]*unstructured.Unstructured, []schema.GroupKind, error) {
		asked = append(asked, b.Spec.Selector)
		return g.objects, nil, nil
	}
	for _, name := range []string{"a", "b"} {
		g.change(object("ns", name, "another-name", "1"))
		g.reconcile()
	}
	g.wantWrites(2)
	if len(asked) != 2 || !reflect.DeepEqual(asked[0], asked[1]) {
		t.Errorf("members were asked for by %v, want the bundle's selector both times", asked)
	}
}

func TestReconcilePacesWrites(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	// The changes that follow one event within some milliseconds do not wait.
	var objects []*unstructured.Unstructured
	for i := range writeBurst {
		objects = append(objects, object("ns", fmt.Sprint("object-", i), "1-sink", "1"))
		g.change(objects...)
		if result := g.reconcile(); result.RequeueAfter != 0 {
			t.Errorf("change %d waits %s, want none", i, result.RequeueAfter)
		}
		g.wantWrites(1)
		g.clock.SetTime(g.clock.Now().Add(10 * time.Millisecond))
	}

	g.change(objects[1:]...)
	if got, want := g.reconcile().RequeueAfter, writeInterval-writeBurst*10*time.Millisecond; got != want {
		t.Errorf("after a burst the next write waits %s, want %s", got, want)
	}
	g.wantWrites(0)
	g.clock.SetTime(g.clock.Now().Add(writeInterval))
	g.reconcile()
	g.wantWrites(1)
	if got, want := int(g.stored().Status.ResourceCount), writeBurst-1; got != want {
		t.Errorf("resourceCount is %d, want %d", got, want)
	}

	g.clock.SetTime(g.clock.Now().Add(time.Minute))
	g.change()
	if result := g.reconcile(); result.RequeueAfter != 0 {
		t.Errorf("a lone change waits %s, want none", result.RequeueAfter)
	}
	g.wantWrites(1)
}

func TestReconcileWithACacheThatLags(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.stale = g.stored()
	g.change(object("ns", "a", "1-sink", "1"))
	g.reconcile()
	g.wantWrites(1)
	first := g.stored().Status

	g.clock.SetTime(g.clock.Now().Add(time.Hour))
	g.reconcile()
	g.writeStates.touch(sink)
	g.reconcile()
	g.wantWrites(0)

	g.change(object("ns", "a", "1-sink", "1"), object("ns", "b", "1-sink", "2"))
	g.reconcile()
	g.wantWrites(1)
	second := g.stored().Status
	if second.ResourceCount != 2 || len(second.Resources) != 2 {
		t.Fatalf("status counts %d and lists %d resources, want 2 and 2", second.ResourceCount, len(second.Resources))
	}
	if got, want := second.Resources[0].Since, first.Resources[0].Since; !got.Equal(want) {
		t.Errorf("since of a resource that did not change moved from %s to %s", want, got)
	}
}

func TestReconcileRepairsMalformedStatus(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.reconcile()
	g.wantWrites(1)
	g.stale = g.stored()
	g.stale.ResourceVersion += "0"
	g.stale.Status.Malformed = []string{"podStatuses"}
	g.clock.SetTime(g.clock.Now().Add(time.Second))
	g.writeErr = errors.New("not this time")
	if _, err := g.Reconcile(t.Context(), ctrl.Request{NamespacedName: sink}); err == nil {
		t.Error("a malformed field that is empty otherwise was left as it is")
	}
	g.wantWrites(1)
}

func TestReconcileFailures(t *testing.T) {
	t.Parallel()
	resource := schema.GroupResource{Group: "k8splugin.io", Resource: "resourcebundlestates"}
	cases := map[string]struct {
		reason    string
		err       error
		wantError string
	}{
		"Conflict": {
			reason: "Another client wrote, of which the cache is about to be notified.",
			err:    apierrors.NewConflict(resource, sink.Name, errors.New("modified")),
		},
		"Other": {
			reason:    "Everything else is an error that names the bundle and the cause.",
			err:       apierrors.NewInternalError(errors.New("storage is full")),
			wantError: `cannot write status of bundle "ns/1-sink": Internal error occurred: storage is full`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newRig(t)
			g.change(object("ns", "a", "1-sink", "1"))
			g.writeErr = tc.err
			_, err := g.Reconcile(t.Context(), ctrl.Request{NamespacedName: sink})
			switch {
			case tc.wantError == "" && err != nil:
				t.Errorf("%s Reconcile: %v", tc.reason, err)
			case tc.wantError != "" && (err == nil || !strings.Contains(err.Error(), tc.wantError) || !errors.Is(err, tc.err)):
				t.Errorf("%s Reconcile: %v, want an error that wraps %q and says %q", tc.reason, err, tc.err, tc.wantError)
			}
			g.writeErr = nil
			g.clock.SetTime(g.clock.Now().Add(2 * writeInterval))
			g.reconcile()
			if got := g.stored().Status.ResourceCount; got != 1 {
				t.Errorf("%s resourceCount is %d when writes succeed again, want 1", tc.reason, got)
			}
		})
	}
}

func TestReconcileDoesNotRetryInALoop(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.writeErr = errors.New("request is too large")
	// Objects continue to change, and the queue continues to retry.
	for began := g.clock.Now(); g.clock.Since(began) < time.Hour; g.clock.SetTime(g.clock.Now().Add(time.Second)) {
		g.writeStates.touch(sink)
		if result, err := g.Reconcile(t.Context(), ctrl.Request{NamespacedName: sink}); err == nil && result.RequeueAfter <= 0 {
			t.Fatal("a write that failed is not tried again")
		}
	}
	if g.writes > 130 {
		t.Errorf("%d writes in an hour that all fail, want one each 30 s", g.writes)
	}
	g.writeErr = nil
	g.clock.SetTime(g.clock.Now().Add(maxFailureInterval))
	g.reconcile()
	if g.stored().Status.Summary == nil {
		t.Error("the bundle is not filled when writes succeed again")
	}
}

func TestReconcileDeletedBundle(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.change(object("ns", "a", "1-sink", "1"))
	now := metav1.Now()
	g.stale = g.stored()
	g.stale.DeletionTimestamp = &now
	g.reconcile()
	g.wantWrites(0)

	g.stale = nil
	if err := g.api.Delete(t.Context(), g.stored()); err != nil {
		t.Fatal(err)
	}
	g.reconcile()
	g.wantWrites(0)
	if len(g.writeStates.entries) != 0 {
		t.Errorf("the writeStates still knows %d bundles after the only one is gone", len(g.writeStates.entries))
	}
}
