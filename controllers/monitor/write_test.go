package monitor

import (
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

// errNoSubresource is the response of an API server to a write of a status that the CRD does not serve, and to a write of a
// bundle that does not exist.
var errNoSubresource = apierrors.NewNotFound(schema.GroupResource{Group: "k8splugin.io", Resource: "resourcebundlestates"}, sink.Name)

// expectSuspended reconciles for ten minutes with an API server that stores no status,
// and checks the readiness and the number of writes.
func (g *rig) expectSuspended(most int, problem string) {
	g.t.Helper()
	for began := g.clock.Now(); g.clock.Since(began) < 10*time.Minute; g.pass(time.Second) {
		if result := g.reconcile(); result.RequeueAfter <= 0 {
			g.t.Fatal("a bundle whose status is pruned is not looked at again")
		}
	}
	if g.writes < 15 || g.writes > most {
		g.t.Errorf("%d writes in ten minutes, want about one each 30 seconds", g.writes)
	}
	if err := g.guard.Ready(); err == nil || !strings.Contains(err.Error(), problem) {
		g.t.Errorf("readiness says %v, want %q", err, problem)
	}
}

// expectRecovered checks that the status is written within a minute after the CRD is correct again.
func (g *rig) expectRecovered() {
	g.t.Helper()
	for began := g.clock.Now(); g.clock.Since(began) < time.Minute; g.pass(time.Second) {
		g.reconcile()
	}
	if err := g.guard.Ready(); err != nil || g.stored().Status.Summary == nil {
		g.t.Errorf("with the right CRD readiness says %v and the summary is %v", err, g.stored().Status.Summary)
	}
}

func TestReconcileStopsWhileStatusIsPruned(t *testing.T) {
	t.Parallel()
	for problem, tc := range map[string]struct {
		writeErr   error
		dropStatus bool
		most       int
	}{
		"no status subresource": {writeErr: errNoSubresource, most: 30},
		"the CRD prunes status": {dropStatus: true, most: 21},
	} {
		g := newRig(t)
		g.change(object("ns", "a", "1-sink", "1"))
		g.writeErr, g.dropStatus = tc.writeErr, tc.dropStatus
		g.expectSuspended(tc.most, problem)
		g.writeErr, g.dropStatus = nil, false
		g.expectRecovered()
	}
}

// TestReconcileWithACacheThatLagsDoesNotTakeAnAnswerWithoutStatusForWritten has a cache that receives the write only after the
// bundle has been reconciled again.
func TestReconcileWithACacheThatLagsDoesNotTakeAnAnswerWithoutStatusForWritten(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.change(object("ns", "a", "1-sink", "1"))
	g.stale, g.dropStatus = g.stored(), true
	g.reconcile()
	g.pass(time.Second)
	g.reconcile()
	g.stale, g.dropStatus = nil, false
	g.expectRecovered()
}

// TestReconcileDoesNotSuspectTheCRDWhenTheCacheDoesNotHearOfADeletion has a cache whose watch hangs, so that it contains a
// deleted bundle for an hour.
func TestReconcileDoesNotSuspectTheCRDWhenTheCacheDoesNotHearOfADeletion(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.change(object("ns", "a", "1-sink", "1"))
	g.stale = g.stored()
	if err := g.api.Delete(t.Context(), g.stored()); err != nil {
		t.Fatal(err)
	}
	g.writeErr = errNoSubresource
	for wait, began := time.Duration(1), g.clock.Now(); wait > 0 && g.clock.Since(began) < time.Hour; g.pass(wait) {
		wait = g.reconcile().RequeueAfter
	}
	if err := g.guard.Ready(); err != nil {
		t.Errorf("readiness says %v of a bundle that was deleted", err)
	}
	if g.writes > 20 {
		t.Errorf("%d writes of a bundle that was deleted, want a few until the API server was asked for it", g.writes)
	}
}

func TestReconcileDoesNotSuspectTheCRDOfADeletion(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]bool{"the cache lags": false, "made again": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newRig(t)
			g.change(object("ns", "a", "1-sink", "1"))
			g.stale, g.writeErr = g.stored(), errNoSubresource
			g.onWrite = func(types.NamespacedName) {
				if err := g.api.Delete(t.Context(), g.stored()); err != nil {
					t.Error(err)
				}
				if !again {
					return
				}
				if err := g.api.Create(t.Context(), &k8spluginv1alpha1.ResourceBundleState{ObjectMeta: metav1.ObjectMeta{Namespace: sink.Namespace, Name: sink.Name, UID: "2"}}); err != nil {
					t.Error(err)
				}
			}
			g.reconcile()
			g.onWrite, g.writeErr, g.stale = nil, nil, nil
			if err := g.guard.Ready(); err != nil {
				t.Errorf("readiness says %v after a deletion", err)
			}
			g.reconcile()
			switch known := len(g.writeStates.entries); {
			case again && g.stored().Status.ResourceCount != 1:
				t.Error("the bundle that was made again is not filled")
			case !again && known != 0:
				t.Errorf("%d bundles are still known after the only one is gone", known)
			}
		})
	}
}
