package status_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/status"
)

// The contexts in testdata: two instances of one group, the first of which is terminated, and the network intents of a cluster.
const (
	oldID, newID, networkID = "2204310587736190422", "5127746093381250097", "7741902256340018863"
)

func read(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	noError(t, err)
	return data
}

// stored returns the keys in a dump of etcd.
func stored(t testing.TB, name string) keys {
	t.Helper()
	var k keys
	noError(t, json.Unmarshal(read(t, name), &k))
	return k
}

func at(t testing.TB, text string) time.Time {
	t.Helper()
	when, err := time.Parse(time.RFC3339Nano, text)
	noError(t, err)
	return when
}

// autumn returns the input for an instance of the group in testdata, as a store returns it. That of newID has the reports of a hub that sees
// its clusters.
func autumn(t testing.TB, instance string) status.Input {
	t.Helper()
	name := map[string]string{oldID: "context-old.json", newID: "context-new.json"}[instance]
	k := stored(t, name)
	meta := k.root() + "meta/"
	k[meta] = strings.Replace(k[meta], "{", `{"CompositeProfile":"shop-profile",`, 1)
	in := k.input(t,
		appcontext.Action{State: appcontext.ActionCreated, Time: at(t, "2026-03-02T08:58:21.186Z")},
		appcontext.Action{State: appcontext.ActionApproved, Time: at(t, "2026-03-02T08:59:02.748Z")},
		appcontext.Action{State: appcontext.ActionInstantiated, ContextID: oldID, Time: at(t, "2026-03-02T08:59:02.947Z")},
		appcontext.Action{State: appcontext.ActionTerminated, ContextID: oldID, Time: at(t, "2026-03-02T09:14:11.061Z")},
		appcontext.Action{State: appcontext.ActionApproved, Time: at(t, "2026-03-02T09:15:34.436Z")},
		appcontext.Action{State: appcontext.ActionInstantiated, ContextID: newID, Time: at(t, "2026-03-02T10:15:34.64+01:00")},
	)
	in.Contexts = []string{oldID, newID}
	if instance == newID {
		live(&in)
	}
	return in
}

// live sets reports of the saved bundles, as if the hub saw these bundles.
func live(in *status.Input) {
	all := status.Query{Type: status.TypeAll, Output: status.OutputAll}
	for _, e := range in.Contents.Expected(in.Subject, all) {
		r := status.SavedReport(in.Contents.SavedBundle(e.AppInCluster, nil), healthscope.DefaultPolicy(), noon, noon)
		r.Saved = false
		in.Reports[e.AppInCluster] = r
	}
}

func network(t testing.TB) status.Input {
	t.Helper()
	in := stored(t, "context-network.json").input(t,
		appcontext.Action{State: appcontext.ActionCreated, Time: at(t, "2026-03-01T17:02:02.464Z")},
		appcontext.Action{State: appcontext.ActionApplied, ContextID: networkID, Time: at(t, "2026-03-01T17:05:11.983Z")},
	)
	in.Subject = appcontext.ClusterRef("west", "berlin")
	return in
}

// TestGoldenDocuments covers each complete example in the published version of EMCO's status design. For the same query, it expects a
// document of the same shape, byte for byte except for blanks.
func TestGoldenDocuments(t *testing.T) {
	tests := map[string]struct {
		in    status.Input
		query string
		want  string
	}{
		"default":                     {autumn(t, newID), "", "golden-all.json"},
		"summary":                     {autumn(t, newID), "output=summary", "golden-summary.json"},
		"detail of one":               {autumn(t, newID), "output=detail&type=cluster&app=store&resource=store-settings", "golden-detail.json"},
		"instance, several resources": {autumn(t, oldID), "output=all&type=rsync&resource=web-server&resource=store-settings&instance=" + oldID, "golden-instance.json"},
		"cluster":                     {autumn(t, newID), "cluster=west%2Bbonn", "golden-cluster.json"},
		"network intents":             {network(t), "", "golden-network.json"},
		"list of instances":           {autumn(t, newID), "instance", "golden-instances.json"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var want bytes.Buffer
			noError(t, json.Compact(&want, read(t, tt.want)))
			want.WriteByte('\n')
			got := wire(t, status.New(tt.in, query(t, tt.query)))
			if diff := cmp.Diff(want.String(), got); diff != "" {
				t.Errorf("document (-want +got):\n%s\n%s", diff, got)
			}
		})
	}
}
