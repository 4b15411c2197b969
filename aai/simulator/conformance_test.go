package simulator

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestErrorTable checks the errors against error.properties and ErrorLogHelper of aai-resources 1.17. Clients classify errors by
// status and ec, so that both must be the same as in the product.
func TestErrorTable(t *testing.T) {
	for code, want := range map[string]string{
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
		h.fault(Fault{Code: code})
		out := h.send(call{path: vnf})
		got := out.errorBody(t)
		diff(t, code, want, fmt.Sprintf("%d %s %s", out.status, got.id, out.ec(t)))
		at := slices.Index(got.variables, out.ec(t)) // A client finds the code by its format. The message precedes it.
		diff(t, code+": placeholders", fmt.Sprintf("(msg=%%%d) (ec=%%%d)", at, at+1), got.text[strings.LastIndex(got.text, "(msg="):])
		if !strings.HasSuffix(got.variables[at-1], ":by a fault rule") {
			t.Errorf("%s: message %q", code, got.variables[at-1])
		}
	}
	diff(t, "errors in the table", 34, len(errorSpecs))
}

// TestOrderOfRejection asserts the order of the filters of aai-resources. If a request has several faults, this order determines
// which error is returned.
func TestOrderOfRejection(t *testing.T) {
	type step struct {
		name, want string
		fix        func(*call)
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
		s.fix(&c)
	}
}

// TestDocumentsOnTheWire checks a cloud-region with its tenant, with the fields in the order of A&AI.
func TestDocumentsOnTheWire(t *testing.T) {
	h := newHarness(t, Options{})
	h.must(patch1(region, `{"cloud-zone":"z","cloud-type":"k8s","owner-defined-type":"t1","complex-name":"clli1","cloud-region-version":"1.0"}`))
	h.must(put1(vnf+relationshipPath, `{"related-link":"`+region+`"}`))
	want := `{"cloud-owner":"owner","cloud-region-id":"region","cloud-type":"k8s","owner-defined-type":"t1","cloud-region-version":"1.0","cloud-zone":"z",` +
		`"complex-name":"clli1","resource-version":"` + h.version(region) + `","orchestration-disabled":false,"in-maint":false,` +
		`"tenants":{"tenant":[{"tenant-id":"t1","tenant-name":"t1-name","resource-version":"` + h.version(tenant) + `"}]},` +
		`"relationship-list":{"relationship":[{"related-to":"generic-vnf","relationship-label":"org.onap.relationships.inventory.LocatedIn",` +
		`"related-link":"/aai/v32` + vnf + `","relationship-data":[{"relationship-key":"generic-vnf.vnf-id","relationship-value":"vnf-1"}],` +
		`"related-to-property":[{"property-key":"generic-vnf.vnf-name","property-value":"vnf-1-name"}]}]}}`
	out := h.must(call{path: region + "?depth=1"})
	diff(t, "cloud-region", want, out.body)
	if out.header.Get("X-AAI-TXID") == "" {
		t.Error("no X-AAI-TXID")
	}
}

func TestRelationshipsOnTheWire(t *testing.T) {
	h := newHarness(t, Options{})
	h.must(put1(pod, linked("/aai/v32"+module, vnf)))
	const (
		toModule = `{"related-to":"vf-module","relationship-label":"org.onap.relationships.inventory.Uses",` +
			`"related-link":"/aai/v32/network/generic-vnfs/generic-vnf/vnf-1/vf-modules/vf-module/mod-1",` +
			`"relationship-data":[{"relationship-key":"generic-vnf.vnf-id","relationship-value":"vnf-1"},` +
			`{"relationship-key":"vf-module.vf-module-id","relationship-value":"mod-1"}]}`
		toVNF = `{"related-to":"generic-vnf","relationship-label":"tosca.relationships.HostedOn",` +
			`"related-link":"/aai/v32/network/generic-vnfs/generic-vnf/vnf-1",` +
			`"relationship-data":[{"relationship-key":"generic-vnf.vnf-id","relationship-value":"vnf-1"}]`
		property = `,"related-to-property":[{"property-key":"generic-vnf.vnf-name","property-value":"vnf-1-name"}]`
		head     = `{"id":"pod-1","name":"web-0","group":"","version":"v1","kind":"Pod","namespace":"shop","selflink":"https://hub/pods/web-0",` +
			`"resource-version":"RV"`
	)
	document := func(suffix string) string {
		return strings.Replace(h.must(call{path: pod + suffix}).body, h.version(pod), "RV", 1)
	}
	diff(t, "document", head+`,"relationship-list":{"relationship":[`+toModule+`,`+toVNF+property+`}]}}`, document(""))
	diff(t, "skip-related-to", head+`,"relationship-list":{"relationship":[`+toModule+`,`+toVNF+`}]}}`, document("?skip-related-to=true"))
	diff(t, "nodes-only", head+`}`, document("?nodes-only"))
	diff(t, "list alone", `{"relationship":[`+toModule+`,`+toVNF+property+`}]}`, h.must(call{path: pod + "/relationship-list"}).body)
	if body := h.must(call{path: vnf}).body; !strings.Contains(body, `"related-link":"/aai/v32`+pod+`"`) {
		t.Errorf("the VNF does not show the edge: %s", body)
	}
	if body := h.must(call{path: vnf}).body; !strings.Contains(body, `{"relationship-key":"cloud-region.cloud-owner","relationship-value":"owner"}`) {
		t.Errorf("relationship-data lacks the keys on the way: %s", body)
	}
}

