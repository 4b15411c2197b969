package fleet

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWritesAreNotified: subscribers to writes are notified of every write, also of one that changes no state, and of nothing
// else.
func TestWritesAreNotified(t *testing.T) {
	t.Parallel()
	v := openView("local", "edge1")
	key := keyOf("edge1", "a")
	s, cancel := v.Subscribe(Writes)
	version := func(version string, set map[string]string) *Bundle {
		b := ready(key, set)
		b.ResourceVersion = version
		return b
	}
	var got []string
	look := func() {
		for range s.Take() {
			switch b := v.Bundle(key); {
			case b == nil:
				got = append(got, "none")
			case b.Stale:
				got = append(got, "lost")
			default:
				got = append(got, b.ResourceVersion)
			}
		}
	}
	judged := version("2", nil)
	judged.Members = nil // Time alone has changed the judgement.
	for _, b := range []*Bundle{version("1", nil), version("2", nil), judged} {
		v.put(key, b)
		look()
	}
	v.setState(ClusterState{Name: "edge1", Reachability: Unreachable})
	look()
	v.setState(ClusterState{Name: "edge1", Reachability: Connected})
	look()
	v.put(key, nil)
	look()
	cancel()
	v.put(key, version("3", nil))
	look()
	if diff := cmp.Diff([]string{"1", "2", "lost", "2", "none"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if b := v.Bundle(key); b == nil || b.ResourceVersion != "3" {
		t.Errorf("want version 3, got %v", b)
	}
	if b := v.Bundle(keyOf("local", "a")); b != nil {
		t.Errorf("there is no such bundle, got %v", b)
	}
}

func TestCompleteFor(t *testing.T) {
	t.Parallel()
	v := openView("local")
	for name, c := range map[string]struct {
		state     ClusterState
		namespace string
		want      bool
	}{
		"connected":   {ClusterState{Reachability: Connected}, "shop", true},
		"stale":       {ClusterState{Reachability: MonitorStale}, "shop", true},
		"missing":     {ClusterState{Reachability: MonitorMissing}, "shop", true},
		"not served":  {ClusterState{Reachability: MonitorMissing, unreadable: true}, "shop", false},
		"connecting":  {ClusterState{Reachability: Connecting}, "shop", false},
		"unreachable": {ClusterState{Reachability: Unreachable}, "shop", false},
		"refused":     {ClusterState{Reachability: Refused}, "shop", false},
		"limited":     {ClusterState{Reachability: Connected, namespaces: ",shop,telco,"}, "telco", true},
		"elsewhere":   {ClusterState{Reachability: Connected, namespaces: ",shop,telco,"}, "tel", false},
		"nowhere":     {ClusterState{Reachability: Connected, namespaces: ",,"}, "shop", false},
	} {
		c.state.Name = name
		v.setState(c.state)
		if got := v.CompleteFor(name, c.namespace); got != c.want {
			t.Errorf("%s: want %t", name, c.want)
		}
	}
	if v.CompleteForAll("limited") || !v.CompleteForAll("connected") {
		t.Error("all is known of a cluster that is read in all namespaces, and of no other")
	}
	if v.CompleteFor("other", "shop") || v.CompleteForAll("other") {
		t.Error("it is not known yet which clusters there are")
	}
	v.setComplete()
	if !v.CompleteFor("other", "shop") || !v.CompleteForAll("other") {
		t.Error("a cluster that does not exist has no bundles that are not seen")
	}
}
