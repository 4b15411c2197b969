package inventory

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/plan"
	"github.com/healthscope/healthscope/aai/sync"
	"github.com/healthscope/healthscope/healthscope"
)

// read returns the unsynced objects as the metrics server lists them.
func read(t *testing.T, l *Status) []map[string]any {
	t.Helper()
	answer := httptest.NewRecorder()
	l.serveUnsynced(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, UnsyncedPath, http.NoBody))
	if answer.Code != http.StatusOK || answer.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("status %d, %v", answer.Code, answer.Header())
	}
	var unsynced []map[string]any
	if err := json.Unmarshal(answer.Body.Bytes(), &unsynced); err != nil || unsynced == nil {
		t.Fatalf("%v: %s", err, answer.Body)
	}
	return unsynced
}

func TestUnsyncedListsRejectedObjects(t *testing.T) {
	l := newStatus(noInputs())
	if unsynced := read(t, l); len(unsynced) > 0 {
		t.Errorf("at first there are %v", unsynced)
	}
	web, old := keyOf(member("shop", "web", healthscope.Ready)), keyOf(member("shop", "old", healthscope.Ready))
	refused := func(resource healthscope.Key) sync.ObjectStatus {
		return sync.ObjectStatus{State: sync.Failed, Reason: sync.ReasonRejected, Message: `cannot put "/x": status 400: no (transaction 7)`, Resource: resource}
	}
	pass := passOf(map[string]sync.ObjectStatus{"web": refused(healthscope.Key{Cluster: "edge", Kind: "Deployment", Namespace: "shop", Name: "web"}), "db": {State: sync.Synced}})
	pass.Skipped = []plan.Skipped{{Key: old, Source: "edge", Cause: plan.CausePolicy, Message: "the policy is upsert-only"}}
	note(l, tenant, pass, nil, false)
	modules := func(b sync.State, at time.Time) {
		l.recordModulesPass("vnf-1", nil, sync.ModuleReport{Modules: map[aai.VFModule]sync.ObjectStatus{
			module("a"): refused(healthscope.Key{}), module("b"): {State: b, Reason: sync.ReasonRejected, Message: "no"}, module("c"): {State: sync.Pending, Reason: sync.ReasonMissingDependency},
		}}, nil, at)
	}
	modules(sync.Failed, noon)
	modules(sync.Failed, noon.Add(time.Hour)) // An object that is rejected again keeps its time.
	want := []map[string]any{
		{"genericVnf": "vnf-1", "vfModule": "a", "cause": "rejected", "message": "status 400: no", "since": "2026-06-01T12:00:00Z"},
		{"genericVnf": "vnf-1", "vfModule": "b", "cause": "rejected", "message": "no", "since": "2026-06-01T12:00:00Z"},
		{"tenant": tenant.String(), "id": web.ID, "cluster": "edge", "kind": "Deployment", "namespace": "shop", "name": "web", "cause": "rejected", "message": "status 400: no", "since": "2026-06-01T12:00:00Z"},
		{"tenant": tenant.String(), "id": old.ID, "cluster": "edge", "cause": "policy", "message": "the policy is upsert-only"},
	}
	slices.SortFunc(want[2:], func(a, b map[string]any) int { return strings.Compare(a["id"].(string), b["id"].(string)) }) //nolint:forcetypeassert // It is a string just above.
	if diff := cmp.Diff(want, read(t, l)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	expectRejected(t, l, 3)

	modules(sync.Synced, noon.Add(2*time.Hour))
	note(l, tenant, passOf(map[string]sync.ObjectStatus{"web": {State: sync.Synced}}), nil, false)
	if diff := cmp.Diff(want[:1], read(t, l)); diff != "" {
		t.Errorf("when A&AI has taken some, -want +got:\n%s", diff)
	}
	modules(sync.Failed, noon.Add(3*time.Hour))
	if since := read(t, l)[1]["since"]; since != "2026-06-01T15:00:00Z" {
		t.Errorf("what is refused again is so since %v", since)
	}
	l.recordModulesPass("vnf-1", nil, sync.ModuleReport{}, nil, noon)
	if unsynced := read(t, l); len(unsynced) > 0 {
		t.Errorf("in the end there are %v", unsynced)
	}
	expectRejected(t, l, 0)
}

// expectRejected checks the number of rejected objects in the metrics.
func expectRejected(t *testing.T, l *Status, n int) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(l)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got float64
	for _, f := range families {
		if f.GetName() == "healthscope_aai_rejected" {
			for _, m := range f.GetMetric() {
				got += m.GetGauge().GetValue()
			}
		}
	}
	if got != float64(n) {
		t.Errorf("metrics count %v rejected objects, want %d", got, n)
	}
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}
