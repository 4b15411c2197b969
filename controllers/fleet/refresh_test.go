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
	"github.com/healthscope/healthscope/controllers/observe"
	"github.com/healthscope/healthscope/healthscope"
)

// mood is a rule for Deployments whose result can be changed.
type mood struct{ bad atomic.Bool }

func (*mood) Covers(string, string) bool { return true }

func (m *mood) Evaluate(map[string]any) (healthscope.Result, string, bool) {
	if m.bad.Load() {
		return healthscope.Result{State: healthscope.Failed, Reason: healthscope.ReasonHealthCheckFailed}, "mood", true
	}
	return healthscope.Result{State: healthscope.Ready}, "mood", true
}

// TestRefreshRejudgesForeignBundles: the hub judges the bundles that other monitors fill, by the current rules.
func TestRefreshRejudgesForeignBundles(t *testing.T) {
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
	rule := &mood{}
	notified := make(chan types.NamespacedName, 100)
	conn := silent(clock.RealClock{})
	conn.store = newBundleStore("edge01", []string{""}, rule, func(name types.NamespacedName) { notified <- name })
	informer := conn.newInformer(bundleRules, "ResourceBundleStates", "", conn.store[""], source)
	conn.bundles = []*observe.Informer{informer}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { informer.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	late := time.After(30 * time.Second)
	eventually(t, "the bundle has been read", func() bool { return informer.State().Status == observe.Ready })
	for _, want := range []healthscope.State{healthscope.Ready, healthscope.Failed, healthscope.Ready} {
		if got := conn.store.get(types.NamespacedName{Namespace: "shop", Name: "theirs"}).results[0].State; got != want {
			t.Fatalf("want %s, got %s", want, got)
		}
		rule.bad.Store(want == healthscope.Ready)
		conn.reread()
		select {
		case <-notified:
		case <-late:
			t.Fatalf("it is not notified that the bundle is not %s any more", want)
		}
	}
}

// TestRefreshDoesNotRereadOwnBundles: our monitors have the rules themselves. The bundles that they fill are not read again.
func TestRefreshDoesNotRereadOwnBundles(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		own, want bool
	}{"ours": {true, false}, "theirs": {false, true}} {
		b := filled(name, "web")
		if !c.own {
			b.Status.Summary, b.Status.Resources = nil, nil
		}
		s := newStore("edge01")
		if err := s[""].Add(b); err != nil {
			t.Fatal(err)
		}
		if got := s.hasForeign(); got != c.want {
			t.Errorf("%s: read again: %t", name, got)
		}
	}
}
