package simulator

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// The error table of aai-resources 1.17: error.properties and the rules of ErrorLogHelper. A client sorts errors by
// status and ec, so each must be the product's.
func TestErrorTable(t *testing.T) {
	for code, want := range map[errorCode]string{
		"AAI_3000": "400 SVC3000 ERR.5.2.3000", "AAI_3001": "404 SVC3001 ERR.5.6.3001", "AAI_3007": "410 SVC3007 ERR.5.6.3007",
		"AAI_3008": "400 SVC3008 ERR.5.6.3008", "AAI_3012": "400 SVC3012 ERR.5.6.3012", "AAI_3016": "400 SVC3016 ERR.5.6.3007",
		"AAI_3017": "400 SVC3016 ERR.5.6.3007", "AAI_3102": "400 POL3102 ERR.5.1.3102", "AAI_3300": "403 POL3300 ERR.5.1.3300",
		"AAI_4000": "500 SVC3002 ERR.5.4.4000", "AAI_4009": "400 SVC3000 4.0.4009", "AAI_4010": "400 SVC3000 4.0.4010",
		"AAI_4016": "400 SVC3000 4.0.4016", "AAI_5105": "500 SVC3002 ERR.5.4.5105", "AAI_6107": "400 SVC3000 ERR.5.4.6107",
		"AAI_6110": "400 SVC3100 ERR.5.4.6110", "AAI_6111": "400 SVC3000 ERR.5.4.6111", "AAI_6114": "404 SVC3001 ERR.5.4.6114",
		"AAI_6118": "400 SVC3000 ERR.5.4.6118", "AAI_6120": "400 SVC3000 ERR.5.4.6120", "AAI_6129": "404 SVC3003 ERR.5.4.6129",
		"AAI_6130": "412 SVC3000 ERR.5.4.6130", "AAI_6131": "412 SVC3000 ERR.5.4.6131", "AAI_6134": "500 SVC6134 ERR.5.4.6134",
		"AAI_6135": "412 SVC3000 ERR.5.4.6135", "AAI_6137": "400 SVC3000 ERR.5.4.6137", "AAI_6138": "400 SVC3000 ERR.5.4.6138",
		"AAI_6140": "400 SVC3000 ERR.5.4.6140", "AAI_6142": "400 SVC3000 ERR.5.4.6142", "AAI_6145": "400 SVC3000 ERR.5.4.6145",
		"AAI_6147": "400 SVC3000 ERR.5.4.6147", "AAI_6149": "404 SVC3000 ERR.5.4.6149", "AAI_7406": "400 SVC7406 ERR.5.4.7406",
		"AAI_9109": "403 SVC3300 ERR.5.0.9109",
	} {
		h := newHarness(t, Options{})
		h.fault(Fault{Code: string(code)})
		out := h.send(call{path: vnf})
		got := fmt.Sprintf("%d %s %s", out.status, out.refusal(t).id, out.ec(t))
		diff(t, string(code), want, got)
	}
	diff(t, "errors in the table", 34, len(errorSpecs))
}

// A client finds the ec by its form, and the message just before it.
func TestEveryErrorHasItsMessageBeforeItsCode(t *testing.T) {
	for code, spec := range errorSpecs {
		h := newHarness(t, Options{})
		h.fault(Fault{Code: string(code)})
		out := h.send(call{path: vnf}).refusal(t)
		for i, v := range out.variables {
			if !ecPattern.MatchString(v) {
				continue
			}
			diff(t, string(code)+": code", spec.ec, v)
			diff(t, string(code)+": message", spec.message+":by a fault rule", out.variables[i-1])
			diff(t, string(code)+": placeholders", fmt.Sprintf("(msg=%%%d) (ec=%%%d)", i, i+1), out.text[strings.LastIndex(out.text, "(msg="):])
		}
	}
}

