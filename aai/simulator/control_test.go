package simulator

import (
	"math"
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

func TestMemoryIsBounded(t *testing.T) {
	h := newHarness(t, Options{Strict: true})
	for range maxJournal + 1 {
		h.send(call{path: echoPath, header: map[string]string{"Accept": "*/*"}})
	}
	requests := h.Requests()
	diff(t, "requests in the journal", maxJournal, len(requests))
	diff(t, "the first of them", uint64(2), requests[0].Sequence)
	diff(t, "violations", maxViolations, len(h.Violations()))
	h.fault(Fault{Method: "GET", Stale: time.Hour})
	for range maxSnapshots + 1 {
		h.must(patch1(vnf, "{}"))
	}
	diff(t, "inventories for stale reads", maxSnapshots, len(h.snapshots))
}

func TestStateRoundTrip(t *testing.T) {
	h := newHarness(t, Options{})
	h.must(put1(pod, with(`"labels":["a","b"]`, linked(vnf, module))))
	h.must(patch1(vnf, `{"vcpu":9007199254740993}`))
	state := h.control("GET", "/__sim/state", "").body
	copied := &harness{Simulator: New(Options{Clock: func() time.Time { return base }}), t: t}
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

// TestActorWritesAsAnotherProgram asserts that an actor needs no credentials, no resource-version and no headers, meets no faults,
// and is in no journal.
func TestActorWritesAsAnotherProgram(t *testing.T) {
	h := newHarness(t, Options{Users: map[string]string{"AAI": "secret"}})
	h.seed(Fixture{URI: pod, Body: decodeInto[map[string]any](t, podBody)})
	h.fault(Fault{Status: 503})
	for _, step := range []struct{ actions, refused string }{
		{`[{"action":"put","uri":"` + pod + `","body":` + with(`"data-owner":"me"`, podBody) + `},{"action":"put","uri":"` + podEdge + `","body":` + linkTo(vnf) + `}]`, ""},
		{`[{"action":"patch","uri":"/aai/v30` + pod + `","body":{"data-source":"x"}}]`, ""},
		{`[{"action":"patch","uri":"` + pod + `","body":{"kind":"Job"}},{"action":"delete","uri":"` + pod + `9"}]`, `cannot do action 1, delete "` + pod + `9": status 404, ERR.5.4.6114`},
		{`[{"action":"get","uri":"` + pod + `"}]`, `action "get" is not put, patch or delete`},
		{`[{"action":"put","uri":"/network/pnfs/pnf/x","body":{}}]`, "Unrecognized AAI object pnfs"},
		{`[{"action":"delete","uri":"` + otherVNF + `"}]`, ""},
	} {
		want := http.StatusNoContent
		if step.refused != "" {
			want = http.StatusBadRequest
		}
		out := h.control("POST", "/__sim/actor", step.actions)
		diff(t, step.actions, want, out.status)
		if !strings.Contains(out.body, step.refused) {
			t.Errorf("error %q does not name %s", out.body, step.refused)
		}
	}
	doc := h.document(pod)
	diff(t, "the Pod", []any{"me", "x", "Job"}, []any{doc["data-owner"], doc["data-source"], doc["kind"]})
	diff(t, "its relationships", []string{vnf}, links(h, pod))
	diff(t, "VNFs", 1, len(h.List("/network/generic-vnfs")))
	diff(t, "journal", 0, len(h.Requests()))
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
	rules := `[{"method":"GET","path-prefix":"/aai/v32/network","count":2,"status":503,"delay":"1ms"},{"probability":1,"drop":"after-commit"}]`
	diff(t, "status of POST", http.StatusNoContent, h.control("POST", "/__sim/faults", rules).status)
	diff(t, "in process", []Fault{
		{Method: "GET", PathPrefix: "/aai/v32/network", Count: 2, Delay: time.Millisecond, Status: 503}, {Probability: 1, Drop: DropAfterCommit},
	}, h.Faults())
	out := h.control("GET", "/__sim/faults", "")
	diff(t, "GET", rules+"\n", out.body)
	diff(t, "type", jsonType, out.header.Get("Content-Type"))
	diff(t, "status of DELETE", http.StatusNoContent, h.control("DELETE", "/__sim/faults", "").status)
	diff(t, "status of DELETE of none", http.StatusNoContent, h.control("DELETE", "/__sim/faults", "").status)
	diff(t, "after DELETE", "[]\n", h.control("GET", "/__sim/faults", "").body)
	for name, tc := range map[string]struct{ bad, want string }{
		"unknown field":          {`[{"path_prefix":"/x"}]`, "path_prefix"},
		"no list":                {`{}`, "cannot read body"},
		"second of two":          {`[{"status":503},{"status":1}]`, "status 1"},
		"bad delay":              {`[{"delay":"soon"}]`, `"soon"`},
		"negative delay":         {`[{"delay":"-1s"}]`, "delay -1s"},
		"negative stale":         {`[{"stale":"-1ns"}]`, "stale -1ns"},
		"negative drip":          {`[{"drip":"-1s"}]`, "drip -1s"},
		"negative count":         {`[{"count":-1}]`, "count -1"},
		"negative skip":          {`[{"skip":-1}]`, "skip -1"},
		"negative concurrent":    {`[{"concurrent":-1}]`, "concurrent -1"},
		"bad probability":        {`[{"probability":1.5}]`, "1.5"},
		"negative probability":   {`[{"probability":-0.5}]`, "-0.5"},
		"status below":           {`[{"status":199}]`, "199"},
		"status above":           {`[{"status":600}]`, "600"},
		"status and drop":        {`[{"status":503,"drop":"before-commit"}]`, "exclude each other"},
		"unknown code":           {`[{"code":"AAI_1"}]`, `"AAI_1"`},
		"code and status":        {`[{"code":"AAI_6134","status":503}]`, `"AAI_6134"`},
		"code and drop":          {`[{"code":"AAI_6134","drop":"after-commit"}]`, `"AAI_6134"`},
		"bad drop":               {`[{"drop":"later"}]`, `"later"`},
		"bad manner":             {`[{"drop":"mid-body","manner":"politely"}]`, `"politely"`},
		"manner of what":         {`[{"manner":"reset"}]`, "needs a drop"},
		"location of what":       {`[{"location":"/x"}]`, "location"},
		"location of an error":   {`[{"location":"/x","status":503}]`, "location"},
		"redirect to nowhere":    {`[{"status":307}]`, "location"},
		"body of what":           {`[{"body":"{}"}]`, "status"},
		"empty and half":         {`[{"empty":true,"truncate":true}]`, "truncate"},
		"wrong length and close": {`[{"wrong-length":true,"drop":"mid-body"}]`, "mid-body"},
	} {
		t.Run(name, func(t *testing.T) {
			out := h.control("POST", "/__sim/faults", tc.bad)
			diff(t, "status", http.StatusBadRequest, out.status)
			if !strings.Contains(out.body, tc.want) {
				t.Errorf("error %q does not name %s", out.body, tc.want)
			}
			diff(t, "rules", []Fault{}, h.Faults())
		})
	}
	if err := h.AddFaults(Fault{Probability: math.NaN()}); err == nil {
		t.Error("a probability that is no number is accepted")
	}
}

func TestStrictModeLogsViolations(t *testing.T) {
	withHeader := func(c call, name, value string) call {
		c.header = map[string]string{name: value}
		return c
	}
	again := func(c call) call { return withHeader(c, "X-TransactionId", "again") }
	for name, tc := range map[string]struct {
		setup []call
		call  call
		want  []ViolationKind
	}{
		"good create":             {call: put1(pod, linked(vnf)), want: nil},
		"good patch":              {setup: []call{put1(pod, podBody)}, call: patch1(pod, `{"labels":["a"]}`), want: nil},
		"good delete":             {setup: []call{put1(pod, podBody)}, call: delete1(pod+"?resource-version={rv}", ""), want: nil},
		"good bulk":               {call: bulk1(operations(op("put", pod, podBody), op("patch", pod, `{"labels":["a"]}`))), want: nil},
		"put of what is there":    {setup: []call{put1(pod, with(`"labels":["b","a"]`, podBody))}, call: put1(pod, with(`"labels":["a","b"],`+versioned, podBody)), want: []ViolationKind{UnchangedPut}},
		"put of other edges":      {setup: []call{put1(pod, podBody)}, call: put1(pod, with(versioned, linked(vnf))), want: nil},
		"put of fewer edges":      {setup: []call{put1(pod, linked(vnf))}, call: put1(pod, with(versioned+`,"relationship-list":{"relationship":[]}`, podBody)), want: nil},
		"good nested create":      {call: put1(vnf+"3", `{"vnf-type":"t","vf-modules":{"vf-module":[{"vf-module-id":"m"}]}}`), want: nil},
		"unknown property":        {call: put1(pod, `{`+podFields+`,"status":"Ready"}`), want: []ViolationKind{UnknownProperty}},
		"unknown below":           {call: put1(pod, `{`+podFields+`,"relationship-list":{"relationships":[]}}`), want: []ViolationKind{UnknownProperty}},
		"unknown in relationship": {call: put1(pod, strings.Replace(linked(vnf), `"related-link"`, `"link":"","related-link"`, 1)), want: []ViolationKind{UnknownProperty}},
		"wrong case":              {call: put1(pod, `{`+podFields+`,"dataOwner":"x"}`), want: []ViolationKind{WrongCase}},
		"number for a string":     {call: put1(pod, `{`+podFields+`,"data-owner":5}`), want: []ViolationKind{WrongType}},
		"string for a boolean":    {call: put1(vnf+"3", `{"vnf-type":"t","in-maint":"true"}`), want: []ViolationKind{WrongType}},
		"string for an integer":   {call: put1(vnf+"3", `{"vnf-type":"t","vcpu":"4"}`), want: []ViolationKind{WrongType}},
		"labels as a string":      {call: put1(pod, `{`+podFields+`,"labels":"a"}`), want: []ViolationKind{WrongType}},
		"labels twice":            {call: put1(pod, `{`+podFields+`,"labels":["a","a"]}`), want: []ViolationKind{DuplicateLabel}},
		"edges as an array":       {call: put1(pod, `{`+podFields+`,"relationship-list":[]}`), want: []ViolationKind{WrongType}},
		"wrapped":                 {call: put1(pod, `{"k8s-resource":`+podBody+`}`), want: []ViolationKind{WrappedBody}},
		"wrapped beside others":   {call: put1(pod, with(`"k8s-resource":{}`, podBody)), want: []ViolationKind{UnknownProperty}},
		"wrapped in another type": {call: put1(pod, `{"tenant":{}}`), want: []ViolationKind{UnknownProperty}},
		"no document wrapped":     {call: put1(pod, `{"k8s-resource":1}`), want: []ViolationKind{UnknownProperty}},
		"number among labels":     {call: put1(pod, with(`"labels":[1]`, podBody)), want: []ViolationKind{WrongType}},
		"no accept":               {call: withHeader(call{path: vnf}, "Accept", ""), want: []ViolationKind{MissingAccept}},
		"any accept":              {call: withHeader(call{path: vnf}, "Accept", "*/*"), want: []ViolationKind{XMLAccept}},
		"raw colon":               {call: call{path: resources + "/k8s-resource/a:b"}, want: []ViolationKind{NonCanonicalEncoding}},
		"raw colon in bulk":       {call: bulk1(operations(op("put", resources+"/k8s-resource/a:b", podBody))), want: []ViolationKind{NonCanonicalEncoding}},
		"patch of nothing":        {setup: []call{put1(pod, podBody)}, call: patch1(pod, `{}`), want: []ViolationKind{UnchangedPatch}},
		"patch of the same edges": {setup: []call{put1(pod, linked(vnf))}, call: patch1(pod, `{`+relationshipsTo(vnf)+`}`), want: []ViolationKind{UnchangedPatch}},
		"patch of edges":          {setup: []call{put1(pod, linked(vnf))}, call: patch1(pod, `{`+relationshipsTo(otherVNF)+`}`), want: nil},
		"two faults in one body":  {call: put1(pod, `{`+podFields+`,"status":"Ready","labels":["a","a"]}`), want: []ViolationKind{DuplicateLabel, UnknownProperty}},
		"transaction id again":    {setup: []call{again(put1(pod, podBody))}, call: again(call{path: pod}), want: []ViolationKind{ReusedTransactionID}},
		"the same request again":  {setup: []call{again(call{path: vnf})}, call: again(call{path: vnf}), want: nil},
		"another body":            {setup: []call{again(put1(pod, podBody))}, call: again(put1(pod, linked(vnf))), want: []ViolationKind{ReusedTransactionID}},
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

// TestStrictModeOnlyLogs asserts that strict mode answers as without it, and logs what it says in the documentation.
func TestStrictModeOnlyLogs(t *testing.T) {
	bad := put1(pod, with(`"status":"Ready"`, podBody))
	bad.header = map[string]string{"X-TransactionId": "mine"}
	strict, faithful := newHarness(t, Options{Strict: true}), newHarness(t, Options{})
	diff(t, "status", strict.send(bad).status, faithful.send(bad).status)
	diff(t, "inventory", strict.State(), faithful.State())
	diff(t, "violations", []Violation{}, faithful.Violations())
	diff(t, "violations in strict mode", []Violation{{
		Time: base, Kind: UnknownProperty, Request: "PUT /aai/v32" + pod, TransactionID: "mine", Detail: `k8s-resource has no property "status"`,
	}}, strict.Violations())
}

func TestRejectRejectsWhatStrictModeLogs(t *testing.T) {
	created := []call{put1(pod, podBody)}
	again := func(c call) call {
		c.header = map[string]string{"X-TransactionId": "again"}
		return c
	}
	for name, tc := range map[string]struct {
		setup  []call
		call   call
		status int
		names  string
	}{
		"good":                 {nil, put1(pod, podBody), 201, ""},
		"unknown property":     {nil, put1(pod, `{`+podFields+`,"status":"Ready"}`), 400, "unknown-property"},
		"patch without effect": {created, patch1(pod, "{}"), 400, "unchanged-patch"},
		"one of many":          {created, bulk1(operations(op("put", pod+"2", podBody), op("patch", pod, "{}"))), 400, `"v32/bulk/single-transaction","Invalid input performing %1 on %2:refused by strict mode: unchanged-patch: `},
		"read":                 {[]call{again(put1(pod, podBody))}, again(call{path: pod}), 400, "reused-transaction-id"},
		"its own error":        {created, put1(pod, `{`+podFields+`,"status":"Ready"}`), 412, ""},
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
		"all versions":    {Options{Versions: []string{"v22", "v32"}}, ""},
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
