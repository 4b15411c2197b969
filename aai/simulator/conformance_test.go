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

// TestDocumentsOnTheWire checks whole answers, with the fields in the order of A&AI.
func TestDocumentsOnTheWire(t *testing.T) {
	const (
		podHead  = `{"id":"pod-1",` + podFields + `,"resource-version":"RV"`
		toModule = `{"related-to":"vf-module","relationship-label":"org.onap.relationships.inventory.Uses","related-link":"/aai/v32` + module + `",` +
			`"relationship-data":[{"relationship-key":"generic-vnf.vnf-id","relationship-value":"vnf-1"},` +
			`{"relationship-key":"vf-module.vf-module-id","relationship-value":"mod-1"}]}`
		toVNF = `{"related-to":"generic-vnf","relationship-label":"tosca.relationships.HostedOn","related-link":"/aai/v32` + vnf + `",` +
			`"relationship-data":[{"relationship-key":"generic-vnf.vnf-id","relationship-value":"vnf-1"}]`
		vnfName = `,"related-to-property":[{"property-key":"generic-vnf.vnf-name","property-value":"vnf-1-name"}]`
		toPod   = `{"related-to":"k8s-resource","relationship-label":"tosca.relationships.HostedOn","related-link":"/aai/v32` + pod + `",` +
			`"relationship-data":[{"relationship-key":"cloud-region.cloud-owner","relationship-value":"owner"},` +
			`{"relationship-key":"cloud-region.cloud-region-id","relationship-value":"region"},{"relationship-key":"tenant.tenant-id","relationship-value":"t1"},` +
			`{"relationship-key":"k8s-resource.id","relationship-value":"pod-1"}],"related-to-property":[{"property-key":"k8s-resource.name","property-value":"web-0"}]}`
		regionHead = `{"cloud-owner":"owner","cloud-region-id":"region","resource-version":"RV","orchestration-disabled":false,"in-maint":false`
		tenantHead = `{"tenant-id":"t1","tenant-name":"t1-name","resource-version":"RV"`
		related    = `"relationship-list":{"relationship":[` + toModule + `,` + toVNF + vnfName + `}]}`
	)
	created, linkedPod := []call{put1(pod, podBody)}, []call{put1(pod, linked("/aai/v32"+module, vnf))}
	requestTests{
		"fields in the order of the schema": {
			setup: []call{put1(pod, `{"data-source-version":"7","selflink":"s","labels":["l"],"namespace":"ns","kind":"K","version":"v","group":"g","name":"<n>&","data-source":"c","data-owner":"o"}`)},
			call:  call{path: pod}, status: 200,
			body: `{"id":"pod-1","name":"<n>&","group":"g","version":"v","kind":"K","namespace":"ns","labels":["l"],"selflink":"s",` +
				`"data-owner":"o","data-source":"c","data-source-version":"7","resource-version":"RV"}`,
		},
		"a region with everything": {
			setup: []call{
				patch1(region, `{"cloud-zone":"z","cloud-type":"k8s","owner-defined-type":"t1","complex-name":"clli1","cloud-region-version":"1.0"}`),
				put1(vnfEdge, linkTo(region)),
			},
			call: call{path: region + "?depth=1"}, status: 200,
			body: `{"cloud-owner":"owner","cloud-region-id":"region","cloud-type":"k8s","owner-defined-type":"t1","cloud-region-version":"1.0","cloud-zone":"z",` +
				`"complex-name":"clli1","resource-version":"RV","orchestration-disabled":false,"in-maint":false,"tenants":{"tenant":[` + tenantHead + `}]},` +
				`"relationship-list":{"relationship":[` + strings.Replace(toVNF, "tosca.relationships.HostedOn", "org.onap.relationships.inventory.LocatedIn", 1) + vnfName + `}]}}`,
		},
		"depth 0":                {setup: created, call: call{path: region + "?depth=0"}, status: 200, body: regionHead + `}`},
		"no depth":               {setup: created, call: call{path: region}, status: 200, body: regionHead + `}`},
		"depth 1":                {setup: created, call: call{path: region + "?depth=1"}, status: 200, body: regionHead + `,"tenants":{"tenant":[` + tenantHead + `}]}}`},
		"depth 2":                {setup: created, call: call{path: region + "?depth=2"}, status: 200, body: regionHead + `,"tenants":{"tenant":[` + tenantHead + `,"k8s-resources":{"k8s-resource":[` + podHead + `}]}}]}}`},
		"all depths":             {setup: created, call: call{path: region + "?depth=all"}, status: 200, body: regionHead + `,"tenants":{"tenant":[` + tenantHead + `,"k8s-resources":{"k8s-resource":[` + podHead + `}]}}]}}`},
		"relationships":          {setup: linkedPod, call: call{path: pod}, status: 200, body: podHead + `,` + related + `}`},
		"skip-related-to":        {setup: linkedPod, call: call{path: pod + "?skip-related-to=true"}, status: 200, body: podHead + `,"relationship-list":{"relationship":[` + toModule + `,` + toVNF + `}]}}`},
		"nodes-only":             {setup: linkedPod, call: call{path: pod + "?nodes-only"}, status: 200, body: podHead + `}`},
		"relationships alone":    {setup: linkedPod, call: call{path: pod + "/relationship-list"}, status: 200, body: strings.TrimPrefix(related, `"relationship-list":`)},
		"from the other end":     {setup: linkedPod, call: call{path: vnf + "/relationship-list"}, status: 200, body: `{"relationship":[` + toPod + `]}`},
		"format pathed":          {setup: created, call: call{path: pod + "?format=pathed"}, status: 200, body: `{"results":[{"resource-type":"k8s-resource","resource-link":"/aai/v32` + pod + `"}]}`},
		"format pathed, list":    {setup: created, call: call{path: resources + "?format=pathed"}, status: 200, body: `{"results":[{"resource-type":"k8s-resource","resource-link":"/aai/v32` + pod + `"}]}`},
		"format resource":        {setup: created, call: call{path: pod + "?format=resource"}, status: 200, body: `{"results":[{"k8s-resource":` + podHead + `}}]}`},
		"format resource, list":  {setup: created, call: call{path: resources + "?format=resource"}, status: 200, body: `{"results":[{"k8s-resource":` + podHead + `}}]}`},
		"format count":           {setup: created, call: call{path: pod + "?format=count"}, status: 200, body: `{"results":[{"k8s-resource":1}]}`},
		"format count of a list": {setup: created, call: call{path: resources + "?format=count"}, status: 200, body: `{"results":[{"k8s-resource":1}]}`},
		"defaults and keys": {
			setup: []call{put1(vnf+"x", `{"vnf-type":"t","persona-model-version":"internal"}`)}, call: call{path: vnf + "x"}, status: 200,
			body: `{"vnf-id":"vnf-1x","vnf-type":"t","in-maint":false,"is-closed-loop-disabled":false,"resource-version":"RV"}`,
		},
		"children of a PUT": {
			setup: []call{put1(vnf+"x", `{"vnf-type":"t","vf-modules":{"vf-module":[{"vf-module-id":"m"},{"vf-module-id":"n"}]}}`)},
			call:  call{path: vnf + "x/vf-modules?nodes-only"}, status: 200,
			body: `{"vf-module":[{"vf-module-id":"m","is-base-vf-module":false,"automated-assignment":false,"resource-version":"RV"},` +
				`{"vf-module-id":"n","is-base-vf-module":false,"automated-assignment":false,"resource-version":"RV"}]}`,
		},
		"a child that is no list": {
			setup: []call{put1(vnf+"x", `{"vnf-type":"t","vf-modules":{"vf-module":{"vf-module-id":"m"}}}`)},
			call:  call{path: vnf + "x/vf-modules"}, status: 200,
			body: `{"vf-module":[{"vf-module-id":"m","is-base-vf-module":false,"automated-assignment":false,"resource-version":"RV"}]}`,
		},
		"a PUT replaces all but the relationships": {
			setup: []call{put1(pod, with(`"labels":["a","b"],"data-owner":"me"`, linked(module, vnf))), put1(pod, with(versioned, podBody))},
			call:  call{path: pod}, status: 200, body: podHead + `,` + related + `}`,
		},
		"a PATCH replaces lists, deletes what is null and ignores what is unknown": {
			setup: []call{
				put1(pod, with(`"labels":["a","b"],"data-owner":"me"`, linked(module, vnf))),
				patch1(pod, `{"labels":["c"],"data-owner":null,"data-source":"cluster","unknown":{"x":1}}`),
			},
			call: call{path: pod}, status: 200,
			body: `{"id":"pod-1","name":"web-0","group":"","version":"v1","kind":"Pod","namespace":"shop","labels":["c"],` +
				`"selflink":"https://hub/pods/web-0","data-source":"cluster","resource-version":"RV",` + related + `}`,
		},
		"a PATCH resets a boolean that has a default, and keeps an integer": {
			setup: []call{patch1(vnf, `{"in-maint":true,"vcpu":4}`), patch1(vnf, `{"in-maint":null}`)}, call: call{path: vnf}, status: 200,
			body: `{"vnf-id":"vnf-1","vnf-name":"vnf-1-name","vnf-type":"cnf","vcpu":4,"in-maint":false,"is-closed-loop-disabled":false,"resource-version":"RV"}`,
		},
	}.run(t)
	out := newHarness(t, Options{}).must(call{path: vnf})
	if out.header.Get("X-AAI-TXID") == "" {
		t.Error("no X-AAI-TXID")
	}
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
	h := newHarness(t, Options{Versions: []string{"v23", "v24"}, Strict: true})
	h.must(put1("/aai/v24"+pod, linked(vnf)))
	diff(t, "error for k8s-resource in v23", "ERR.5.2.3000", h.send(call{path: "/aai/v23" + pod}).ec(t))
	diff(t, "v32 is not served", 400, h.send(call{path: "/aai/v32" + vnf}).status)
	if body := h.must(call{path: "/aai/v23" + vnf}).body; strings.Contains(body, "k8s-resource") {
		t.Errorf("v23 shows a relationship to a type it does not know: %s", body)
	}
	if body := h.must(call{path: "/aai/latest" + vnf}).body; !strings.Contains(body, "/aai/v24/cloud-infra") {
		t.Errorf("latest is not v24: %s", body)
	}
	h.must(put1("/aai/v23"+vnf, `{"vnf-type":"t","relationship-list":{},"resource-version":"`+h.version(vnf)+`"}`))
	diff(t, "relationships that v23 cannot see stay", []string{"/aai/v24" + pod}, links(h, vnf))
	h.must(put1("/aai/v24"+vnf, `{"vnf-type":"t","relationship-list":{},"resource-version":"`+h.version(vnf)+`"}`))
	diff(t, "relationships that v24 sees go", []string(nil), links(h, vnf))
	out := h.must(put1("/aai/v23"+region+"/tenants/tenant/t2", `{"tenant-name":"n","k8s-resources":{"k8s-resource":[{}]}}`))
	diff(t, "a container v23 does not know is dropped", 201, out.status)
	diff(t, "and logged", UnknownProperty, h.Violations()[len(h.Violations())-1].Kind)
}

func TestBulkAppliesInOrderAndReadsItsOwnWrites(t *testing.T) {
	h := newHarness(t, Options{})
	h.must(put1(resources+"/k8s-resource/old", podBody))
	old := resources + "/k8s-resource/old?resource-version=" + h.version(resources+"/k8s-resource/old")
	out := h.must(bulk1(operations(
		op("put", pod, podBody),
		op("put", "/aai/v24"+podEdge, linkTo(vnf)),
		op("patch", strings.TrimPrefix(module, "/"), `{"operational-status":"in-service-path"}`),
		op("delete", old, `{}`),
		op("put", resources+"/k8s-resource/old", podBody),
		op("delete", podEdge, linkTo(vnf)),
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
