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

// foreign returns a bundle that another monitor has filled. own returns a bundle that a monitor of ours has filled.
func foreign(key BundleKey) *Bundle { return ready(key, map[string]string{"app": "sink"}) }

func own(key BundleKey) *Bundle {
	b := foreign(key)
	b.Own, b.Truncated = true, true
	b.Unlisted = healthscope.Summary{Total: 3, Ready: 2, Failed: 1, Healthy: 2}
	return b
}

// TestBundlesAreShownByClusterState: the members of a bundle in the view depend on the state of the cluster, and on the monitor
// that has filled the bundle.
func TestBundlesAreShownByClusterState(t *testing.T) {
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
		v.setState(ClusterState{Name: "edge", Reachability: reach, Since: since, Message: "so it is"})
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
		if len(v.All()) != 0 || len(v.byLabel) != 0 || !slices.Equal(v.Clusters(), []string{"hub"}) {
			t.Errorf("something is left of a cluster that is gone: %v", keysOf(v.All()))
		}
	}
}

// checkLost checks that all parts of a bundle are lost, or none.
func checkLost(t *testing.T, b *Bundle, since time.Time) {
	t.Helper()
	m := b.Members[0]
	lost := m.State == healthscope.Unknown
	if b.Stale != lost || lost && (m.LastState != healthscope.Ready || !m.Since.Equal(since) || b.Unlisted != b.Unlisted.MarkUnreachable()) {
		t.Errorf("%s is %+v", b.Name, b)
	}
	if lost && m.Message != `cluster "edge": so it is; last seen Ready` {
		t.Errorf("%s: %s", b.Name, m.Message)
	}
}

// TestOutageAndRecoveryNotifyOnce: a loss is notified once for each bundle. So is the return, together with the changes in
// between.
func TestOutageAndRecoveryNotifyOnce(t *testing.T) {
	t.Parallel()
	v := openView("hub", "edge")
	key, still := keyOf("edge", "1-sink"), keyOf("hub", "1-sink")
	v.put(key, own(key))
	v.put(still, own(still))
	s, _ := v.Subscribe(Bundles | Clusters)
	expect := func(want ...string) {
		t.Helper()
		var notified []string
		for _, c := range s.Take() {
			switch c := c.(type) {
			case BundleChange:
				notified = append(notified, fmt.Sprintf("%s %s", c.Cluster, v.Bundle(c.BundleKey).Members[0].State))
			case ClusterChange:
				state, _ := v.State(c.Cluster)
				notified = append(notified, fmt.Sprintf("%s %s", c.Cluster, state.Reachability))
			}
		}
		if !slices.Equal(notified, want) {
			t.Errorf("notified of %q, want %q", notified, want)
		}
	}
	lost := ClusterState{Name: "edge", Reachability: Unreachable, Since: noon, Message: "no answer"}
	v.setState(lost)
	expect("edge Unreachable", "edge Unknown")
	lost.LastSeen = noon.Add(time.Hour)
	v.setState(lost) // A newer LastSeen is no change.
	v.put(key, own(key))
	expect()
	v.setState(ClusterState{Name: "edge", Reachability: Connected, Since: noon.Add(time.Hour)})
	expect("edge Connected", "edge Ready")
	failed := own(key)
	failed.Members[0].State = healthscope.Failed
	v.put(key, failed)
	v.put(key, own(key))
	v.put(key, failed)
	expect("edge Failed")
}

// follow reads the changed bundles and clusters in a view.
func follow(v *View, changes []Change, known map[BundleKey]*Bundle, states map[string]Reachability) {
	for _, c := range changes {
		switch c := c.(type) {
		case BundleChange:
			if known[c.BundleKey] = v.Bundle(c.BundleKey); known[c.BundleKey] == nil {
				delete(known, c.BundleKey)
			}
		case ClusterChange:
			if state, exists := v.clusters[c.Cluster]; exists {
				states[c.Cluster] = state.state.Reachability
			} else {
				delete(states, c.Cluster)
			}
		}
	}
}

// TestSubscribersSeeTheStateOfTheView: a subscriber that reads the notified bundles and clusters knows the state of the view,
// for all changes in any order.
func TestSubscribersSeeTheStateOfTheView(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := newView("hub")
		for range rapid.IntRange(0, 5).Draw(t, "before") {
			step(t, v)
		}
		s, _ := v.SubscribeFromStart(Bundles | Clusters)
		known, states := map[BundleKey]*Bundle{}, map[string]Reachability{}
		look := func() { follow(v, s.Take(), known, states) }
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			step(t, v)
			if rapid.Bool().Draw(t, "looks") {
				look()
			}
		}
		look()
		shown := v.All()
		if len(shown) != len(known) {
			t.Fatalf("%d are shown, and %d are known", len(shown), len(known))
		}
		for _, b := range shown {
			if !bundlesEqual(b, known[b.BundleKey]) {
				t.Fatalf("%+v is shown, and %+v is known", b, known[b.BundleKey])
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
			if own, _, _ := v.monitors(name); want != v.clusters[name].own || own != (want > 0) {
				t.Fatalf("%s has %d of our own, and counts %d", name, want, v.clusters[name].own)
			}
		}
	})
}

