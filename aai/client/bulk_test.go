package client_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/client"
	"github.com/healthscope/healthscope/aai/simulator"
)

func other(id string) aai.Key { return aai.Key{Tenant: tenant, ID: id} }

func TestWriteTogether(t *testing.T) {
	s, url := simulate(t, simulator.Options{Users: map[string]string{user: password}})
	c := connect(t, url)
	ctx := t.Context()
	if err := c.BulkWrite(ctx, []client.Write{
		{Op: aai.OpPut, Key: key, Document: document(key.ID)},
		{Op: aai.OpRelate, Key: key, Relationship: vnf},
		{Op: aai.OpPut, Key: other("b"), Document: document("b")},
	}); err != nil {
		t.Fatal(err)
	}
	d, _, err := c.GetK8sResource(ctx, key)
	if err != nil || len(d.RelationshipList.Relationships) != 1 {
		t.Fatalf("%+v, %v", d, err)
	}
	b, _, err := c.GetK8sResource(ctx, other("b"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.BulkWrite(client.WithTransaction(ctx, "together-1"), []client.Write{
		{Op: aai.OpUpdate, Key: key, Document: inVersion(d.ResourceVersion, "hs/status=Failed")},
		{Op: aai.OpUnrelate, Key: key, Relationship: vnf},
		{Op: aai.OpDelete, Key: other("b"), ResourceVersion: b.ResourceVersion},
	}); err != nil {
		t.Fatal(err)
	}
	list, err := c.ListK8sResources(ctx, tenant, "healthscope-lab")
	if err != nil || len(list) != 1 || list[0].Labels[0] != "hs/status=Failed" || list[0].RelationshipList.Relationships != nil {
		t.Errorf("%+v, %v", list, err)
	}
	requests := s.Requests()
	last := requests[len(requests)-2]
	if got := last.Header.Get("X-TransactionId"); got != "together-1" {
		t.Errorf("transaction id is %q", got)
	}
	var sent struct {
		Operations []struct {
			Action string
			URI    string
			Body   json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(last.Body), &sent); err != nil {
		t.Fatal(err)
	}
	if op := sent.Operations[2]; op.Action != "delete" || string(op.Body) != "{}" {
		t.Errorf("a delete has the body %s; it must have one, and an empty one", op.Body)
	}
}

func TestWriteTogetherIsAtomic(t *testing.T) {
	s, url := simulate(t, simulator.Options{Users: map[string]string{user: password}})
	c := connect(t, url)
	ctx := t.Context()
	many := make([]client.Write, 31)
	for i := range many {
		id := string(rune('A' + i))
		many[i] = client.Write{Op: aai.OpPut, Key: other(id), Document: document(id)}
	}
	cases := map[string]struct {
		writes []client.Write
		kind   aai.ErrorKind
		code   string
	}{
		"too many": {many, aai.Rejected, aai.CodePayloadLimit},
		"one vanished": {[]client.Write{
			{Op: aai.OpPut, Key: other("b"), Document: document("b")}, {Op: aai.OpUpdate, Key: key, Document: inVersion("1", "a=b")},
		}, aai.Conflict, ""},
		"one changed": {[]client.Write{
			{Op: aai.OpPut, Key: other("b"), Document: document("b")}, {Op: aai.OpPut, Key: other("b"), Document: document("b")},
		}, aai.Conflict, ""},
	}
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			e := failure(t, c.BulkWrite(ctx, tt.writes))
			if e.Kind != tt.kind || e.Op != aai.OpBulk || tt.code != "" && e.Code != tt.code {
				t.Errorf("got %s %q: %v", e.Kind, e.Code, e)
			}
			if left := s.List(tenant.ResourcesPath()); len(left) > 0 {
				t.Errorf("something was done: %v", left)
			}
		})
	}
}

// TestWriteTogetherWithUnexpectedResponse asserts that a response that does not confirm all writes is an outage: it is not known
// whether the writes took effect.
func TestWriteTogetherWithUnexpectedResponse(t *testing.T) {
	cases := map[string]string{
		"none":               ``,
		"of something else":  `{"results":[]}`,
		"too few":            `{"operation-responses":[{"response-status-code":201}]}`,
		"one done otherwise": `{"operation-responses":[{"response-status-code":201},{"response-status-code":200}]}`,
		"one failed":         `{"operation-responses":[{"response-status-code":201},{"response-status-code":404}]}`,
	}
	for name, body := range cases {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusCreated)
				_, _ = w.Write([]byte(body))
			})
			writes := []client.Write{{Op: aai.OpPut, Key: key, Document: document("13dd")}, {Op: aai.OpPut, Key: other("b"), Document: document("b")}}
			if e := failure(t, connect(t, s.URL).BulkWrite(t.Context(), writes)); e.Kind != aai.Retry || !e.Outage() {
				t.Errorf("got %s: %v", e.Kind, e)
			}
		})
	}
}

func TestHasTenant(t *testing.T) {
	_, url := simulate(t, simulator.Options{Users: map[string]string{user: password}})
	c := connect(t, url)
	got := map[string]bool{}
	for _, id := range []string{tenant.TenantID, "nowhere"} {
		exists, err := c.HasTenant(t.Context(), aai.Tenant{CloudOwner: tenant.CloudOwner, CloudRegionID: tenant.CloudRegionID, TenantID: id})
		if err != nil {
			t.Fatal(err)
		}
		got[id] = exists
	}
	if diff := cmp.Diff(map[string]bool{tenant.TenantID: true, "nowhere": false}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
