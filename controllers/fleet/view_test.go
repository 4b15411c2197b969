package fleet

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/status"
)

// openView returns a view of Connected clusters. The first one is the hub's own.
func openView(clusters ...string) *View {
	v := newView(clusters[0])
	for _, cluster := range clusters {
		v.setState(ClusterState{Name: cluster, Local: cluster == clusters[0], Reachability: Connected})
	}
	return v
}

// keyOf returns the key of a bundle in namespace "shop".
func keyOf(cluster, name string) BundleKey {
	return BundleKey{Cluster: cluster, Namespace: "shop", Name: name}
}

// ready returns a bundle with one Deployment that is ready.
func ready(key BundleKey, set map[string]string) *Bundle {
	return &Bundle{
		BundleKey: key, UID: "uid", App: "sink", Labels: set, Observed: true,
		Members: []healthscope.Member{{
			Result: healthscope.Result{
				Key:   healthscope.Key{Cluster: key.Cluster, Group: "apps", Kind: "Deployment", Namespace: key.Namespace, Name: "web"},
				State: healthscope.Ready, Since: time.Unix(1000, 0),
			},
			Counts: healthscope.Ready,
		}},
	}
}

// keysOf returns the keys of bundles.
func keysOf(bundles []*Bundle) []BundleKey {
	var keys []BundleKey
	for _, b := range bundles {
		keys = append(keys, b.BundleKey)
	}
	return keys
}

func TestViewFindsBundles(t *testing.T) {
	t.Parallel()
	sink := map[string]string{"app": "sink", k8spluginv1alpha1.LabelDeploymentID: "1-sink", status.InstanceLabel: "fox"}
	a2, a1, b1 := keyOf("edge2", "a"), keyOf("edge1", "a"), keyOf("edge1", "b")
	elsewhere := BundleKey{Cluster: "edge1", Namespace: "other", Name: "a"}
	v := openView("local", "edge1", "edge2")
	for _, key := range []BundleKey{a2, b1, elsewhere} {
		v.put(key, ready(key, sink))
	}
	v.put(a1, ready(a1, nil))

	for name, c := range map[string]struct{ want, got []BundleKey }{
		"Named":         {[]BundleKey{a1, a2}, keysOf(v.Named("shop", "a"))},
		"NamedNobody":   {nil, keysOf(v.Named("shop", "c"))},
		"Select":        {[]BundleKey{b1, a2}, keysOf(v.Select("shop", labels.SelectorFromSet(labels.Set{"app": "sink"})))},
		"SelectAll":     {[]BundleKey{a1, b1, a2}, keysOf(v.Select("shop", labels.Everything()))},
		"SelectNobody":  {nil, keysOf(v.Select("shop", labels.SelectorFromSet(labels.Set{"app": "x"})))},
		"SelectNowhere": {nil, keysOf(v.Select("nowhere", labels.Everything()))},
		"Deployment":    {[]BundleKey{elsewhere, b1, a2}, keysOf(v.ListByLabel(k8spluginv1alpha1.LabelDeploymentID, "1-sink"))},
		"Instance":      {[]BundleKey{a2}, keysOf(v.ListByLabelIn("edge2", status.InstanceLabel, "fox"))},
		"NoInstance":    {nil, keysOf(v.ListByLabel(status.InstanceLabel, "cat"))},
		"InstanceAway":  {nil, keysOf(v.ListByLabelIn("away", status.InstanceLabel, "fox"))},
		"NotIdentified": {nil, keysOf(v.ListByLabel("app", "sink"))},
		"All":           {[]BundleKey{elsewhere, a1, b1, a2}, keysOf(v.All())},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}

	v.put(elsewhere, ready(elsewhere, nil))
	v.removeCluster("edge2")
	if got := keysOf(v.ListByLabel(status.InstanceLabel, "fox")); !slices.Equal(got, []BundleKey{b1}) {
		t.Errorf("after one has lost its labels and a cluster has gone: %v", got)
	}
	for _, key := range []BundleKey{a1, b1, elsewhere, a1} {
		v.put(key, nil)
	}
	if len(v.All()) != 0 || len(v.bundles) != 0 || len(v.byLabel) != 0 {
		t.Errorf("something is left of bundles that are gone: %v %v", v.bundles, v.byLabel)
	}
}

// TestSelectReturnsMatchingBundles: a selector finds the same bundles with and without an index, also when labels change.
func TestSelectReturnsMatchingBundles(t *testing.T) {
	t.Parallel()
	selectors := []string{"", "app=sink", "app in (sink)", "app in (sink,source)", "app", "!app", "app!=sink", "tier=edge,app=sink", "app=sink,app=source", "app notin (sink),tier=edge"}
	rapid.Check(t, func(t *rapid.T) {
		v := openView("local", "a", "b")
		all := map[BundleKey]map[string]string{}
		for range rapid.IntRange(1, 15).Draw(t, "changes") {
			key := BundleKey{
				Cluster: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "cluster"), Namespace: rapid.SampledFrom([]string{"shop", "back"}).Draw(t, "namespace"),
				Name: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "name"),
			}
			if rapid.IntRange(0, 3).Draw(t, "gone") == 0 {
				v.put(key, nil)
				delete(all, key)
				continue
			}
			all[key] = rapid.MapOf(rapid.SampledFrom([]string{"app", "tier"}), rapid.SampledFrom([]string{"sink", "source", "edge"})).Draw(t, "labels")
			v.put(key, ready(key, all[key]))
		}
		text := rapid.SampledFrom(selectors).Draw(t, "selector")
		selector, err := labels.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		var want []BundleKey
		for key, set := range all {
			if key.Namespace == "shop" && selector.Matches(labels.Set(set)) {
				want = append(want, key)
			}
		}
		slices.SortFunc(want, BundleKey.Compare)
		if diff := cmp.Diff(want, keysOf(v.Select("shop", selector))); diff != "" {
			t.Fatalf("%q: -want +got:\n%s", text, diff)
		}
	})
}

