package fleet

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope"
)

// mood is a rule for Deployments that can be changed.
type mood struct{ bad atomic.Bool }

func (*mood) Covers(string, string) bool { return true }

func (m *mood) Evaluate(map[string]any) (healthscope.Result, string, bool) {
	if m.bad.Load() {
		return healthscope.Result{State: healthscope.Failed, Reason: healthscope.ReasonHealthCheckFailed}, "mood", true
	}
	return healthscope.Result{State: healthscope.Ready}, "mood", true
}

// Bundles that other monitors fill are judged by the hub, by the rules that are in force.
func TestOtherRulesReachBundlesOfOtherMonitors(t *testing.T) {
	t.Parallel()
	theirs := filled("theirs", "web")
	theirs.Status.Summary, theirs.Status.Resources = nil, nil
	source := &toolscache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			list := &k8spluginv1alpha1.ResourceBundleStateList{Items: []k8spluginv1alpha1.ResourceBundleState{*theirs.DeepCopy()}}
			list.ResourceVersion = "7"
			return list, nil
		},
		WatchFuncWithContext: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
			if o.SendInitialEvents != nil && *o.SendInitialEvents {
				return nil, apierrors.NewBadRequest("the API server is older than that")
			}
			return watch.NewFake(), nil
		},
	}
	rule, v := &mood{}, openView("edge01")
	conn := &connection{pulse: newPulse(false, 10*time.Second, clock.RealClock{}, func() {}), rules: v.rules}
	informer := conn.newInformer(source, &k8spluginv1alpha1.ResourceBundleState{})
	if err := informer.SetTransform(hold("edge01", rule)); err != nil {
		t.Fatal(err)
	}
	told := make(chan types.NamespacedName, 100)
	if err := conn.watchBundles(func(name types.NamespacedName) { told <- name }); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { informer.RunWithContext(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	late := time.After(30 * time.Second)
	for _, want := range []healthscope.State{healthscope.Ready, healthscope.Failed, healthscope.Ready} {
		select {
		case <-told:
		case <-late:
			t.Fatalf("nobody is told that the bundle is %s", want)
		}
		if got := conn.get(types.NamespacedName{Namespace: "shop", Name: "theirs"}).contents.Results[0].State; got != want {
			t.Fatalf("want %s, got %s", want, got)
		}
		rule.bad.Store(want == healthscope.Ready)
		v.Refresh()
	}
}

// Our monitors know the rules themselves: what they have filled is not read again.
func TestOtherRulesLeaveOurBundlesToOurMonitors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		own, want bool
	}{"ours": {true, false}, "theirs": {false, true}} {
		b := filled(name, "web")
		if !c.own {
			b.Status.Summary, b.Status.Resources = nil, nil
		}
		conn := &connection{}
		conn.stores = append(conn.stores, toolscache.NewSharedIndexInformer(&toolscache.ListWatch{}, b, 0, toolscache.Indexers{}))
		if err := conn.stores[0].GetStore().Add(heldOf("edge01", b, nil)); err != nil {
			t.Fatal(err)
		}
		if got := (&watched{foreign: conn.holdsForeign}).outdated(); got != c.want {
			t.Errorf("%s: read again: %t", name, got)
		}
	}
}