// The filters of aai-resources run in an order that decides which of several faults of a request is answered.
func TestOrderOfRejection(t *testing.T) {
	type step struct {
		name, want string
		mend       func(*call)
	}
	header := func(name, value string) func(*call) { return func(c *call) { c.header[name] = value } }
	path := func(p string) func(*call) { return func(c *call) { c.path = p } }
	h := newHarness(t, Options{Users: map[string]string{"AAI": "secret"}})
	c := call{method: "PATCH", path: "/aaix", body: "{", header: map[string]string{
		"X-FromAppId": "", "X-TransactionId": "", "Content-Type": "application/json", "Accept": "",
	}}
	for _, s := range []step{
		{"outside of the base path", "ERR.5.6.3012", path("/aai/v8" + pod)},
		{"no Accept header", "500", header("Accept", "application/json")},
		{"no application", "4.0.4009", header("X-FromAppId", "app")},
		{"no transaction", "4.0.4010", header("X-TransactionId", "tx")},
		{"no credentials", "ERR.5.1.3300", header("Authorization", basicAuth("AAI", "secret"))},
		{"retired version", "ERR.5.6.3007", path("/aai/v40" + pod)},
		{"version not served", "ERR.5.6.3007", path(resources + "/k8s-resource/a:b")},
		{"encoding", "ERR.5.6.3008", path("/network/pnfs/pnf/x")},
		{"content type", "415", header("Content-Type", "application/merge-patch+json")},
		{"body", "ERR.5.2.3000", func(c *call) { c.body = `{"kind":"Job","resource-version":"1"}` }},
		{"object", "ERR.5.2.3000", path(pod)},
		{"node", "ERR.5.4.6114", func(*call) { h.seed(Fixture{URI: pod, Body: decodeInto[map[string]any](t, podBody)}) }},
		{"nothing", "200", func(*call) {}},
	} {
		out := h.send(c)
		got := fmt.Sprint(out.status)
		if ec := out.ec(t); ec != "" {
			got = ec
		}
		diff(t, s.name, s.want, got)
		s.mend(&c)
	}
}

func TestTransactionIDIsTheFirstOfItsHeaders(t *testing.T) {
	names := []string{"X-ONAP-RequestID", "X-RequestID", "X-TransactionId", "X-ECOMP-RequestID"}
	for i := range names {
		header := map[string]string{"X-TransactionId": ""}
		for _, name := range names[i:] {
			header[name] = "from " + name
		}
		h := newHarness(t, Options{})
		h.must(call{method: "PATCH", path: vnf, body: "{}", header: header})
		diff(t, "event id", "from "+names[i], h.Events(0)[0].Header.ID)
	}
}

func TestAnswersOfWritesHaveNoBody(t *testing.T) {
	h := newHarness(t, Options{})
	for _, c := range []call{
		put1(pod, podBody), patch1(pod, "{}"), put1(podEdge, `{"related-link":"`+vnf+`"}`), delete1(podEdge, `{"related-link":"`+vnf+`"}`),
		delete1(pod+"?resource-version="+anyVersion, ""),
	} {
		out := h.must(c)
		diff(t, c.method+" "+c.path, "", out.body)
		if out.header.Get("X-AAI-TXID") == "" {
			t.Errorf("%s %s: no X-AAI-TXID", c.method, c.path)
		}
	}
}

// The wire examples of a cloud-region with its tenant, and of a k8s-resource, as A&AI orders their fields.
func TestDocumentsOnTheWire(t *testing.T) {
	h := newHarness(t, Options{})
	complexURI := "/cloud-infrastructure/complexes/complex/clli1"
	for _, c := range append(complexWith(complexURI, region), patch1(region, `{"cloud-zone":"z","cloud-type":"k8s","owner-defined-type":"t1","complex-name":"clli1","cloud-region-version":"1.0"}`)) {
		h.must(c)
	}
	want := `{"cloud-owner":"owner","cloud-region-id":"region","cloud-type":"k8s","owner-defined-type":"t1","cloud-region-version":"1.0","cloud-zone":"z",` +
		`"complex-name":"clli1","resource-version":"` + h.version(region) + `","orchestration-disabled":false,"in-maint":false,` +
		`"tenants":{"tenant":[{"tenant-id":"t1","tenant-name":"t1-name","resource-version":"` + h.version(tenant) + `"}]},` +
		`"relationship-list":{"relationship":[{"related-to":"complex","relationship-label":"org.onap.relationships.inventory.LocatedIn",` +
		`"related-link":"/aai/v32` + complexURI + `","relationship-data":[{"relationship-key":"complex.physical-location-id","relationship-value":"clli1"}]}]}}`
	diff(t, "cloud-region", want, h.must(call{path: region + "?depth=1"}).body)
}