func TestRequiredLabel(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "app=sink": "app=sink", "app in (sink)": "app=sink", "app in (sink,source)": "", "app": "", "!app": "", "app!=sink": "",
		"tier=edge,app=sink": "app=sink", "app!=x,tier=edge": "tier=edge", "n>3": "",
	} {
		selector, err := labels.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if key, value, ok := RequiredLabel(selector); ok {
			got = key + "=" + value
		}
		if got != want {
			t.Errorf("%q: want %q, got %q", text, want, got)
		}
	}
}

// setRead marks the bundles of the hub's own cluster as read.
func setRead(v *View) {
	v.setState(ClusterState{Name: v.Cluster(), Local: true, Reachability: Connected, synced: true})
}

func TestReadyReturnsWhatIsMissing(t *testing.T) {
	t.Parallel()
	v := newView("local")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := v.WaitSynced(ctx); !errors.Is(err, context.Canceled) || v.Synced() || v.Ready() == nil {
		t.Errorf("a view that has read nothing is synced (%v) or ready", err)
	}
	v.setState(ClusterState{Name: "local", Reachability: MonitorMissing, Message: "no CRD"})
	if err := v.Ready(); err == nil || err.Error() != "no CRD" {
		t.Errorf("want that there is no CRD, got %v", err)
	}
	setRead(v)
	if err := v.Ready(); err == nil || !strings.Contains(err.Error(), "Secrets") {
		t.Errorf("want that the Secrets have not been read, got %v", err)
	}
	v.setComplete()
	if err := errors.Join(v.Ready(), v.WaitSynced(t.Context())); err != nil || !v.Synced() {
		t.Errorf("want synced, got %v", err)
	}
}

func TestViewNotifiesOnlyOfChanges(t *testing.T) {
	t.Parallel()
	key := keyOf("local", "1-sink")
	changed := map[string]func(*Bundle){
		"UID":          func(b *Bundle) { b.UID = "another" },
		"App":          func(b *Bundle) { b.App = "source" },
		"Labels":       func(b *Bundle) { b.Labels = map[string]string{"a": "b"} },
		"Observed":     func(b *Bundle) { b.Observed = false },
		"Stale":        func(b *Bundle) { b.Stale = true },
		"Own":          func(b *Bundle) { b.Own = true },
		"Unlisted":     func(b *Bundle) { b.Unlisted.Ready = 7 },
		"Truncated":    func(b *Bundle) { b.Truncated = true },
		"Malformed":    func(b *Bundle) { b.Malformed = []string{"podStatuses"} },
		"State":        func(b *Bundle) { b.Members[0].State = healthscope.Failed },
		"Counts":       func(b *Bundle) { b.Members[0].Counts = healthscope.Failed },
		"Owned":        func(b *Bundle) { b.Members[0].Owned = true },
		"Cause":        func(b *Bundle) { b.Members[0].Cause = "Pod web-1: x" },
		"Since":        func(b *Bundle) { b.Members[0].Since = time.Unix(2000, 0) },
		"Replicas":     func(b *Bundle) { b.Members[0].Replicas = &healthscope.Replicas{Ready: 1, Desired: 1} },
		"MoreMembers":  func(b *Bundle) { b.Members = append(b.Members, b.Members[0]) },
		"FewerMembers": func(b *Bundle) { b.Members = nil },
	}
	for name, change := range changed {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := openView("local")
			s, cancel := v.Subscribe(Bundles)
			first, same, other := ready(key, nil), ready(key, nil), ready(key, nil)
			same.Members[0].Since = same.Members[0].Since.UTC().Add(0) // The same moment, in another zone.
			change(other)
			was, is := BundleChange{key, ""}, BundleChange{key, NewLabelSet(other.Labels)}
			change := []Change{was}
			if is != was {
				change = append(change, is)
			}
			for i, step := range []struct {
				put  *Bundle
				want []Change
			}{{first, []Change{was}}, {same, nil}, {other, change}, {nil, []Change{is}}, {nil, nil}} {
				v.put(key, step.put)
				if got := s.Take(); !slices.Equal(got, step.want) {
					t.Errorf("step %d: notified of %+v, want %+v", i, got, step.want)
				}
			}
			cancel()
			v.put(key, first)
			if got := s.Take(); len(got) > 0 {
				t.Errorf("notified of %+v after it ended", got)
			}
		})
	}
}

// TestViewIsSafeForConcurrentUse reads the view while bundles are added and removed.
func TestViewIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	v := openView("local")
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 200 {
			key := keyOf("local", string(rune('a'+i%26)))
			v.put(key, ready(key, nil))
			v.put(key, nil)
		}
	}()
	for range 200 {
		v.Named("shop", "a")
		v.Select("shop", labels.Everything())
		s, cancel := v.SubscribeFromStart(Bundles | Clusters)
		s.Take()
		cancel()
	}
	<-done
	if got := v.All(); len(got) != 0 {
		t.Errorf("want none, got %v", keysOf(got))
	}
}
