package fleet

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope"
)

// writtenByEMCO returns a bundle with one object that EMCO's monitor wrote at the given time.
func writtenByEMCO(name string, written time.Time) *k8spluginv1alpha1.ResourceBundleState {
	b := filled(name, "a")
	b.Status.Summary, b.Status.Resources = nil, nil
	b.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: "rsync", Time: &metav1.Time{Time: written.Add(-time.Hour)}},
		{Manager: "healthscope-monitor", Subresource: "status", Time: &metav1.Time{Time: written.Add(-time.Minute)}},
		{Manager: "monitor", Subresource: "status", Time: &metav1.Time{Time: written}},
	}
	return b
}

// TestOutOfDateAnnotationMakesBundleStale has a bundle of another monitor that our monitor has marked. In some cases the other
// monitor then writes it again, or ours takes it over.
func TestOutOfDateAnnotationMakesBundleStale(t *testing.T) {
	t.Parallel()
	written, since := noon, noon.Add(10*time.Minute)
	mark := k8spluginv1alpha1.OutOfDate{Written: written, Since: since}.String()
	key := keyOf("edge01", "17-web")
	for name, tc := range map[string]struct {
		mark   string
		change func(b *k8spluginv1alpha1.ResourceBundleState)
		lost   bool
	}{
		"marked":                        {mark: mark, lost: true},
		"not marked":                    {},
		"written since":                 {mark: mark, change: func(b *k8spluginv1alpha1.ResourceBundleState) { b.ManagedFields[2].Time.Time = written.Add(time.Hour) }},
		"taken over":                    {mark: mark, change: func(b *k8spluginv1alpha1.ResourceBundleState) { b.Status = filled("17-web", "a").Status }},
		"an annotation of another kind": {mark: "yes"},
		"a mark of another write":       {mark: k8spluginv1alpha1.OutOfDate{Written: written.Add(-time.Hour), Since: since}.String()},
	} {
		b := writtenByEMCO("17-web", written)
		b.Annotations = map[string]string{k8spluginv1alpha1.AnnotationOutOfDate: tc.mark}
		if tc.change != nil {
			tc.change(b)
		}
		v := openView("local", "edge01")
		k := &bundleSyncer{cluster: "edge01", view: v, policy: healthscope.Policy{}, clock: clocktesting.NewFakeClock(noon.Add(time.Hour)), memories: map[BundleKey]*bundleMemory{}}
		k.judge(key, newCachedBundle("edge01", b, nil))
		shown := v.Bundle(key)
		if shown == nil || shown.Stale != tc.lost || len(shown.Members) != 1 {
			t.Errorf("%s: shown as %+v, want lost: %v", name, shown, tc.lost)
			continue
		}
		m := shown.Members[0]
		if !tc.lost {
			if m.State == healthscope.Unknown {
				t.Errorf("%s: the object is %s (%s), want what the bundle says", name, m.State, m.Message)
			}
			continue
		}
		if m.State != healthscope.Unknown || m.Reason != healthscope.ReasonMonitorStale || !m.Since.Equal(since) || !strings.Contains(m.Message, `"shop/17-web" have changed`) {
			t.Errorf("%s: the object is %s (%s) since %s: %s", name, m.State, m.Reason, m.Since, m.Message)
		}
	}
}

// TestUnwatchedClusterIsConnected has bundles of another monitor, with and without a monitor of ours.
func TestUnwatchedClusterIsConnected(t *testing.T) {
	t.Parallel()
	s := newSimulation(false).run(time.Minute, weather{foreign: true, noLease: true})
	if v := s.liveness.assess(s.now); v.reachability != Connected || !v.unwatched || v.message == "" {
		t.Errorf("without a monitor of ours it is %+v, want a message that it is not known whether the other one lives", v)
	}
	s.run(time.Minute, weather{foreign: true})
	if v := s.liveness.assess(s.now); v.reachability != Connected || v.unwatched || v.message != "" {
		t.Errorf("with a monitor of ours it is %+v", v)
	}
	s.run(2*time.Minute, weather{foreign: true, silentMonitor: true})
	if v := s.liveness.assess(s.now); v.reachability != Connected || !v.unwatched {
		t.Errorf("with a monitor of ours that is dead it is %+v", v)
	}
	s.run(2*time.Minute, weather{noLease: true})
	if v := s.liveness.assess(s.now); v.unwatched {
		t.Errorf("bundles of ours whose monitor is gone are %+v", v)
	}
}

func TestLastSeenOfUnwatchedClusterIsTheLastWrite(t *testing.T) {
	t.Parallel()
	v := openView("local", "edge01")
	k := &bundleSyncer{cluster: "edge01", view: v, clock: clocktesting.NewFakeClock(noon.Add(time.Hour)), memories: map[BundleKey]*bundleMemory{}}
	v.setState(ClusterState{Name: "edge01", Reachability: Connected, Unmonitored: true, LastSeen: noon.Add(time.Hour)})
	for name, written := range map[string]time.Time{"17-web": noon.Add(time.Minute), "18-web": noon} {
		b := writtenByEMCO(name, written)
		usageOfBundle(nil)(b) // A bundle is counted, and trimmed for that, before it is stored.
		k.judge(keyOf("edge01", name), newCachedBundle("edge01", b, nil))
	}
	if s, _ := v.State("edge01"); !s.LastSeen.Equal(noon.Add(time.Minute)) {
		t.Errorf("seen last at %s, want when a bundle was written last, at %s", s.LastSeen, noon.Add(time.Minute))
	}
	if b := v.bundles[types.NamespacedName{Namespace: "shop", Name: "18-web"}]["edge01"]; !b.WrittenAt.Equal(noon) {
		t.Errorf("a bundle was written at %s, want %s", b.WrittenAt, noon)
	}
}
