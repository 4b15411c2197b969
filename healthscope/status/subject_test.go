package status_test

import (
	"strings"
	"testing"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/status"
)

// TestADocumentOfAClusterShowsNoOther checks that a user who may read the network intents of a cluster sees nothing else of their
// context: not in lists, counts, objects or problems.
func TestADocumentOfAClusterShowsNoOther(t *testing.T) {
	network := func(name string) string { return object("k8s.plugin.opnfv.org/v1alpha1", "Network", name) }
	k := newKeys("42", "Instantiated").order("network-intents", "web").
		cluster("network-intents", "west+berlin", "own+Network", network("own"), "Applied").
		cluster("network-intents", "west+bonn", "foreign+Network", network("foreign"), "Applied", "foreign-broken+Network", "{", "Applied").
		cluster("web", "west+berlin", "foreign-web+Pod", object("v1", "Pod", "foreign-web"), "Applied")
	in := k.input(t)
	in.Subject = appcontext.ClusterRef("west", "berlin")
	place := status.AppInCluster{App: "network-intents", Cluster: "west+berlin"}
	in.Reports = map[status.AppInCluster]status.Report{
		place: seen(member("west+berlin", "k8s.plugin.opnfv.org", "Network", "own", healthscope.Ready)),
		{App: "network-intents", Cluster: "west+bonn"}: seen(member("west+bonn", "", "Pod", "foreign-pod", healthscope.Failed)),
		{App: "web", Cluster: "west+berlin"}:           seen(member("west+berlin", "", "Pod", "foreign-web", healthscope.Failed)),
	}
	for _, raw := range []string{"", "output=rsync", "output=full", "output=small", "type=cluster"} {
		d := status.New(in, query(t, raw))
		check(t, raw+": apps and resources", 1, len(words(d)))
		if text := wire(t, d); strings.Contains(text, "foreign") || strings.Contains(text, "bonn") || !strings.Contains(text, `"name":"own"`) {
			t.Errorf("%s: %s", raw, text)
		}
	}
	check(t, "counts", map[string]int{"Applied": 1}, status.New(in, query(t, "output=summary")).RsyncStatus)
	check(t, "health", "Ready", status.New(in, query(t, "output=small")).Health.State)
	other := status.New(in, query(t, "output=full&cluster=west%2Bbonn"))
	check(t, "apps with the other's filter", 0, len(other.Apps))
	check(t, "the filter", &status.Unmatched{Clusters: []string{"west+bonn"}}, other.Unmatched)
	expected := in.Contents.Expected(in.Subject, query(t, "type=all"))
	check(t, "places that are looked at", []status.Expected{{AppInCluster: place, BundleName: "42-network-intents"}}, expected)
}
