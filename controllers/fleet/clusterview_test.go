package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/healthscope/healthscope/healthscope"
)

// foreign returns a bundle that no monitor of ours has filled, and own one that a monitor of ours has.
func foreign(key BundleKey) *Bundle { return ready(key, map[string]string{"app": "sink"}) }

func own(key BundleKey) *Bundle {
	b := foreign(key)
	b.Own, b.Truncated = true, true
	b.Unlisted = healthscope.Summary{Total: 3, Ready: 2, Failed: 1, Healthy: 2}
	return b
}

// What is shown of a bundle depends on the cluster's state, and on who has filled it.
func TestBundlesShowWhatCanBeKnown(t *testing.T) {
	t.Parallel()
	since := noon.Add(time.Minute)
	cases := map[Reachability]struct{ own, foreign string }{
		Connected:      {"Ready", "Ready"},
		Connecting:     {"", ""},
		Unreachable:    {"Unknown ClusterUnreachable", "Unknown ClusterUnreachable"},
		Forbidden:      {"Unknown ClusterForbidden", "Unknown ClusterForbidden"},
		MonitorMissing: {"Unknown MonitorMissing", "Ready"},
		MonitorStale:   {"Unknown MonitorStale", "Ready"},
		OverBudget:     {"Unknown ClusterOverBudget", "Unknown ClusterOverBudget"},
		Refused:        {"", ""},
	}
	if got, want := slices.Sorted(maps.Keys(cases)), slices.Sorted(slices.Values(Reachabilities())); !slices.Equal(got, want) {
		t.Fatalf("the cases are %q, want %q", got, want)
	}
	for reach, want := range cases {
		v := openView("hub", "edge")
		ours, theirs := keyOf("edge", "1-ours"), keyOf("edge", "1-theirs")
		v.put(ours, own(ours))
		v.put(theirs, foreign(theirs))
		v.setState(ClusterState{Name: "edge", Reachability: reach, Since: since, Message: "so it is"}, nil)
		for key, want := range map[BundleKey]string{ours: want.own, theirs: want.foreign} {
			got := ""
			for _, b := range v.Select("shop", labels.SelectorFromSet(labels.Set{"app": "sink"})) {
				if b.BundleKey == key {
					got = strings.TrimSpace(fmt.Sprintf("%s %s", b.Members[0].State, b.Members[0].Reason))
					checkLost(t, b, since)
				}
			}
			if got != want {
				t.Errorf("%s: %s is shown as %q, want %q", reach, key.Name, got, want)
			}
		}
		v.removeCluster("edge")
		if len(v.All()) != 0 || len(v.labelled) != 0 || len(v.namespaces) != 0 || !slices.Equal(v.Clusters(), []string{"hub"}) {
			t.Errorf("something is left of a cluster that is gone: %v", keysOf(v.All()))
		}
	}
}

// checkLost checks that a bundle is lost in all of its parts, or in none.
func checkLost(t *testing.T, b *Bundle, since time.Time) {
	t.Helper()
	m := b.Members[0]
	lost := m.State == healthscope.Unknown
	if b.Lost != lost || lost && (m.LastState != healthscope.Ready || !m.Since.Equal(since) || b.Unlisted != b.Unlisted.Lost()) {
		t.Errorf("%s is %+v", b.Name, b)
	}
	if lost && m.Message != `cluster "edge": so it is; last seen Ready` {
		t.Errorf("%s: %s", b.Name, m.Message)
	}
}

