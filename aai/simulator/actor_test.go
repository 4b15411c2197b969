package simulator_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/healthscope/healthscope/aai/simulator"
)

const actorResource = "/cloud-infrastructure/cloud-regions/cloud-region/o/r/tenants/tenant/t/k8s-resources/k8s-resource/x"

func stage(t *testing.T, o simulator.Options) (*simulator.Simulator, *httptest.Server) {
	t.Helper()
	s := simulator.New(o)
	if err := s.Seed(simulator.CloudRegion("o", "r"), simulator.Tenant("o", "r", "t"), simulator.GenericVNF("v")); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, server
}

// ask sends a request to the API as a client does, and returns status, headers and body.
func ask(t *testing.T, method, url, body string) (int, http.Header, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Accept": "application/json", "Content-Type": "application/json", "X-FromAppId": "test", "X-TransactionId": t.Name() + body} {
		r.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		text = append(text, "…"...)
	}
	return answer.StatusCode, answer.Header, string(text)
}

func TestAnActorNeedsNothingAndLeavesNoTrace(t *testing.T) {
	s, _ := stage(t, simulator.Options{Strict: true, Users: map[string]string{"u": "p"}})
	if err := s.AddFaults(simulator.Fault{Status: http.StatusServiceUnavailable}); err != nil {
		t.Fatal(err)
	}
	document := map[string]any{"name": "x", "group": "", "version": "v1", "kind": "Pod", "namespace": "", "selflink": "s"}
	relationship := map[string]any{"related-to": "generic-vnf", "related-link": "/network/generic-vnfs/generic-vnf/v"}
	version := func() any { d, _ := s.Get(actorResource); return d["resource-version"] }
	if err := s.Act(simulator.Action{Action: "put", URI: "/aai/v32" + actorResource, Body: document}); err != nil {
		t.Fatal(err)
	}
	first := version()
	if err := s.Act(
		simulator.Action{Action: "put", URI: actorResource, Body: document},
		simulator.Action{Action: "patch", URI: actorResource, Body: map[string]any{"labels": []string{"a=b"}}},
		simulator.Action{Action: "put", URI: actorResource + "/relationship-list/relationship", Body: relationship},
	); err != nil {
		t.Fatal(err)
	}
	if d, _ := s.Get(actorResource); d["relationship-list"] == nil || d["labels"] == nil || version() == first {
		t.Errorf("got %v", d)
	}
	if err := s.Act(simulator.Action{Action: "delete", URI: actorResource}); err != nil || version() != nil {
		t.Errorf("after the deletion: %v, %v", version(), err)
	}
	if len(s.Requests()) > 0 || len(s.Violations()) > 0 {
		t.Errorf("requests %v, violations %v", s.Requests(), s.Violations())
	}
	for name, a := range map[string]simulator.Action{
		"a verb that is none":  {Action: "post", URI: actorResource},
		"a path that is none":  {Action: "put", URI: "/nowhere", Body: document},
		"a node without parts": {Action: "put", URI: actorResource},
		"nothing to delete":    {Action: "delete", URI: actorResource},
	} {
		if err := s.Act(a); err == nil || !strings.Contains(err.Error(), a.URI) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnActorByTheControlSurface(t *testing.T) {
	s, _ := stage(t, simulator.Options{})
	control := httptest.NewServer(s.Control())
	t.Cleanup(control.Close)
	body := `[{"action":"put","uri":"` + actorResource + `","body":{"name":"x","group":"","version":"v1","kind":"Pod","namespace":"","selflink":"s"}}]`
	if status, _, text := ask(t, http.MethodPost, control.URL+"/__sim/actor", body); status != http.StatusNoContent {
		t.Fatalf("%d %s", status, text)
	}
	if _, ok := s.Get(actorResource); !ok {
		t.Error("it was not done")
	}
	if status, _, text := ask(t, http.MethodPost, control.URL+"/__sim/actor", `[{"action":"delete","uri":"/nowhere"}]`); status != http.StatusBadRequest || !strings.Contains(text, "/nowhere") {
		t.Errorf("%d %s", status, text)
	}
}

func TestFaultsThatAnswerLikeAAI(t *testing.T) {
	s, server := stage(t, simulator.Options{})
	url := server.URL + "/aai/v32/cloud-infrastructure/cloud-regions/cloud-region/o/r"
	faults := func(list ...simulator.Fault) {
		t.Helper()
		s.ClearFaults()
		if err := s.AddFaults(list...); err != nil {
			t.Fatal(err)
		}
	}
	faults(simulator.Fault{Code: "AAI_7406", RetryAfter: "7"})
	if status, header, body := ask(t, http.MethodGet, url, ""); status != 400 || header.Get("Retry-After") != "7" || !strings.Contains(body, `"SVC7406"`) || !strings.Contains(body, `"ERR.5.4.7406"`) {
		t.Errorf("%d %v %s", status, header, body)
	}
	faults(simulator.Fault{Code: "AAI_6134"})
	if status, _, body := ask(t, http.MethodGet, url, ""); status != 500 || !strings.Contains(body, `"ERR.5.4.6134"`) {
		t.Errorf("%d %s", status, body)
	}
	faults()
	_, _, whole := ask(t, http.MethodGet, url, "")
	faults(simulator.Fault{Truncate: true})
	if status, _, half := ask(t, http.MethodGet, url, ""); status != 200 || len(half) >= len(whole) || !strings.HasPrefix(whole, half) {
		t.Errorf("%d %q of %q", status, half, whole)
	}
	faults(simulator.Fault{BodyContains: "poison", Status: 502})
	for body, want := range map[string]int{`{"x":"poison"}`: 502, `{"x":"water"}`: 400} {
		if status, _, text := ask(t, http.MethodPost, server.URL+"/aai/v32/bulk/single-transaction", body); status != want {
			t.Errorf("%s: %d %s", body, status, text)
		}
	}
	for name, f := range map[string]simulator.Fault{"unknown code": {Code: "AAI_1"}, "code and status": {Code: "AAI_7406", Status: 500}} {
		if s.AddFaults(f) == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func TestBulkLimit(t *testing.T) {
	_, server := stage(t, simulator.Options{BulkLimit: 1})
	op := `{"action":"patch","uri":"` + actorResource + `","body":{}}`
	if status, _, body := ask(t, http.MethodPost, server.URL+"/aai/v32/bulk/single-transaction", `{"operations":[`+op+`,`+op+`]}`); status != 400 || !strings.Contains(body, "Allowed limit = 1") || !strings.Contains(body, "ERR.5.4.6147") {
		t.Errorf("%d %s", status, body)
	}
}
