package simulator

import (
	"encoding/xml"
	"net/http"
	"strings"
	"testing"
)

func TestRequestIsRefusedBeforeTheInventory(t *testing.T) {
	answers{
		"outside /aai":                {call: call{path: "/aai2/x"}, status: 400, ec: "ERR.5.6.3012"},
		"no application id":           {call: call{path: pod, header: map[string]string{"X-FromAppId": ""}}, status: 400, ec: "4.0.4009"},
		"no transaction id":           {call: call{path: pod, header: map[string]string{"X-TransactionId": ""}}, status: 400, ec: "4.0.4010"},
		"other transaction id header": {call: call{path: vnf, header: map[string]string{"X-TransactionId": "", "X-ONAP-RequestID": "r"}}, status: 200},
		"no accept":                   {call: call{path: vnf, header: map[string]string{"Accept": ""}}, status: 500},
		"accept that nobody can meet": {call: call{path: vnf, header: map[string]string{"Accept": "text/html"}}, status: 406},
		"retired version":             {call: call{path: "/aai/v8" + vnf}, status: 410, ec: "ERR.5.6.3007"},
		"version not served":          {call: call{path: "/aai/v23" + vnf}, status: 400, ec: "ERR.5.6.3007"},
		"version after the newest":    {call: call{path: "/aai/v33" + vnf}, status: 400, ec: "ERR.5.6.3007"},
		"no version":                  {call: call{path: "/aai/network/generic-vnfs"}, status: 400, ec: "ERR.5.6.3007"},
		"latest":                      {call: call{path: "/aai/latest" + vnf}, status: 200},
		"oldest served":               {call: call{path: "/aai/v24" + vnf}, status: 200},
		"only a version":              {call: call{path: "/aai/v32/"}, status: 400, ec: "ERR.5.6.3012"},
		"raw colon":                   {call: call{path: resources + "/k8s-resource/a:b"}, status: 400, ec: "ERR.5.6.3008"},
		"raw equals sign":             {call: call{path: resources + "/k8s-resource/a=b"}, status: 400, ec: "ERR.5.6.3008"},
		"lower-case hex":              {call: call{path: resources + "/k8s-resource/a%2fb"}, status: 400, ec: "ERR.5.6.3008"},
		"needless encoding":           {call: call{path: resources + "/k8s-resource/%61"}, status: 400, ec: "ERR.5.6.3008"},
		"canonical but missing":       {call: call{path: resources + "/k8s-resource/a%2Fb%3A"}, status: 404, ec: "ERR.5.4.6114"},
		"raw colon in a filter":       {call: call{path: resources + "?data-owner=a:b"}, status: 400, ec: "ERR.5.6.3008"},
		"plus is a space in a filter": {call: call{path: "/network/generic-vnfs?vnf-name=a+b"}, status: 404, ec: "ERR.5.4.6114"},
		"unknown object":              {call: call{path: "/network/pnfs/pnf/x"}, status: 400, ec: "ERR.5.2.3000"},
		"object in the wrong place":   {call: call{path: "/network/cloud-regions/cloud-region/o/r"}, status: 404, ec: "ERR.5.6.3001"},
		"child of another type":       {call: call{path: vnf + "/tenants/tenant/t1"}, status: 404, ec: "ERR.5.6.3001"},
		"child without its parent":    {call: call{path: "/tenants/tenant/t1"}, status: 404, ec: "ERR.5.6.3001"},
		"key cut short":               {call: call{path: "/cloud-infrastructure/cloud-regions/cloud-region/o"}, status: 404, ec: "ERR.5.6.3001"},
		"namespace alone":             {call: call{path: "/network"}, status: 400, ec: "ERR.5.2.3000"},
		"post on a node":              {call: call{method: "POST", path: vnf, body: "{}"}, status: 400, ec: "ERR.5.6.3012"},
		"get on a relationship":       {call: call{path: vnf + "/relationship-list/relationship"}, status: 400, ec: "ERR.5.6.3012"},
		"put on a relationship list":  {call: put1(vnf+"/relationship-list", "{}"), status: 400, ec: "ERR.5.6.3012"},
		"put on a container":          {call: put1(resources, "{}"), status: 400, ec: "ERR.5.2.3000"},
		"get on bulk":                 {call: call{path: "/bulk/single-transaction"}, status: 400, ec: "ERR.5.6.3012"},
		"patch as plain JSON":         {call: call{method: "PATCH", path: vnf, body: "{}", header: map[string]string{"Content-Type": "application/json"}}, status: 415},
		"put as XML":                  {call: call{method: "PUT", path: vnf, body: "<x/>", header: map[string]string{"Content-Type": "application/xml"}}, status: 415},
		"patch by method override": {call: call{method: "POST", path: vnf, body: `{"prov-status":"x"}`, header: map[string]string{
			"X-HTTP-Method-Override": "PATCH", "Content-Type": "application/merge-patch+json",
		}}, status: 200},
		"type of a later version": {call: call{path: "/examples/k8s-resource"}, status: 200},
		"unknown example":         {call: call{path: "/examples/pnf"}, status: 400, ec: "ERR.5.2.3000"},
	}.run(t)
}

