package simulator

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestBasePath(t *testing.T) {
	const base = "/inventory/aai"
	h := newHarness(t, Options{BasePath: base})
	send := func(c call) outcome {
		t.Helper()
		r := c.request(t)
		r.URL.Path = strings.TrimPrefix(r.URL.Path, "/aai/v32")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return outcome{w.Code, w.Header(), w.Body.String()}
	}
	api := func(c call) call {
		c.path = base + "/v32" + c.path
		return c
	}
	diff(t, "create", http.StatusCreated, send(api(put1(pod, linked(base+"/v24"+vnf)))).status)
	diff(t, "link", true, strings.Contains(send(api(call{path: pod})).body, `"related-link":"`+base+"/v32"+vnf+`"`))
	diff(t, "bulk", http.StatusCreated, send(api(bulk1(operations(op("patch", base+"/v32"+vnf, "{}"))))).status)
	diff(t, "health", http.StatusOK, send(call{path: base + "/util/echo"}).status)
	diff(t, "latest", http.StatusOK, send(call{path: base + "/latest" + vnf}).status)
	diff(t, "the default is gone", "ERR.5.6.3012", h.send(call{path: "/aai/v32" + vnf}).ec(t))
	diff(t, "event", base+"/v32"+pod, h.Events(0)[0].Header.EntityLink)
	if _, ok := h.Get(base + "/v32" + pod); !ok {
		t.Error("Get does not know the base path")
	}
	h.seed(Fixture{URI: base + "/v32" + vnf + "9", Body: map[string]any{"vnf-type": "t"}})
	if err := h.ReplaceState(h.State()...); err != nil {
		t.Errorf("the state does not come back: %v", err)
	}
	foreign := send(api(put1(resources+"/k8s-resource/x", linked("/aai/v32"+vnf))))
	diff(t, "a link with another base", http.StatusBadRequest, foreign.status)
}

func TestRejectRefusesWhatStrictModeLogs(t *testing.T) {
	created := []call{put1(pod, podBody)}
	fresh := func(c call) call {
		c.header = map[string]string{"X-TransactionId": "fresh"}
		return c
	}
	for name, tc := range map[string]struct {
		given  []call
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
			for _, c := range tc.given {
				h.must(c)
			}
			before, events := h.State(), len(h.Events(0))
			out := h.send(tc.call)
			diff(t, "status", tc.status, out.status)
			if tc.status == http.StatusBadRequest {
				diff(t, "code", "ERR.5.2.3000", out.ec(t))
				diff(t, "inventory", before, h.State())
				diff(t, "events", events, len(h.Events(0)))
				diff(t, "violations", 1, len(h.Violations()))
			}
			if !strings.Contains(out.body, tc.names) {
				t.Errorf("%s does not name %s", out.body, tc.names)
			}
		})
	}
}

func TestImpliedDelete(t *testing.T) {
	for name, tc := range map[string]struct {
		allowed map[string][]string
		status  int
	}{
		"nobody":          {nil, 403},
		"this type":       {map[string][]string{"Test": {"generic-vnf"}}, 200},
		"all types":       {map[string][]string{"test": {"*"}}, 200},
		"another type":    {map[string][]string{"test": {"tenant"}}, 403},
		"another program": {map[string][]string{"other": {"*"}}, 403},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, Options{ImpliedDelete: tc.allowed})
			h.must(put1(pod, linked(module)))
			version := h.version(pod)
			out := h.send(put1(vnf, `{"vnf-type":"t","resource-version":"`+h.version(vnf)+`","vf-modules":{}}`))
			diff(t, "status", tc.status, out.status)
			_, exists := h.Get(module)
			diff(t, "the module exists", tc.status != 200, exists)
			diff(t, "the other end moved", tc.status == 200, h.version(pod) != version)
		})
	}
	h := newHarness(t, Options{ImpliedDelete: map[string][]string{"test": {"*"}}})
	h.must(put1(pod, podBody))
	before := h.State()
	out := h.send(put1(region, `{"resource-version":"`+h.version(region)+`","tenants":{}}`))
	diff(t, "a child that cannot be deleted", "ERR.5.4.6110", out.ec(t))
	diff(t, "inventory", before, h.State())
}

func TestVersionOverride(t *testing.T) {
	h := newHarness(t, Options{VersionOverride: "any"})
	h.must(put1(pod, podBody))
	diff(t, "the default", http.StatusPreconditionFailed, h.send(delete1(pod+"?resource-version="+anyVersion, "")).status)
	diff(t, "the value", http.StatusNoContent, h.send(delete1(pod+"?resource-version=any", "")).status)
}

func TestFurtherOptionsAreValidated(t *testing.T) {
	for want, opts := range map[string]Options{
		`"aai"`: {BasePath: "aai"}, `"/aai/"`: {BasePath: "/aai/"}, `"/a:b"`: {BasePath: "/a:b"}, `"pnf"`: {ImpliedDelete: map[string][]string{"x": {"tenant", "pnf"}}},
		"bulk limit -1": {BulkLimit: -1}, "read timeout -1s": {ReadTimeout: -time.Second}, "event log size -1": {EventLogSize: -1},
	} {
		if err := opts.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Validate() = %v, want an error naming %s", err, want)
		}
	}
}

func TestFormats(t *testing.T) {
	h := newHarness(t, Options{})
	h.must(put1(pod, podBody))
	document := h.must(call{path: pod}).body
	for query, want := range map[string]string{
		"?format=pathed":   `{"results":[{"resource-type":"k8s-resource","resource-link":"/aai/v32` + pod + `"}]}`,
		"?format=resource": `{"results":[{"k8s-resource":` + document + `}]}`,
		"?format=count":    `{"results":[{"k8s-resource":1}]}`,
	} {
		for _, path := range []string{pod, resources} {
			body := h.must(call{path: path + query}).body
			diff(t, path+query, want, body)
			diff(t, "JSON", true, json.Valid([]byte(body)))
		}
	}
}
