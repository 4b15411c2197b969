package fleet

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/healthscope/healthscope/healthscope"
)

// noCatalogue gives no answer.
func noCatalogue() *catalogue {
	return newCatalogue(func() *served { return &served{asked: time.Now(), answered: time.Now(), failed: true} })
}

// readKind returns an Objects and its watch of a kind that has been read, and in which there is one object that is Ready.
// told counts what is told of the cluster from then on.
func readKind(gvk schema.GroupVersionKind, name types.NamespacedName) (o *Objects, w *kindWatch, told *int) {
	told = new(int)
	o, w, _ = oneKind(gvk)
	o.notify = func(Kind, types.NamespacedName) { *told++ }
	o.users[w.Kind] = 1
	w.results[name] = healthscope.Result{State: healthscope.Ready, UID: "u"}
	w.settle()
	return o, w, told
}

// What is referred to directly is told as far as its cluster is seen, keeps its last state while it is not, and until it has been read anew.
func TestObjectsOfALostCluster(t *testing.T) {
	t.Parallel()
	gvk := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	name := types.NamespacedName{Namespace: "shop", Name: "web"}
	o, w, told := readKind(gvk, name)
	look := func(want healthscope.State, reason healthscope.Reason, last healthscope.State, settling bool) {
		t.Helper()
		got := o.Get("local", gvk, name)
		if got.Result.State != want || got.Result.Reason != reason || got.LastState != last || got.Settling != settling {
			t.Errorf("got %+v", got)
		}
	}
	state := func(r Reachability) { o.setState(ClusterState{Name: "local", Reachability: r, Since: time.Now()}) }
	look(healthscope.Ready, "", "", false)
	state(MonitorStale)
	look(healthscope.Ready, "", "", false)
	state(Unreachable)
	look(healthscope.Unknown, healthscope.ReasonClusterUnreachable, healthscope.Ready, false)
	if *told != 1 {
		t.Errorf("the loss was told %d times", *told)
	}

	o.ctx = t.Context()
	o.clusters["local"].client, o.clusters["local"].catalogue = struct{ dynamic.Interface }{}, noCatalogue()
	state(Connected)
	next := o.kinds[w.place]
	if next == w {
		t.Fatal("a kind is not read anew when its cluster is back")
	}
	look(healthscope.Unknown, healthscope.ReasonClusterUnreachable, healthscope.Ready, false)
	next.settle()
	look(healthscope.NotPresent, healthscope.ReasonNotFound, "", false)

	state(Unreachable)
	look(healthscope.Unknown, healthscope.ReasonClusterUnreachable, "", false)

	state(Connecting)
	look(healthscope.Unknown, healthscope.ReasonNotSynced, "", true)
	o.Detach("local")
	look(healthscope.Unknown, healthscope.ReasonUnknownCluster, "", false)
	if len(o.kinds) != 0 {
		t.Error("a cluster that is forgotten is watched")
	}
}

// TestWhatWasKnownBeforeIsNotToldForEver has a cluster come back whose kinds cannot be asked for: that what was known
// before is not told any more must be told, because nobody asks by himself.
func TestWhatWasKnownBeforeIsNotToldForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gvk := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
		name := types.NamespacedName{Namespace: "shop", Name: "web"}
		o, _, told := readKind(gvk, name)
		ctx, cancel := context.WithCancel(t.Context())
		o.ctx = ctx
		o.clusters["local"].client, o.clusters["local"].catalogue = struct{ dynamic.Interface }{}, noCatalogue()
		state := func(r Reachability) { o.setState(ClusterState{Name: "local", Reachability: r, Since: time.Now()}) }
		state(Unreachable)
		state(Connected)
		synctest.Wait()
		before := *told
		for began := time.Now(); time.Since(began) <= SettleTime; {
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
		}
		synctest.Wait()
		if got := o.Get("local", gvk, name); *told != before+1 || got.Result.Reason != healthscope.ReasonNotSynced {
			t.Errorf("told %d times that %+v", *told-before, got)
		}
		cancel()
	})
}
