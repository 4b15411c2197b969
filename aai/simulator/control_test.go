package simulator

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// control sends a request to the control surface.
func (h *harness) control(method, path, body string) outcome {
	h.t.Helper()
	w := httptest.NewRecorder()
	h.Control().ServeHTTP(w, httptest.NewRequestWithContext(h.t.Context(), method, path, strings.NewReader(body)))
	return outcome{status: w.Code, header: w.Header(), body: w.Body.String()}
}

func decodeInto[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("cannot decode %s: %v", text, err)
	}
	return v
}

func TestJournalTellsEverythingButSecrets(t *testing.T) {
	h := newHarness(t, Options{Users: map[string]string{"AAI": "secret"}})
	h.must(call{method: "PUT", path: pod, body: podBody, header: map[string]string{"Authorization": basicAuth("AAI", "secret")}})
	h.send(call{path: resources + "?data-owner=x", header: map[string]string{"Cookie": "session"}})
	got := decodeInto[[]Request](t, h.control("GET", "/__sim/requests", "").body)
	diff(t, "over the wire and in process", h.Requests(), got)
	diff(t, "requests", 2, len(got))
	header := got[0].Header
	got[0].Header = nil
	want := Request{Sequence: 1, Time: base, Method: "PUT", Path: "/aai/v32" + pod, Body: podBody, Status: 201}
	want.Time = got[0].Time // equal but for the location
	if !got[0].Time.Equal(base) {
		t.Errorf("time %s, want %s", got[0].Time, base)
	}
	diff(t, "first request", want, got[0])
	diff(t, "query of the second", "data-owner=x", got[1].Query)
	diff(t, "status of the second", 403, got[1].Status)
	diff(t, "application", "test", header.Get("X-FromAppId"))
	diff(t, "credentials", "REDACTED", header.Get("Authorization"))
	diff(t, "cookie", "REDACTED", got[1].Header.Get("Cookie"))
	diff(t, "since 1", got[1:], decodeInto[[]Request](t, h.control("GET", "/__sim/requests?since=1", "").body))
	diff(t, "since 2", "[]\n", h.control("GET", "/__sim/requests?since=2", "").body)
	diff(t, "since nonsense", 400, h.control("GET", "/__sim/requests?since=x", "").status)
}

func TestJournalIsBounded(t *testing.T) {
	h := newHarness(t, Options{JournalSize: 3})
	for range 5 {
		h.send(call{path: vnf})
	}
	kept := h.Requests()
	sequences := make([]uint64, len(kept))
	for i, r := range kept {
		sequences[i] = r.Sequence
	}
	diff(t, "requests kept", []uint64{3, 4, 5}, sequences)

	j := &journal{limit: 1000}
	for range 5 {
		j.add(Request{Body: strings.Repeat("x", journalBytes/4)})
	}
	diff(t, "big requests kept", 4, len(j.since(0)))
}

func TestStateGoesOutAndComesBack(t *testing.T) {
	h := newHarness(t, Options{})
	h.must(put1(pod, strings.Replace(linked(vnf, module), "{", `{"labels":["a","b"],`, 1)))
	h.must(patch1(vnf, `{"vcpu":4}`))
	state := h.control("GET", "/__sim/state", "").body
	other := New(Options{Clock: func() time.Time { return base }})
	copied := &harness{other, t}
	diff(t, "status of PUT", http.StatusNoContent, copied.control("PUT", "/__sim/state", state).status)
	diff(t, "state", state, copied.control("GET", "/__sim/state", "").body)
	checkInvariants(t, other.graph)

	before := copied.version(pod)
	copied.must(patch1(pod, `{}`))
	if after := copied.version(pod); after <= before {
		t.Errorf("resource-version went from %s to %s", before, after)
	}
	copied.seed(GenericVNF("vnf-1"))
	diff(t, "status of PUT without versions", http.StatusNoContent, copied.control("PUT", "/__sim/state", `[{"uri":"`+vnf+`","body":{"vnf-type":"t"}}]`).status)
	if first := copied.version(vnf); first <= before {
		t.Errorf("the first resource-version of the new inventory is %s, the old one had %s", first, before)
	}
	diff(t, "status of empty PUT", http.StatusNoContent, copied.control("PUT", "/__sim/state", `[]`).status)
	diff(t, "empty state", "[]\n", copied.control("GET", "/__sim/state", "").body)
}

