package simulator

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// operations wraps bulk operations in their envelope.
func operations(list ...string) string { return `{"operations":[` + strings.Join(list, ",") + `]}` }

func op(action, uri, body string) string {
	return fmt.Sprintf(`{"action":%q,"uri":%q,"body":%s}`, action, uri, body)
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

// operationResponses builds the answer of a bulk request from action, uri and status of each operation.
func operationResponses(parts ...any) string {
	var list []string
	for i := 0; i < len(parts); i += 3 {
		list = append(list, fmt.Sprintf(`{"action":"%s","uri":"%s","response-status-code":%d,"response-body":null}`, parts[i:i+3]...))
	}
	return `{"operation-responses":[` + strings.Join(list, ",") + `]}`
}

func TestBulkAnswers(t *testing.T) {
	thirty := make([]string, 0, 31)
	for i := range 30 {
		thirty = append(thirty, op("put", fmt.Sprintf("%s/k8s-resource/r%d", resources, i), podBody))
	}
	create := op("put", pod, podBody)
	answers{
		"thirty":               {call: bulk1(operations(thirty...)), status: 201},
		"thirty-one":           {call: bulk1(operations(append(thirty, create)...)), status: 400, ec: "ERR.5.4.6147"},
		"none":                 {call: bulk1(operations()), status: 400, ec: "ERR.5.4.6118"},
		"no operations":        {call: bulk1(`{}`), status: 400, ec: "ERR.5.4.6118"},
		"broken JSON":          {call: bulk1(`{`), status: 400, ec: "ERR.5.4.6111"},
		"null":                 {call: bulk1(`null`), status: 400, ec: "ERR.5.4.6111"},
		"no body":              {call: bulk1(`{"operations":[{"action":"delete","uri":"` + pod + `"}]}`), status: 400, ec: "ERR.5.4.6111"},
		"body null":            {call: bulk1(operations(op("delete", pod, "null"))), status: 400, ec: "ERR.5.4.6111"},
		"no action":            {call: bulk1(operations(op("", pod, "{}"))), status: 400, ec: "ERR.5.4.6111"},
		"unknown action":       {call: bulk1(operations(op("get", pod, "{}"))), status: 400, ec: "ERR.5.4.6111"},
		"no uri":               {call: bulk1(operations(op("put", "", "{}"))), status: 400, ec: "ERR.5.4.6111"},
		"unknown object":       {call: bulk1(operations(create, op("put", "/network/pnfs/pnf/p", "{}"))), status: 400, ec: "ERR.5.2.3000"},
		"missing property":     {call: bulk1(operations(create, op("put", pod+"2", "{}"))), status: 400, ec: "ERR.5.2.3000"},
		"array for a string":   {call: bulk1(operations(create, op("put", pod+"2", `{"kind":[]}`))), status: 500},
		"second create of one": {call: bulk1(operations(create, create)), status: 412, ec: "ERR.5.2.3000"},
		"missing parent":       {call: bulk1(operations(create, op("put", tenant+"9/k8s-resources/k8s-resource/x", podBody))), status: 404, ec: "ERR.5.2.3000"},
		"missing edge target":  {call: bulk1(operations(create, op("put", podEdge, `{"related-link":"`+vnf+`9"}`))), status: 404, ec: "ERR.5.2.3000"},
		"stale delete":         {call: bulk1(operations(create, op("delete", pod+"?resource-version=1", "{}"))), status: 412, ec: "ERR.5.2.3000"},
		"delete by magic":      {call: bulk1(operations(create, op("delete", pod+"?resource-version="+anyVersion, "{}"))), status: 201},
		"raw colon in uri":     {call: bulk1(operations(op("put", resources+"/k8s-resource/a:b", podBody))), status: 201},
		"wrong content type":   {call: call{method: "POST", path: "/bulk/single-transaction", body: operations(create), header: map[string]string{"Content-Type": "application/xml"}}, status: 415},
	}.run(t)
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
			got := h.send(bulk1(operations(good, tc.bad))).refusal(t)
			diff(t, "variables", []string{"POST", "v32/bulk/single-transaction", tc.want, "ERR.5.2.3000"}, got.variables)
		})
	}
}

func TestBulkRollsBackEverything(t *testing.T) {
	h := newHarness(t, Options{})
	h.must(put1(pod, linked(vnf)))
	h.must(put1(resources+"/k8s-resource/doomed", podBody))
	before := h.State()
	out := h.send(bulk1(operations(
		op("put", pod+"2", linked(vnf, module)),
		op("patch", pod, `{"labels":["changed"],"relationship-list":{"relationship":[]}}`),
		op("delete", resources+"/k8s-resource/doomed?resource-version="+anyVersion, "{}"),
		op("delete", vnf+"?resource-version="+anyVersion, "{}"),
		op("put", podEdge, `{"related-link":"`+vnf+`"}`),
	)))
	diff(t, "status", 404, out.status)
	diff(t, "inventory", before, h.State())
	checkInvariants(t, h.graph)
}
