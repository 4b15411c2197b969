package fleet

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Those who want to know of writes are told of each, also of one that changes no state, and of nothing else.
func TestWritesAreToldOf(t *testing.T) {
	t.Parallel()
	v := openView("local", "edge1")
	key := keyOf("edge1", "a")
	var got []string
	cancel := v.SubscribeWrites(func(c Change) {
		word := func(b *Bundle) string {
			if b == nil {
				return "none"
			}
			if b.Lost {
				return "lost"
			}
			return b.ResourceVersion
		}
		got = append(got, word(c.Old)+" "+word(c.New))
	})
	version := func(version string, set map[string]string) *Bundle {
		b := ready(key, set)
		b.ResourceVersion = version
		return b
	}
	v.put(key, version("1", nil))
	v.put(key, version("2", nil))
	judged := version("2", nil)
	judged.Members = nil // By time alone.
	v.put(key, judged)
	v.setState(ClusterState{Name: "edge1", Reachability: Unreachable}, nil)
	v.setState(ClusterState{Name: "edge1", Reachability: Connected}, nil)
	v.put(key, nil)
	cancel()
	v.put(key, version("3", nil))
	if diff := cmp.Diff([]string{"none 1", "1 2", "2 lost", "lost 2", "2 none"}, got); diff != "" {
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
		"not served":  {ClusterState{Reachability: MonitorMissing, blind: true}, "shop", false},
		"connecting":  {ClusterState{Reachability: Connecting}, "shop", false},
		"unreachable": {ClusterState{Reachability: Unreachable}, "shop", false},
		"refused":     {ClusterState{Reachability: Refused}, "shop", false},
		"limited":     {ClusterState{Reachability: Connected, namespaces: ",shop,telco,"}, "telco", true},
		"elsewhere":   {ClusterState{Reachability: Connected, namespaces: ",shop,telco,"}, "tel", false},
		"anywhere":    {ClusterState{Reachability: Connected, namespaces: ",shop,telco,"}, "", false},
		"nowhere":     {ClusterState{Reachability: Connected, namespaces: ",,"}, "shop", false},
	} {
		c.state.Name = name
		v.setState(c.state, nil)
		if got := v.CompleteFor(name, c.namespace); got != c.want {
			t.Errorf("%s: want %t", name, c.want)
		}
	}
	if v.CompleteFor("other", "") {
		t.Error("nobody knows yet which clusters there are")
	}
	v.completed()
	if !v.CompleteFor("other", "") {
		t.Error("a cluster that does not exist has no bundles that are not seen")
	}
}