// TestBundleChangesHaveOldAndNewLabels changes the labels of a bundle several times before a subscriber reads the changes. A
// scope that found the bundle by the labels in between must be notified.
func TestBundleChangesHaveOldAndNewLabels(t *testing.T) {
	t.Parallel()
	v := openView("hub")
	key := keyOf("hub", "1-sink")
	odd := map[string]string{"a,b=c": "\"d"} // An API server that is not trusted may send this.
	v.put(key, ready(key, odd))
	s, _ := v.Subscribe(Bundles)
	for _, app := range []string{"sink", "source", "sink"} {
		v.put(key, ready(key, map[string]string{"app": app}))
	}
	var found []map[string]string
	for _, c := range s.Take() {
		if c, ok := c.(BundleChange); ok {
			found = append(found, c.Labels.Map())
		}
	}
	if diff := cmp.Diff([]map[string]string{odd, {"app": "sink"}, {"app": "source"}}, found); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
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

// step makes a random change to a view.
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
		v.setState(ClusterState{Name: key.Cluster, Reachability: rapid.SampledFrom(Reachabilities()).Draw(t, "reach")})
	case 4:
		if key.Cluster != "hub" {
			v.removeCluster(key.Cluster)
		}
	}
}

// TestFirstSyncIsCountedOnce counts the first synchronizations of clusters. Judgements from before the first one do not count
// for a cluster.
func TestFirstSyncIsCountedOnce(t *testing.T) {
	t.Parallel()
	v := newView("hub")
	subscription, _ := v.Subscribe(Clusters)
	for _, step := range []struct {
		cluster string
		reach   Reachability
		want    uint64
	}{
		{"edge", Connecting, 0}, {"hub", Connected, 1}, {"edge", Unreachable, 0}, {"edge", Connected, 2},
		{"edge", Unreachable, 2}, {"edge", Connected, 2}, {"far", MonitorStale, 0}, {"far", Connected, 3},
	} {
		before, known := v.clusters[step.cluster]
		arrives := known && before.state.FirstSync != step.want
		v.setState(ClusterState{Name: step.cluster, Reachability: step.reach})
		if s, _ := v.State(step.cluster); s.FirstSync != step.want {
			t.Errorf("%s becomes %s as arrival %d, want %d", step.cluster, step.reach, s.FirstSync, step.want)
		}
		if notified := slices.Contains(subscription.Take(), Change(SelectionChange{})); notified != arrives {
			t.Errorf("%s becomes %s: notified that it can be selected: %t, want %t", step.cluster, step.reach, notified, arrives)
		}
	}
	v.removeCluster("edge")
	if !slices.Contains(subscription.Take(), Change(SelectionChange{})) {
		t.Error("a cluster that is removed can still be selected")
	}
	v.setState(ClusterState{Name: "edge", Reachability: Connected})
	if s, _ := v.State("edge"); s.FirstSync != 4 || v.FirstSyncs() != 4 {
		t.Errorf("a cluster that was removed comes back as arrival %d of %d, want 4 of 4", s.FirstSync, v.FirstSyncs())
	}
}

// TestUnknownClusterIsConnectingUntilComplete has a hub that cannot read its Secrets. Clusters that are known from before must
// not be treated as removed.
func TestUnknownClusterIsConnectingUntilComplete(t *testing.T) {
	t.Parallel()
	v := newView("local")
	subscription, _ := v.Subscribe(Clusters)
	if s, known := v.State("edge"); !known || s.Reachability != Connecting || s.Name != "edge" || s.Message == "" {
		t.Errorf("want a cluster that is not connected yet and why, got %+v, %t", s, known)
	}
	v.setComplete()
	if s, known := v.State("edge"); known {
		t.Errorf("want no such cluster, got %+v", s)
	}
	if got := subscription.Take(); !slices.Equal(got, []Change{CompleteChange{}}) {
		t.Errorf("notified of %+v", got)
	}
	if v.setComplete(); len(subscription.Take()) > 0 {
		t.Error("subscribers are notified twice that all clusters are known")
	}
}