// A loss is told once for each bundle, and so is the return, together with what has changed in between.
func TestALossAndAReturnAreToldOnce(t *testing.T) {
	t.Parallel()
	v := openView("hub", "edge")
	key, still := keyOf("edge", "1-sink"), keyOf("hub", "1-sink")
	v.put(key, own(key))
	v.put(still, own(still))
	var told []string
	v.Subscribe(func(c Change) {
		told = append(told, fmt.Sprintf("%s %s to %s", c.New.Cluster, c.Old.Members[0].State, c.New.Members[0].State))
	})
	v.SubscribeClusters(func(before, now *ClusterState) {
		told = append(told, fmt.Sprintf("%s %s to %s", now.Name, before.Reachability, now.Reachability))
	})
	lost := ClusterState{Name: "edge", Reachability: Unreachable, Since: noon, Message: "no answer"}
	v.setState(lost, nil)
	lost.LastSeen = noon.Add(time.Hour)
	v.setState(lost, nil) // That time goes on is no news.
	failed := own(key)
	failed.Members[0].State = healthscope.Failed
	v.put(key, own(key))
	v.setState(ClusterState{Name: "edge", Reachability: Connected, Since: noon.Add(time.Hour)}, nil)
	v.put(key, failed)
	want := []string{"edge Connected to Unreachable", "edge Ready to Unknown", "edge Unreachable to Connected", "edge Unknown to Ready", "edge Ready to Failed"}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Whatever comes in whatever order, what subscribers have been told adds up to what the view shows.
func TestSubscribersKnowWhatIsShown(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := newView("hub")
		told, states := map[BundleKey]*Bundle{}, map[string]Reachability{"hub": Connecting}
		v.Subscribe(func(c Change) {
			if c.New == nil {
				delete(told, c.Old.BundleKey)
			} else {
				told[c.New.BundleKey] = c.New
			}
		})
		v.SubscribeClusters(func(before, now *ClusterState) {
			if now == nil {
				delete(states, before.Name)
			} else {
				states[now.Name] = now.Reachability
			}
		})
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			step(t, v)
		}
		shown := v.All()
		if len(shown) != len(told) {
			t.Fatalf("%d are shown, and %d were told of", len(shown), len(told))
		}
		for _, b := range shown {
			if !same(b, told[b.BundleKey]) {
				t.Fatalf("%+v is shown, and %+v was told of", b, told[b.BundleKey])
			}
		}
		now := map[string]Reachability{}
		for _, s := range v.States() {
			now[s.Name] = s.Reachability
		}
		if diff := cmp.Diff(now, states); diff != "" {
			t.Fatal(diff)
		}
		for _, name := range v.Clusters() {
			want := countOwn(v.clusters[name])
			if own, _ := v.filled(name); want != v.clusters[name].own || own != (want > 0) {
				t.Fatalf("%s has %d of our own, and counts %d", name, want, v.clusters[name].own)
			}
		}
	})
}

// countOwn counts the bundles that a monitor of ours has filled.
func countOwn(c *clusterView) int {
	n := 0
	for _, b := range c.bundles {
		if b.Own {
			n++
		}
	}
	return n
}

// step does anything to a view.
func step(t *rapid.T, v *View) {
	key := keyOf(rapid.SampledFrom([]string{"hub", "a", "b"}).Draw(t, "cluster"), rapid.SampledFrom([]string{"x", "y"}).Draw(t, "name"))
	switch rapid.IntRange(0, 4).Draw(t, "what") {
	case 0:
		v.put(key, nil)
	case 1:
		v.put(key, own(key))
	case 2:
		v.put(key, foreign(key))
	case 3:
		v.setState(ClusterState{Name: key.Cluster, Reachability: rapid.SampledFrom(Reachabilities()).Draw(t, "reach")}, nil)
	case 4:
		if key.Cluster != "hub" {
			v.removeCluster(key.Cluster)
		}
	}
}

// TestEachClusterArrivesOnce counts clusters that come into sight for the first time, which tells who was judged before.
func TestEachClusterArrivesOnce(t *testing.T) {
	t.Parallel()
	v := newView("hub")
	told := map[string]uint64{}
	defer v.SubscribeClusters(func(_, now *ClusterState) {
		if now != nil {
			told[now.Name] = now.Arrival
		}
	})()
	for _, step := range []struct {
		cluster string
		reach   Reachability
		want    uint64
	}{
		{"edge", Connecting, 0}, {"hub", Connected, 1}, {"edge", Unreachable, 0}, {"edge", Connected, 2},
		{"edge", Unreachable, 2}, {"edge", Connected, 2}, {"far", MonitorStale, 0}, {"far", Connected, 3},
	} {
		v.setState(ClusterState{Name: step.cluster, Reachability: step.reach}, nil)
		if s, _ := v.State(step.cluster); s.Arrival != step.want || told[step.cluster] != step.want {
			t.Errorf("%s becomes %s as arrival %d, told %d; want %d", step.cluster, step.reach, s.Arrival, told[step.cluster], step.want)
		}
	}
	v.removeCluster("edge")
	v.setState(ClusterState{Name: "edge", Reachability: Connected}, nil)
	if s, _ := v.State("edge"); s.Arrival != 4 || v.Arrivals() != 4 {
		t.Errorf("a cluster that was forgotten comes back as arrival %d of %d, want 4 of 4", s.Arrival, v.Arrivals())
	}
}

// TestAnyClusterMayBeOneBeforeAllAreKnown has a hub that cannot read its Secrets: what is remembered of clusters must not be taken for gone.
func TestAnyClusterMayBeOneBeforeAllAreKnown(t *testing.T) {
	t.Parallel()
	v := newView("local")
	var told []*ClusterState
	v.SubscribeClusters(func(before, after *ClusterState) {
		if *before == *after {
			told = append(told, after)
		}
	})
	if s, known := v.State("edge"); !known || s.Reachability != Connecting || s.Name != "edge" || s.Message == "" {
		t.Errorf("want a cluster that is not connected yet and why, got %+v, %t", s, known)
	}
	v.completed()
	if s, known := v.State("edge"); known {
		t.Errorf("want no such cluster, got %+v", s)
	}
	if v.completed(); len(told) != 1 || told[0].Name != "local" {
		t.Errorf("those who look at clusters are told %d times that all are known, want once", len(told))
	}
}