func TestFieldsComeInSchemaOrder(t *testing.T) {
	h := newHarness(t, Options{})
	h.must(put1(pod, `{"data-source-version":"7","selflink":"s","labels":["l"],"namespace":"ns","kind":"K","version":"v","group":"g","name":"n","data-source":"c","data-owner":"o"}`))
	want := `{"id":"pod-1","name":"n","group":"g","version":"v","kind":"K","namespace":"ns","labels":["l"],"selflink":"s",` +
		`"data-owner":"o","data-source":"c","data-source-version":"7","resource-version":"` + h.version(pod) + `"}`
	diff(t, "document", want, h.must(call{path: pod}).body)
}

func TestErrorBodies(t *testing.T) {
	const create = "cloud-infrastructure/cloud-regions/cloud-region/owner/region/tenants/tenant/nope/k8s-resources/k8s-resource/x"
	h := newHarness(t, Options{})
	h.must(put1(pod, podBody))
	for name, tc := range map[string]struct {
		call call
		want string
	}{
		"missing parent": {
			put1("/"+create, podBody),
			`{"requestError":{"serviceException":{"messageId":"SVC3001","text":"Resource not found for %1 using id %2 (msg=%3) (ec=%4)",` +
				`"variables":["PUT","` + create + `","Node Not Found:No parent Node of type tenant for ` + create + `","ERR.5.4.6114"]}}}`,
		},
		"missing properties": {
			put1(resources+"/k8s-resource/x", `{"name":"n","group":"","version":"v1","namespace":""}`),
			`{"requestError":{"serviceException":{"messageId":"SVC3000","text":"Invalid input performing %1 on %2 (msg=%3) (ec=%4)",` +
				`"variables":["PUT","v32` + resources + `/k8s-resource/x","Invalid input performing %1 on %2:` +
				`Missing required property: kind,Missing required property: selflink","ERR.5.2.3000"]}}}`,
		},
		"no version on update": {
			put1(pod, podBody),
			`{"requestError":{"serviceException":{"messageId":"SVC3000","text":"Invalid input performing %1 on %2 (msg=%3) (ec=%4)",` +
				`"variables":["PUT","` + pod[1:] + `","Precondition Required:resource-version not passed for update of ` +
				`/k8s-resources/k8s-resource/pod-1","ERR.5.4.6130"]}}}`,
		},
		"missing target": {
			put1(pod+"/relationship-list/relationship", `{"related-link":"/aai/v32/network/generic-vnfs/generic-vnf/nope"}`),
			`{"requestError":{"serviceException":{"messageId":"SVC3003","text":"Failed to make edge to missing target node of type %3 ` +
				`with keys %4 performing %1 on %2 (msg=%5) (ec=%6)","variables":["PUT_EDGE","` + pod[1:] + `","generic-vnf",` +
				`"/aai/v32/network/generic-vnfs/generic-vnf/nope","Error making edge to target node:Node of type generic-vnf. ` +
				`Could not find object at: /aai/v32/network/generic-vnfs/generic-vnf/nope","ERR.5.4.6129"]}}}`,
		},
		"blocked delete": {
			delete1(tenant+"?resource-version="+h.version(tenant), ""),
			`{"requestError":{"serviceException":{"messageId":"SVC3100","text":"Unsupported operation %1 (msg=%2) (ec=%3)",` +
				`"variables":["DELETE","Node cannot be deleted:Object is being reference by additional objects preventing it from ` +
				`being deleted. Please clean up references from the following types [k8s-resource]","ERR.5.4.6110","` + tenant[1:] + `"]}}}`,
		},
		"missing header": {
			call{path: pod, header: map[string]string{"X-FromAppId": ""}},
			`{"requestError":{"serviceException":{"messageId":"SVC3000","text":"Invalid input performing %1 on %2 (msg=%3) (ec=%4)",` +
				`"variables":["null","null","Invalid X-FromAppId in header","4.0.4009"]}}}`,
		},
		"relationship without payload": {
			delete1(pod+"/relationship-list/relationship", ""),
			`{"requestError":{"policyException":{"messageId":"POL3102","text":"Error parsing input performing %1 on %2 (msg=%3) (ec=%4)",` +
				`"variables":["DELETE","v32` + pod + `/relationship-list/relationship",` +
				`"Error parsing input performing %1 on %2:You must supply a relationship","ERR.5.1.3102"]}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) { diff(t, "body", tc.want, h.send(tc.call).body) })
	}
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
		"too many at once": {bulk1(operations(slices.Repeat([]string{op("patch", vnf, "{}")}, 31)...)), "Payload Limit Reached, reduce payload: Allowed limit = 30"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, Options{})
			h.fault(Fault{FromAppID: "slow", Code: "AAI_7406"})
			variables := h.send(tc.call).errorBody(t).variables
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

// TestContentTypes asserts that a missing Content-Type and text/plain are read as JSON, except for PATCH.
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

func TestEchoNeedsHeadersOnly(t *testing.T) {
	h := newHarness(t, Options{})
	out := h.must(call{path: "/aai/util/echo"})
	diff(t, "body", `{"status":"UP","groups":["liveness","readiness"]}`, out.body)
	diff(t, "without application id", 400, h.send(call{path: "/aai/util/echo", header: map[string]string{"X-FromAppId": ""}}).status)
}

// TestAcceptDecidesTheFormat asserts that the simulator responds with XML whenever A&AI does so. There is only one XML document.
// Write requests that accept XML take effect.
func TestAcceptDecidesTheFormat(t *testing.T) {
	for accept, wantXML := range map[string]bool{
		"application/json": false, "*/*": true, "application/xml": true, "application/json, */*;q=0.1": true, "text/plain": true,
	} {
		h := newHarness(t, Options{})
		header := map[string]string{"Accept": accept}
		for path, status := range map[string]int{vnf: 200, otherVNF + "x": 404} {
			out := h.send(call{path: path, header: header})
			diff(t, accept+": status", status, out.status)
			diff(t, accept+": XML", wantXML, out.header.Get("Content-Type") == "application/xml" && xml.Unmarshal([]byte(out.body), new(any)) == nil)
		}
		diff(t, accept+": PUT", 201, h.send(call{method: "PUT", path: pod, body: podBody, header: header}).status)
		for _, c := range []call{{path: "/aai/util/echo", header: header}, {method: "POST", path: "/bulk/single-transaction", body: operations(op("patch", vnf, "{}")), header: header}} {
			diff(t, accept+": "+c.path, "application/json", h.must(c).header.Get("Content-Type"))
		}
	}
	out := newHarness(t, Options{}).send(call{path: vnf + "?format=count", header: map[string]string{"Accept": "*/*"}})
	diff(t, "a format makes it JSON", "application/json", out.header.Get("Content-Type"))
}

func TestVersionsDecideWhichTypesExist(t *testing.T) {
	h := newHarness(t, Options{Versions: []string{"v23", "v24"}})
	h.must(put1("/aai/v24"+pod, `{`+podFields+`,"relationship-list":{"relationship":[{"related-link":"`+vnf+`"}]}}`))
	diff(t, "error for k8s-resource in v23", "ERR.5.2.3000", h.send(call{path: "/aai/v23" + pod}).ec(t))
	diff(t, "v32 is not served", 400, h.send(call{path: "/aai/v32" + vnf}).status)
	if body := h.must(call{path: "/aai/v23" + vnf}).body; strings.Contains(body, "k8s-resource") {
		t.Errorf("v23 shows a relationship to a type it does not know: %s", body)
	}
	if body := h.must(call{path: "/aai/latest" + vnf}).body; !strings.Contains(body, "/aai/v24/cloud-infra") {
		t.Errorf("latest is not v24: %s", body)
	}
	h.must(put1("/aai/v23"+vnf, `{"vnf-type":"t","relationship-list":{},"resource-version":"`+h.version(vnf)+`"}`))
	diff(t, "relationships that v23 cannot see stay", 1, len(as[[]map[string]any](t, as[map[string]any](t, h.document(vnf)["relationship-list"])["relationship"])))
	out := h.must(put1("/aai/v23"+region+"/tenants/tenant/t2", `{"tenant-name":"n","k8s-resources":{"k8s-resource":[{}]}}`))
	diff(t, "a container v23 does not know is dropped", 201, out.status)
}

func TestBulkAppliesInOrderAndReadsItsOwnWrites(t *testing.T) {
	h := newHarness(t, Options{})
	h.must(put1(resources+"/k8s-resource/old", podBody))
	old := resources + "/k8s-resource/old?resource-version=" + h.version(resources+"/k8s-resource/old")
	out := h.must(bulk1(operations(
		op("put", pod, podBody),
		op("put", "/aai/v24"+podEdge, `{"related-link":"`+vnf+`"}`),
		op("patch", strings.TrimPrefix(module, "/"), `{"operational-status":"in-service-path"}`),
		op("delete", old, `{}`),
		op("put", resources+"/k8s-resource/old", podBody),
		op("delete", podEdge, `{"related-link":"`+vnf+`"}`),
	)))
	diff(t, "status", http.StatusCreated, out.status)
	want := operationResponses(
		"put", pod, 201, "put", "/aai/v24"+podEdge, 200, "patch", strings.TrimPrefix(module, "/"), 200,
		"delete", old, 204, "put", resources+"/k8s-resource/old", 201, "delete", podEdge, 204)
	diff(t, "body", want, out.body)
	diff(t, "edges", []string(nil), links(h, pod))
	doc, _ := h.Get(module)
	diff(t, "patched", "in-service-path", doc["operational-status"])
	diff(t, "one version for all", h.version(pod), h.version(module))
}

// operationResponses returns the body of the response to a bulk request, from action, uri and status of each operation.
func operationResponses(parts ...any) string {
	var list []string
	for i := 0; i < len(parts); i += 3 {
		list = append(list, fmt.Sprintf(`{"action":"%s","uri":"%s","response-status-code":%d,"response-body":null}`, parts[i:i+3]...))
	}
	return `{"operation-responses":[` + strings.Join(list, ",") + `]}`
}

func TestBulkFailureNamesTheOperation(t *testing.T) {
	h := newHarness(t, Options{})
	h.must(put1(pod, podBody))
	good := op("patch", module, `{"operational-status":"x"}`)
	for name, tc := range map[string]struct {
		bad  string
		want string // the message
	}{
		"stale delete": {
			op("delete", "/aai/v32"+pod+"?resource-version=1", "{}"),
			"Invalid input performing %1 on %2:Operation 1 with action (DELETE) on uri (" + pod + ") failed with status code (412), " +
				"error code (ERR.5.4.6131) and msg (Precondition Failed:resource-version MISMATCH for delete of k8s-resource)",
		},
		"patch of nothing": {
			op("patch", pod+"2", "{}"),
			"Invalid input performing %1 on %2:Operation 1 with action (MERGE_PATCH) on uri (" + pod + "2) failed with status code (404), " +
				"error code (ERR.5.4.6114) and msg (Node Not Found:No Node of type k8s-resource found at: " + pod + "2)",
		},
		"before the database": {
			op("put", pod+"2", "{}"),
			"Invalid input performing %1 on %2:Error with operation 1: Missing required property: name,Missing required property: group," +
				"Missing required property: version,Missing required property: kind,Missing required property: namespace,Missing required property: selflink",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := h.send(bulk1(operations(good, tc.bad))).errorBody(t)
			diff(t, "variables", []string{"POST", "v32/bulk/single-transaction", tc.want, "ERR.5.2.3000"}, got.variables)
		})
	}
}