func TestHeadersAreCheckedInOrder(t *testing.T) {
	h := newHarness(t, Options{Users: map[string]string{"AAI": "secret"}})
	bad := map[string]string{"X-FromAppId": "", "X-TransactionId": ""}
	steps := []struct{ header, value, ec string }{
		{"X-FromAppId", "app", "4.0.4009"},
		{"X-TransactionId", "tx", "4.0.4010"},
		{"Authorization", "Basic QUFJOnNlY3JldA==", "ERR.5.1.3300"},
	}
	for _, s := range steps {
		diff(t, "error while "+s.header+" is missing", s.ec, h.send(call{path: "/aai/v8/x", header: bad}).ec(t))
		bad[s.header] = s.value
	}
	diff(t, "status once headers are right", 410, h.send(call{path: "/aai/v8/x", header: bad}).status)
}

func TestAuthentication(t *testing.T) {
	for name, tc := range map[string]struct {
		authorization string
		want          int
	}{
		"right":          {"Basic QUFJOnNlY3JldA==", 200},
		"wrong password": {"Basic QUFJOm90aGVy", 403},
		"missing":        {"", 403},
		"other scheme":   {"Bearer QUFJOnNlY3JldA==", 403},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, Options{Users: map[string]string{"AAI": "secret"}})
			out := h.send(call{path: vnf, header: map[string]string{"Authorization": tc.authorization}})
			diff(t, "status", tc.want, out.status)
		})
	}
}

func TestVersionsDecideWhichTypesExist(t *testing.T) {
	h := newHarness(t, Options{Versions: []string{"v23", "v24"}})
	h.must(put1("/aai/v24"+pod, `{`+podFields+`,"relationship-list":{"relationship":[{"related-link":"`+vnf+`"}]}}`))
	diff(t, "error for k8s-resource in v23", "ERR.5.2.3000", h.send(call{path: "/aai/v23" + pod}).ec(t))
	diff(t, "example in v23", 400, h.send(call{path: "/aai/v23/examples/k8s-resource"}).status)
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

func TestOptionsAreValidated(t *testing.T) {
	for name, tc := range map[string]struct {
		opts Options
		want string
	}{
		"zero":            {Options{}, ""},
		"unknown version": {Options{Versions: []string{"v33"}}, `"v33"`},
		"no version":      {Options{Versions: []string{"32"}}, `"32"`},
		"default missing": {Options{Versions: []string{"v24"}, DefaultVersion: "v25"}, `"v25"`},
		"journal":         {Options{JournalSize: -1}, "-1"},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.opts.Validate()
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Validate() = %v, want an error naming %s", err, tc.want)
			}
		})
	}
}

func TestAcceptDecidesTheFormat(t *testing.T) {
	for accept, wantXML := range map[string]bool{
		"application/json": false, "*/*": true, "application/xml": true, "application/json, */*;q=0.1": true, "text/plain": true,
	} {
		t.Run(accept, func(t *testing.T) {
			h := newHarness(t, Options{})
			for _, path := range []string{vnf, otherVNF + "x"} {
				out := h.send(call{path: path, header: map[string]string{"Accept": accept}})
				diff(t, "XML for "+path, wantXML, strings.HasPrefix(out.body, "<?xml"))
				diff(t, "media type says so", wantXML, out.header.Get("Content-Type") == "application/xml")
			}
			out := h.send(call{path: vnf + "?format=count", header: map[string]string{"Accept": "*/*"}})
			diff(t, "format makes it JSON", "application/json", out.header.Get("Content-Type"))
		})
	}
}

func TestXMLSaysTheSameAsJSON(t *testing.T) {
	h := newHarness(t, Options{})
	h.must(put1(pod, `{`+podFields+`,"labels":["a<b"],"relationship-list":{"relationship":[{"related-link":"`+vnf+`"}]}}`))
	var doc struct {
		XMLName       xml.Name `xml:"http://org.onap.aai.inventory/v32 k8s-resource"`
		Labels        []string `xml:"labels"`
		Relationships []struct {
			Link string `xml:"related-link"`
		} `xml:"relationship-list>relationship"`
	}
	out := h.must(call{path: pod, header: map[string]string{"Accept": "application/xml"}})
	if err := xml.Unmarshal([]byte(out.body), &doc); err != nil {
		t.Fatalf("cannot read %s: %v", out.body, err)
	}
	diff(t, "labels", []string{"a<b"}, doc.Labels)
	diff(t, "link", "/aai/v32"+vnf, doc.Relationships[0].Link)

	var fault struct {
		XMLName   xml.Name `xml:"Fault"`
		Variables []string `xml:"requestError>serviceException>variables>variable"`
	}
	out = h.send(call{path: vnf + "x", header: map[string]string{"Accept": "application/xml"}})
	if err := xml.Unmarshal([]byte(out.body), &fault); err != nil {
		t.Fatalf("cannot read %s: %v", out.body, err)
	}
	diff(t, "error code", "ERR.5.4.6114", fault.Variables[3])
}

func TestEchoNeedsHeadersOnly(t *testing.T) {
	h := newHarness(t, Options{})
	out := h.must(call{path: "/aai/util/echo"})
	diff(t, "body", `{"status":"UP","groups":["liveness","readiness"]}`, out.body)
	diff(t, "without application id", 400, h.send(call{path: "/aai/util/echo", header: map[string]string{"X-FromAppId": ""}}).status)
}

func TestHeadAnswersLikeGet(t *testing.T) {
	h := newHarness(t, Options{})
	diff(t, "there", 200, h.send(call{method: http.MethodHead, path: vnf}).status)
	diff(t, "not there", 404, h.send(call{method: http.MethodHead, path: vnf + "x"}).status)
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