// The properties that A&AI keeps for itself are neither taken nor shown.
func TestGraphPropertiesAreNoPartOfDocuments(t *testing.T) {
	h := newHarness(t, Options{})
	h.must(put1(pod, `{`+podFields+`,"aai-uri":"/x","source-of-truth":"me","aai-node-type":"n","aai-created-ts":"1","last-mod-source-of-truth":"me","aai-last-mod-ts":"1","aai-uuid":"u"}`))
	for name := range h.must(call{path: pod}).decode(t) {
		if strings.HasPrefix(name, "aai-") || strings.Contains(name, "source-of-truth") {
			t.Errorf("a plain GET shows %q", name)
		}
	}
	diff(t, "as a filter", http.StatusBadRequest, h.send(call{path: resources + "?source-of-truth=me"}).status)
}

func TestMessages(t *testing.T) {
	for name, tc := range map[string]struct {
		call call
		want string
	}{
		"no node":          {call{path: pod}, "Node Not Found:No Node of type k8s-resource found at: " + pod[1:]},
		"empty container":  {call{path: resources}, "Node Not Found:No Node of type k8s-resource found at: " + resources[1:]},
		"unknown filter":   {call{path: resources + "?status=Ready"}, "Invalid input performing %1 on %2:property: status not found on k8s-resource"},
		"unknown type":     {call{path: "/network/pnfs/pnf/x"}, "Invalid input performing %1 on %2:Unrecognized AAI object pnfs"},
		"key mismatch":     {put1(pod, `{"id":"other",`+podFields+`}`), "Invalid input performing %1 on %2:uri and payload keys don't match"},
		"malformed patch":  {patch1(vnf, `{`), "Invalid input performing %1 on %2:could not perform patch operation"},
		"no rule":          {put1(pod, linked(region)), "Bad Parameter Passed:No EdgeRule found for passed nodeTypes: k8s-resource, cloud-region."},
		"read timeout":     {call{path: vnf, header: map[string]string{"X-FromAppId": "slow"}}, "Request Timed Out:by a fault rule"},
		"too many at once": {bulk1(operations(make31()...)), "Payload Limit Reached, reduce payload: Allowed limit = 30"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, Options{})
			h.fault(Fault{FromAppID: "slow", Code: "AAI_7406"})
			variables := h.send(tc.call).refusal(t).variables
			for i, v := range variables {
				if ecPattern.MatchString(v) {
					diff(t, "message", tc.want, variables[i-1])
					return
				}
			}
			t.Errorf("no code in %q", variables)
		})
	}
}

func make31() []string {
	list := make([]string, 31)
	for i := range list {
		list[i] = op("patch", vnf, "{}")
	}
	return list
}

// A missing Content-Type and text/plain are JSON, except for PATCH.
func TestContentTypes(t *testing.T) {
	const patching = "application/merge-patch+json"
	for name, tc := range map[string]struct {
		method, contentType string
		want                int
	}{
		"put without":             {"PUT", "", 201},
		"put as text":             {"PUT", "text/plain", 201},
		"put with a charset":      {"PUT", "application/json; charset=utf-8", 201},
		"put as a patch":          {"PUT", patching, 415},
		"patch without":           {"PATCH", "", 415},
		"patch with a charset":    {"PATCH", patching + ";charset=utf-8", 404},
		"post that is no patch":   {"POST", "application/json", 400},
		"delete as anything else": {"DELETE", "text/html", 404},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, Options{})
			out := h.send(call{method: tc.method, path: pod, body: podBody, header: map[string]string{"Content-Type": tc.contentType}})
			diff(t, "status", tc.want, out.status)
		})
	}
}
