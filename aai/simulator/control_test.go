package simulator

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestJournalOmitsCredentials(t *testing.T) {
	h := newHarness(t, Options{Users: map[string]string{"AAI": "secret"}})
	h.must(call{method: "PUT", path: pod, body: podBody, header: map[string]string{"Authorization": basicAuth("AAI", "secret")}})
	h.send(call{path: resources + "?data-owner=x", header: map[string]string{"Cookie": "session"}})
	got := decodeInto[[]Request](t, h.control("GET", "/__sim/requests", "").body)
	diff(t, "over the wire and in process", h.Requests(), got)
	diff(t, "requests", 2, len(got))
	header := got[0].Header
	got[0].Header = nil
	want := Request{Sequence: 1, Time: base, Method: "PUT", Path: "/aai/v32" + pod, Body: podBody, Status: 201}
	want.Time = got[0].Time // The times are equal, but their locations differ.
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

func TestStateRoundTrip(t *testing.T) {
	h := newHarness(t, Options{})
	h.must(put1(pod, strings.Replace(linked(vnf, module), "{", `{"labels":["a","b"],`, 1)))
	h.must(patch1(vnf, `{"vcpu":4}`))
	state := h.control("GET", "/__sim/state", "").body
	copied := &harness{New(Options{Clock: func() time.Time { return base }}), t, base}
	diff(t, "status of PUT", http.StatusNoContent, copied.control("PUT", "/__sim/state", state).status)
	diff(t, "state", state, copied.control("GET", "/__sim/state", "").body)
	checkInvariants(t, copied.inventory)

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

func TestReplaceStateIsAtomic(t *testing.T) {
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

func TestGetAndListPanicOnInvalidURIs(t *testing.T) {
	h := newHarness(t, Options{})
	for name, use := range map[string]func(){
		"get of a container": func() { h.Get(resources) },
		"list of a node":     func() { h.List(vnf) },
		"no path":            func() { h.Get("/wrong/generic-vnfs/generic-vnf/x") },
		"bad options":        func() { New(Options{BulkLimit: -1}) },
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

func TestStrictModeLogsViolations(t *testing.T) {
	withHeader := func(c call, name, value string) call {
		c.header = map[string]string{name: value, "X-TransactionId": "tx-0"}
		return c
	}
	fresh := func(c call) call { return withHeader(c, "X-TransactionId", "tx-0") }
	for name, tc := range map[string]struct {
		setup []call
		call  call
		want  []ViolationKind
	}{
		"good create":             {call: fresh(put1(pod, linked(vnf))), want: nil},
		"good patch":              {setup: []call{put1(pod, podBody)}, call: fresh(patch1(pod, `{"labels":["a"]}`)), want: nil},
		"good delete":             {setup: []call{put1(pod, podBody)}, call: fresh(delete1(pod+"?resource-version={rv}", "")), want: nil},
		"good bulk":               {call: fresh(bulk1(operations(op("put", pod, podBody), op("patch", pod, `{"labels":["a"]}`)))), want: nil},
		"good nested create":      {call: fresh(put1(vnf+"3", `{"vnf-type":"t","vf-modules":{"vf-module":[{"vf-module-id":"m"}]}}`)), want: nil},
		"unknown property":        {call: fresh(put1(pod, `{`+podFields+`,"status":"Ready"}`)), want: []ViolationKind{UnknownProperty}},
		"unknown below":           {call: fresh(put1(pod, `{`+podFields+`,"relationship-list":{"relationships":[]}}`)), want: []ViolationKind{UnknownProperty}},
		"unknown in relationship": {call: fresh(put1(pod, strings.Replace(linked(vnf), `"related-link"`, `"link":"","related-link"`, 1))), want: []ViolationKind{UnknownProperty}},
		"wrong case":              {call: fresh(put1(pod, `{`+podFields+`,"dataOwner":"x"}`)), want: []ViolationKind{WrongCase}},
		"number for a string":     {call: fresh(put1(pod, `{`+podFields+`,"data-owner":5}`)), want: []ViolationKind{WrongType}},
		"string for a boolean":    {call: fresh(put1(vnf+"3", `{"vnf-type":"t","in-maint":"true"}`)), want: []ViolationKind{WrongType}},
		"string for an integer":   {call: fresh(put1(vnf+"3", `{"vnf-type":"t","vcpu":"4"}`)), want: []ViolationKind{WrongType}},
		"labels as a string":      {call: fresh(put1(pod, `{`+podFields+`,"labels":"a"}`)), want: []ViolationKind{WrongType}},
		"labels twice":            {call: fresh(put1(pod, `{`+podFields+`,"labels":["a","a"]}`)), want: []ViolationKind{DuplicateLabel}},
		"edges as an array":       {call: fresh(put1(pod, `{`+podFields+`,"relationship-list":[]}`)), want: []ViolationKind{WrongType}},
		"wrapped":                 {call: fresh(put1(pod, `{"k8s-resource":`+podBody+`}`)), want: []ViolationKind{WrappedBody}},
		"no accept":               {call: withHeader(call{path: vnf}, "Accept", ""), want: []ViolationKind{MissingAccept}},
		"any accept":              {call: withHeader(call{path: vnf}, "Accept", "*/*"), want: []ViolationKind{XMLAccept}},
		"raw colon":               {call: fresh(call{path: resources + "/k8s-resource/a:b"}), want: []ViolationKind{NonCanonicalEncoding}},
		"raw colon in bulk":       {call: fresh(bulk1(operations(op("put", resources+"/k8s-resource/a:b", podBody)))), want: []ViolationKind{NonCanonicalEncoding}},
		"patch of nothing":        {setup: []call{put1(pod, podBody)}, call: fresh(patch1(pod, `{}`)), want: []ViolationKind{UnchangedPatch}},
		"patch of the same edges": {setup: []call{put1(pod, linked(vnf))}, call: fresh(patch1(pod, `{"relationship-list":{"relationship":[{"related-link":"`+vnf+`"}]}}`)), want: []ViolationKind{UnchangedPatch}},
		"patch of edges":          {setup: []call{put1(pod, linked(vnf))}, call: fresh(patch1(pod, `{"relationship-list":{"relationship":[{"related-link":"`+otherVNF+`"}]}}`)), want: nil},
		"two faults in one body":  {call: fresh(put1(pod, `{`+podFields+`,"status":"Ready","labels":["a","a"]}`)), want: []ViolationKind{DuplicateLabel, UnknownProperty}},
		"transaction id again":    {setup: []call{put1(pod, podBody)}, call: call{path: pod}, want: []ViolationKind{ReusedTransactionID}},
		"the same request again":  {setup: []call{{path: vnf}}, call: call{path: vnf}, want: nil},
		"another body":            {setup: []call{put1(pod, podBody)}, call: put1(pod, linked(vnf)), want: []ViolationKind{ReusedTransactionID}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, Options{Strict: true})
			for _, c := range tc.setup {
				h.must(c)
			}
			h.send(tc.call)
			log := h.Violations()
			kinds := make([]ViolationKind, len(log))
			for i, v := range log {
				kinds[i] = v.Kind
			}
			diff(t, "violations", append([]ViolationKind{}, tc.want...), kinds)
		})
	}
}

func TestUnchangedPut(t *testing.T) {
	h := newHarness(t, Options{Strict: true})
	body := `{` + podFields + `,"labels":["b","a"]`
	h.must(put1(pod, body+`}`))
	c := put1(pod, `{`+podFields+`,"labels":["a","b"],"resource-version":"`+h.version(pod)+`"}`)
	c.header = map[string]string{"X-TransactionId": "tx-2"}
	h.must(c)
	edges := put1(pod, strings.Replace(linked(vnf), "{", `{"labels":["a","b"],"resource-version":"`+h.version(pod)+`",`, 1))
	edges.header = map[string]string{"X-TransactionId": "tx-3"}
	h.must(edges)
	diff(t, "violations, as a PUT of other edges is a change", 1, len(h.Violations()))
	got := h.Violations()[0]
	want := Violation{
		Time: base, Kind: UnchangedPut, Request: "PUT /aai/v32" + pod, TransactionID: "tx-2", Detail: pod[1:] + " already is what was sent",
	}
	diff(t, "violation", want, got)
}

func TestDefaultModeLogsNothingAndAnswersTheSame(t *testing.T) {
	bad := put1(pod, `{`+podFields+`,"status":"Ready","labels":"a"}`)
	strict, faithful := newHarness(t, Options{Strict: true}), newHarness(t, Options{})
	diff(t, "status", strict.send(bad).status, faithful.send(bad).status)
	diff(t, "inventory", strict.State(), faithful.State())
	diff(t, "violations", []Violation{}, faithful.Violations())
	diff(t, "violations in strict mode", 2, len(strict.Violations()))
}

func TestRejectRejectsWhatStrictModeLogs(t *testing.T) {
	created := []call{put1(pod, podBody)}
	fresh := func(c call) call {
		c.header = map[string]string{"X-TransactionId": "fresh"}
		return c
	}
	for name, tc := range map[string]struct {
		setup  []call
		call   call
		status int
		names  string
	}{
		"good":                 {nil, fresh(put1(pod, podBody)), 201, ""},
		"unknown property":     {nil, fresh(put1(pod, `{`+podFields+`,"status":"Ready"}`)), 400, "unknown-property"},
		"patch without effect": {created, fresh(patch1(pod, "{}")), 400, "unchanged-patch"},
		"one of many":          {created, fresh(bulk1(operations(op("put", pod+"2", podBody), op("patch", pod, "{}")))), 400, "unchanged-patch"},
		"read":                 {created, call{path: pod}, 400, "reused-transaction-id"},
		"its own error":        {created, fresh(put1(pod, `{`+podFields+`,"status":"Ready"}`)), 412, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, Options{Reject: true})
			for _, c := range tc.setup {
				h.must(c)
			}
			before := h.State()
			out := h.send(tc.call)
			diff(t, "status", tc.status, out.status)
			if tc.status == http.StatusBadRequest {
				diff(t, "code", "ERR.5.2.3000", out.ec(t))
				diff(t, "inventory", before, h.State())
				diff(t, "violations", 1, len(h.Violations()))
			}
			if !strings.Contains(out.body, tc.names) {
				t.Errorf("%s does not name %s", out.body, tc.names)
			}
		})
	}
}

func TestOptionsAreValidated(t *testing.T) {
	for name, tc := range map[string]struct {
		opts Options
		want string
	}{
		"zero":            {Options{}, ""},
		"unknown version": {Options{Versions: []string{"v33"}}, `"v33"`},
		"no version":      {Options{Versions: []string{"32"}}, `"32"`},
		"bulk limit":      {Options{BulkLimit: -1}, "-1"},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.opts.Validate()
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Validate() = %v, want an error naming %s", err, tc.want)
			}
		})
	}
}