func TestStateIsReplacedWhollyOrNotAtAll(t *testing.T) {
	for name, tc := range map[string]struct{ body, want string }{
		"unknown field":   {`[{"uri":"` + vnf + `","body":{},"extra":1}]`, "extra"},
		"no list":         {`{}`, "cannot read body"},
		"more than one":   {`[][]`, "more data"},
		"orphan":          {`[{"uri":"` + tenant + `","body":{"tenant-name":"n"}}]`, "No parent Node of type cloud-region"},
		"incomplete":      {`[{"uri":"` + vnf + `","body":{}}]`, "Missing required property: vnf-type"},
		"not a path":      {`[{"uri":"/x/y","body":{}}]`, `"/x/y"`},
		"container":       {`[{"uri":"/network/generic-vnfs","body":{}}]`, `"/network/generic-vnfs"`},
		"version no text": {`[{"uri":"` + vnf + `","body":{"vnf-type":"t","resource-version":"x"}}]`, `"x"`},
		"dangling edge": {
			`[{"uri":"` + vnf + `","body":{"vnf-type":"t","relationship-list":{"relationship":[{"related-link":"` + region + `"}]}}}]`,
			"Could not find object at",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, Options{})
			before := h.State()
			out := h.control("PUT", "/__sim/state", tc.body)
			diff(t, "status", http.StatusBadRequest, out.status)
			if !strings.Contains(out.body, tc.want) {
				t.Errorf("error %q does not name %q", out.body, tc.want)
			}
			diff(t, "state", before, h.State())
		})
	}
}

func TestSeedAddsAndReplaces(t *testing.T) {
	h := newHarness(t, Options{})
	h.must(put1(pod, linked(vnf)))
	changed := GenericVNF("vnf-1")
	changed.Body["prov-status"] = "ACTIVE"
	h.seed(changed, GenericVNF("vnf-3"))
	doc, _ := h.Get("/aai/v32" + vnf)
	diff(t, "replaced", "ACTIVE", doc["prov-status"])
	diff(t, "its edges stay", []string{pod}, links(h, vnf))
	diff(t, "VNFs", 3, len(h.List("/network/generic-vnfs")))
	diff(t, "journal", 1, len(h.Requests()))
	if err := h.Seed(GenericVNF("vnf-4"), Tenant("nobody", "nowhere", "t")); err == nil {
		t.Fatal("a tenant without region was seeded")
	}
	if _, ok := h.Get("/network/generic-vnfs/generic-vnf/vnf-4"); ok {
		t.Error("a failed Seed left a node behind")
	}
}

func TestHelpersRefuseMistypedURIs(t *testing.T) {
	h := newHarness(t, Options{})
	for name, use := range map[string]func(){
		"get of a container": func() { h.Get(resources) },
		"list of a node":     func() { h.List(vnf) },
		"no path":            func() { h.Get("/wrong/generic-vnfs/generic-vnf/x") },
		"bad options":        func() { New(Options{JournalSize: -1}) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			use()
		})
	}
}

func TestFaultsOnTheControlSurface(t *testing.T) {
	h := newHarness(t, Options{})
	rules := `[{"method":"GET","path-prefix":"/aai/v32/network","count":2,"status":503,"delay":"1ms"},{"drop":"after-commit"}]`
	diff(t, "status of POST", http.StatusNoContent, h.control("POST", "/__sim/faults", rules).status)
	diff(t, "in process", []Fault{
		{Method: "GET", PathPrefix: "/aai/v32/network", Count: 2, Delay: time.Millisecond, Status: 503}, {Drop: DropAfterCommit},
	}, h.Faults())
	diff(t, "GET", rules+"\n", h.control("GET", "/__sim/faults", "").body)
	diff(t, "status of DELETE", http.StatusNoContent, h.control("DELETE", "/__sim/faults", "").status)
	diff(t, "after DELETE", "[]\n", h.control("GET", "/__sim/faults", "").body)
	for name, bad := range map[string]string{
		"unknown field": `[{"path_prefix":"/x"}]`, "bad delay": `[{"delay":"soon"}]`, "negative delay": `[{"delay":"-1s"}]`,
		"bad status": `[{"status":99}]`, "bad drop": `[{"drop":"later"}]`, "negative count": `[{"count":-1}]`,
		"status and drop": `[{"status":503,"drop":"before-commit"}]`, "no list": `{}`, "second of two": `[{"status":503},{"status":1}]`,
	} {
		t.Run(name, func(t *testing.T) {
			diff(t, "status", http.StatusBadRequest, h.control("POST", "/__sim/faults", bad).status)
			diff(t, "rules", []Fault{}, h.Faults())
		})
	}
}

func TestControlSurfaceIsNoPartOfTheAPI(t *testing.T) {
	h := newHarness(t, Options{})
	diff(t, "API path on control", 404, h.control("GET", "/aai/v32"+vnf, "").status)
	diff(t, "control path on API", 400, h.send(call{path: "/aai/../__sim/state"}).status)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/__sim/state", nil))
	body, _ := io.ReadAll(w.Body)
	if w.Code != http.StatusInternalServerError && w.Code != http.StatusBadRequest {
		t.Errorf("the API answers a control path with %d %s", w.Code, body)
	}
}
