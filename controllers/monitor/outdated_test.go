package monitor

import (
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

// asEMCO writes the bundle as EMCO's monitor would, with the current objects.
func (g *rig) asEMCO() {
	g.t.Helper()
	g.overwrite(func(b *k8spluginv1alpha1.ResourceBundleState) {
		is, err := g.build(&writeState{}, b, g.clock.Now())
		if err != nil {
			g.t.Fatal(err)
		}
		b.Status = is
		b.Status.Summary, b.Status.Resources = nil, nil
		b.ManagedFields = []metav1.ManagedFieldsEntry{writer("monitor", "status", g.clock.Now())}
	})
}

// advanceUntil reconciles and advances the clock until the condition is true, and returns the time until then.
func (g *rig) advanceUntil(what string, condition func() bool) time.Duration {
	g.t.Helper()
	for began := g.clock.Now(); ; {
		wait := g.reconcile().RequeueAfter
		took := g.clock.Since(began)
		if condition() {
			return took
		}
		if took > 2*time.Hour {
			g.t.Fatalf("%s: not within %s", what, took)
		}
		g.pass(max(wait, time.Second))
	}
}

// TestTakesOverBundleOfStoppedMonitor stops EMCO's monitor, and then deletes, creates, recreates or changes an object.
func TestTakesOverBundleOfStoppedMonitor(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*rig){
		"an object is deleted":   func(g *rig) { g.change(object("ns", "a", "1-sink", "1")) },
		"all objects are":        func(g *rig) { g.change() },
		"an object comes":        func(g *rig) { g.change(append(g.objects, object("ns", "c", "1-sink", "1"))...) },
		"an object is made anew": func(g *rig) { o := object("ns", "a", "1-sink", "2"); o.SetUID("2"); g.change(o, g.objects[1]) },
		"an object gets another state": func(g *rig) {
			o := object("ns", "a", "1-sink", "2")
			o.SetDeletionTimestamp(&metav1.Time{Time: g.clock.Now()})
			g.change(o, g.objects[1])
		},
	} {
		g := newRig(t)
		g.change(object("ns", "a", "1-sink", "1"), object("ns", "b", "1-sink", "1"))
		g.asEMCO()
		g.reconcile()
		g.pass(10 * time.Minute)
		wrote, changed := g.clock.Now().Add(-10*time.Minute), g.clock.Now()
		change(g)
		if took := g.advanceUntil(name+": it is marked", func() bool { return len(g.marks) > 0 }); took > 25*time.Second {
			t.Errorf("%s: the bundle is marked after %s, want within 25s", name, took)
		}
		if got := g.marks[0]; !got.Written.Equal(wrote) || !got.Since.Equal(changed) {
			t.Errorf("%s: marked with %v, want the write at %s and the change at %s", name, got, wrote, changed)
		}
		g.wantWrites(0)
		g.advanceUntil(name+": it is taken over", func() bool { return g.writes > 0 })
		if took := g.clock.Since(changed); took > 2*time.Minute {
			t.Errorf("%s: the bundle is taken over after %s, want within two minutes", name, took)
		}
		g.wantWrites(1)
		if len(g.marks) != 1 {
			t.Errorf("%s: marked %d times, want once", name, len(g.marks))
		}
	}
}

// TestLeavesBundleOfLiveMonitor has EMCO's monitor, which writes each change some seconds later, and an object of a kind that it
// does not watch.
func TestLeavesBundleOfLiveMonitor(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.change(object("ns", "a", "1-sink", "1"))
	g.asEMCO()
	other := object("ns", "web", "1-sink", "1")
	other.SetAPIVersion("networking.k8s.io/v1")
	other.SetKind("Ingress")
	g.change(append(g.objects, other)...)
	for i := range 100 {
		o := object("ns", "a", "1-sink", "1")
		if i%2 == 0 {
			o.SetDeletionTimestamp(&metav1.Time{Time: g.clock.Now()})
		}
		g.change(o, other)
		g.reconcile()
		g.pass(15 * time.Second)
		g.reconcile()
		g.objects = g.objects[:1]
		g.asEMCO()
		g.change(o, other)
		g.reconcile()
		g.pass(10 * time.Second)
	}
	g.wantWrites(0)
	if len(g.marks) > 0 {
		t.Errorf("marked as out of date %d times", len(g.marks))
	}
}

// TestLeavesBundleWithKindsThatCannotBeRead has EMCO's monitor, which reports kinds that this one does not watch or may not read.
func TestLeavesBundleWithKindsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	of := func(apiVersion, kind string) *unstructured.Unstructured {
		o := object("ns", strings.ToLower(kind), "1-sink", "1")
		o.SetAPIVersion(apiVersion)
		o.SetKind(kind)
		return o
	}
	watched := object("ns", "a", "1-sink", "1")
	g.change(watched, of("v1", "Secret"), of("networking.k8s.io/v1", "Ingress"))
	g.asEMCO()
	g.unreadable = []schema.GroupKind{{Group: "networking.k8s.io", Kind: "Ingress"}}
	g.change(watched)
	for began := g.clock.Now(); g.clock.Since(began) < 10*time.Minute; {
		g.pass(max(g.reconcile().RequeueAfter, time.Second))
	}
	g.wantWrites(0)
	if len(g.marks) > 0 {
		t.Errorf("marked as out of date %d times", len(g.marks))
	}
}

// TestReadsWhatIsWatched has a watch of a kind in all namespaces.
func TestReadsWhatIsWatched(t *testing.T) {
	t.Parallel()
	all := watchesOf(nil, nil)
	c := fakeClock(all)
	w := addReadWatch(t, all, c, "v1")
	b := bundleAt("1")
	entry := entryOf("example.io", "Widget")
	entry.Namespace = b.Namespace
	elsewhere, other := entry, entryOf("example.io", "Gadget")
	elsewhere.Namespace, other.Namespace = "elsewhere", b.Namespace
	if !all.reads(b, entry) || all.reads(b, elsewhere) || all.reads(b, other) {
		t.Errorf("reads a watched kind: %t, one of another namespace: %t, another kind: %t", all.reads(b, entry), all.reads(b, elsewhere), all.reads(b, other))
	}
	w.reportFailure(c, errForbidden, true)
	if all.reads(b, entry) {
		t.Error("a kind that cannot be read is read")
	}
}

// TestTakeoversBackOff has another monitor that writes outdated content again after each takeover.
func TestTakeoversBackOff(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.change(object("ns", "a", "1-sink", "1"))
	g.asEMCO()
	g.change()
	for began := g.clock.Now(); g.clock.Since(began) < 6*time.Hour; {
		before := g.writes
		wait := g.reconcile().RequeueAfter
		if g.writes > before {
			objects := g.objects
			g.objects = append(g.objects, object("ns", "a", "1-sink", "1"))
			g.asEMCO()
			g.objects = objects
		}
		g.pass(max(wait, time.Second))
	}
	if g.writes > 12 {
		t.Errorf("%d writes in six hours, want fewer and fewer", g.writes)
	}
}

// TestMarkSurvivesRestart restarts the monitor after it has marked a bundle.
func TestMarkSurvivesRestart(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.change(object("ns", "a", "1-sink", "1"))
	g.asEMCO()
	g.change()
	g.advanceUntil("it is marked", func() bool { return len(g.marks) > 0 })
	g.stale.Annotations = map[string]string{k8spluginv1alpha1.AnnotationOutOfDate: g.marks[0].String()}
	g.writeStates = newWriteStates()
	g.advanceUntil("it is taken over", func() bool { return g.writes > 0 })
	if took := g.clock.Since(g.marks[0].Since); took > 2*time.Minute || len(g.marks) > 1 {
		t.Errorf("taken over after %s and marked %d times, want within two minutes and once", took, len(g.marks))
	}
}

func TestMarkFailures(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err  error
		most int
	}{
		"without the right it is not tried again": {apierrors.NewForbidden(bundleResource, sink.Name, errors.New("no right")), 1},
		"an outage is": {errPassing, 20},
	} {
		g := newRig(t)
		g.change(object("ns", "a", "1-sink", "1"))
		g.asEMCO()
		g.change()
		g.markErr = tc.err
		if took := g.advanceUntil("it is taken over", func() bool { return g.writes > 0 }); took > 2*time.Minute {
			t.Errorf("%s: taken over after %s", name, took)
		}
		if len(g.marks) < 1 || len(g.marks) > tc.most || tc.most > 1 && len(g.marks) < 2 {
			t.Errorf("%s: tried %d times", name, len(g.marks))
		}
	}
}
