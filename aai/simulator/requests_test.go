package simulator

import (
	"fmt"
	"strings"
	"testing"
)

// TestRequests are requests that A&AI's filters refuse or let through. TestOrderOfRejection has one refusal of each filter.
func TestRequests(t *testing.T) {
	header := func(c call, name, value string) call {
		c.header = map[string]string{name: value}
		return c
	}
	requestTests{
		"no application id": {
			call: header(call{path: pod}, "X-FromAppId", ""), status: 400, ec: "4.0.4009",
			body: `{"requestError":{"serviceException":{"messageId":"SVC3000","text":"Invalid input performing %1 on %2 (msg=%3) (ec=%4)",` +
				`"variables":["null","null","Invalid X-FromAppId in header","4.0.4009"]}}}`,
		},
		"other transaction id header":          {call: call{path: vnf, header: map[string]string{"X-TransactionId": "", "X-ONAP-RequestID": "r"}}, status: 200},
		"accept without a type that is served": {call: header(call{path: vnf}, "Accept", "text/html"), status: 406},
		"version after the newest":             {call: call{path: "/aai/v33" + vnf}, status: 400, ec: "ERR.5.6.3007"},
		"version before the oldest":            {call: call{path: "/aai/v23" + vnf}, status: 400, ec: "ERR.5.6.3007"},
		"no version":                           {call: call{path: "/aai/network/generic-vnfs"}, status: 400, ec: "ERR.5.6.3007"},
		"latest":                               {call: call{path: "/aai/latest" + vnf}, status: 200},
		"oldest served":                        {call: call{path: "/aai/v24" + vnf}, status: 200},
		"only a version":                       {call: call{path: "/aai/v32/"}, status: 400, ec: "ERR.5.6.3012"},
		"raw equals sign":                      {call: call{path: resources + "/k8s-resource/a=b"}, status: 400, ec: "ERR.5.6.3008"},
		"lower-case hex":                       {call: call{path: resources + "/k8s-resource/a%2fb"}, status: 400, ec: "ERR.5.6.3008"},
		"needless encoding":                    {call: call{path: resources + "/k8s-resource/%61"}, status: 400, ec: "ERR.5.6.3008"},
		"canonical but missing":                {call: call{path: resources + "/k8s-resource/aAzZ09-._~%2Fb%3A"}, status: 404, ec: "ERR.5.4.6114"},
		"raw colon in a filter":                {call: call{path: resources + "?data-owner=a:b"}, status: 400, ec: "ERR.5.6.3008"},
		"plus is a space in a filter":          {call: call{path: "/network/generic-vnfs?vnf-name=a+b"}, status: 404, ec: "ERR.5.4.6114"},
		"unknown object":                       {call: call{path: "/network/pnfs/pnf/x"}, status: 400, ec: "ERR.5.2.3000", message: "Invalid input performing %1 on %2:Unrecognized AAI object pnfs"},
		"object in the wrong place":            {call: call{path: "/network/cloud-regions/cloud-region/o/r"}, status: 404, ec: "ERR.5.6.3001"},
		"child of another type":                {call: call{path: vnf + "/tenants/tenant/t1"}, status: 404, ec: "ERR.5.6.3001"},
		"child without its parent":             {call: call{path: "/tenants/tenant/t1"}, status: 404, ec: "ERR.5.6.3001"},
		"key cut short":                        {call: call{path: "/cloud-infrastructure/cloud-regions/cloud-region/o"}, status: 404, ec: "ERR.5.6.3001"},
		"an empty key":                         {call: call{path: "/network/generic-vnfs/generic-vnf//vf-modules"}, status: 400, ec: "ERR.5.2.3000"},
		"namespace alone":                      {call: call{path: "/network"}, status: 400, ec: "ERR.5.2.3000"},
		"post on a node":                       {call: call{method: "POST", path: vnf, body: "{}"}, status: 400, ec: "ERR.5.6.3012"},
		"get on a relationship":                {call: call{path: vnfEdge}, status: 400, ec: "ERR.5.6.3012"},
		"below a relationship list":            {call: call{path: vnf + "/relationship-list/x"}, status: 400, ec: "ERR.5.2.3000"},
		"version zero":                         {call: call{path: "/aai/v0" + vnf}, status: 400, ec: "ERR.5.6.3007"},
		"version with a leading zero":          {call: call{path: "/aai/v032" + vnf}, status: 400, ec: "ERR.5.6.3007"},
		"put on a relationship list":           {call: put1(vnf+"/relationship-list", "{}"), status: 400, ec: "ERR.5.6.3012"},
		"put on a container":                   {call: put1(resources, "{}"), status: 400, ec: "ERR.5.2.3000"},
		"no /examples":                         {call: call{path: "/examples/k8s-resource"}, status: 400, ec: "ERR.5.2.3000"},
		"get on bulk":                          {call: call{path: "/bulk/single-transaction"}, status: 400, ec: "ERR.5.6.3012"},
		"health":                               {call: call{path: echoPath}, status: 200, body: `{"status":"UP","groups":["liveness","readiness"]}`},
		"health without application id":        {call: header(call{path: echoPath}, "X-FromAppId", ""), status: 400, ec: "4.0.4009"},

		// A missing Content-Type and text/plain are read as JSON, except for PATCH.
		"put without a type":      {call: header(put1(pod, podBody), "Content-Type", ""), status: 201},
		"put as text":             {call: header(put1(pod, podBody), "Content-Type", "text/plain"), status: 201},
		"put with a charset":      {call: header(put1(pod, podBody), "Content-Type", "Application/JSON ; charset=utf-8"), status: 201},
		"put as a patch":          {call: header(put1(pod, podBody), "Content-Type", patchType), status: 415},
		"put as XML":              {call: header(put1(pod, "<x/>"), "Content-Type", "application/xml"), status: 415},
		"patch without a type":    {call: header(patch1(vnf, "{}"), "Content-Type", ""), status: 415},
		"patch with a charset":    {call: header(patch1(vnf, "{}"), "Content-Type", patchType+";charset=utf-8"), status: 200},
		"delete as anything else": {call: header(delete1(vnf+"?resource-version={rv}", "<x/>"), "Content-Type", "text/html"), status: 204},
		"patch by method override": {call: call{method: "POST", path: vnf, body: `{"prov-status":"x"}`, header: map[string]string{
			"X-HTTP-Method-Override": "PATCH", "Content-Type": patchType,
		}}, status: 200},
	}.run(t)
}

func TestReads(t *testing.T) {
	created := []call{put1(pod, podBody)}
	requestTests{
		"node":                    {setup: created, call: call{path: pod}, status: 200},
		"head":                    {call: call{method: "HEAD", path: vnf}, status: 200},
		"trailing slash":          {setup: created, call: call{path: resources + "/"}, status: 200},
		"missing node":            {call: call{path: pod}, status: 404, ec: "ERR.5.4.6114", message: "Node Not Found:No Node of type k8s-resource found at: " + pod[1:]},
		"empty container":         {call: call{path: resources}, status: 404, ec: "ERR.5.4.6114", message: "Node Not Found:No Node of type k8s-resource found at: " + resources[1:]},
		"container of no node":    {call: call{path: tenant + "x/k8s-resources"}, status: 404, ec: "ERR.5.4.6114"},
		"nothing matches":         {setup: created, call: call{path: resources + "?kind=Job"}, status: 404, ec: "ERR.5.4.6114"},
		"node fails the filter":   {setup: created, call: call{path: pod + "?kind=Job"}, status: 404, ec: "ERR.5.4.6114"},
		"page past the end":       {setup: created, call: call{path: resources + "?resultIndex=2&resultSize=1"}, status: 404, ec: "ERR.5.4.6114"},
		"page far past the end":   {setup: created, call: call{path: resources + "?resultIndex=9223372036854775807&resultSize=9223372036854775807"}, status: 404, ec: "ERR.5.4.6114"},
		"page that is no number":  {setup: created, call: call{path: resources + "?resultIndex=x&resultSize=1"}, status: 500, ec: "ERR.5.4.4000"},
		"unknown property":        {setup: created, call: call{path: resources + "?status=Ready"}, status: 400, ec: "ERR.5.2.3000", message: "Invalid input performing %1 on %2:property: status not found on k8s-resource"},
		"container as a property": {call: call{path: tenant + "?k8s-resources=x"}, status: 400, ec: "ERR.5.2.3000"},
		"depth that is no number": {call: call{path: tenant + "?depth=deep"}, status: 400, ec: "4.0.4016"},
		"unknown format":          {call: call{path: tenant + "?format=nice"}, status: 400, ec: "ERR.5.4.6120"},
		"its version":             {call: call{path: tenant + "?resource-version={rv}"}, status: 200},
		"another version":         {call: call{path: tenant + "?resource-version=1"}, status: 404, ec: "ERR.5.4.6114"},
		"boolean as a property":   {call: call{path: vnf + "?in-maint=false"}, status: 200},
		"integer as a property":   {setup: []call{patch1(vnf, `{"vcpu":4}`)}, call: call{path: vnf + "?vcpu=4"}, status: 200},
		"cleanup is no property":  {call: call{path: vnf + "?cleanup=false"}, status: 200},
		"top container":           {call: call{path: "/cloud-infrastructure/cloud-regions"}, status: 200},
	}.run(t)
}

func TestWrites(t *testing.T) {
	created := []call{put1(pod, podBody)}
	missing := strings.Replace(pod, "tenant/t1", "tenant/nope", 1)
	requestTests{
		"create":              {call: put1(pod, podBody), status: 201},
		"create with version": {call: put1(pod, `{`+podFields+`,"resource-version":"1"}`), status: 412, ec: "ERR.5.4.6135"},
		"create below missing parent": {
			call: put1(missing, podBody), status: 404, ec: "ERR.5.4.6114",
			body: `{"requestError":{"serviceException":{"messageId":"SVC3001","text":"Resource not found for %1 using id %2 (msg=%3) (ec=%4)",` +
				`"variables":["PUT","` + missing[1:] + `","Node Not Found:No parent Node of type tenant for ` + missing[1:] + `","ERR.5.4.6114"]}}}`,
		},
		"version comes before parent": {call: put1(missing, `{`+podFields+`,"resource-version":"1"}`), status: 412, ec: "ERR.5.4.6135"},
		"update without version": {
			setup: created, call: put1(pod, podBody), status: 412, ec: "ERR.5.4.6130",
			body: `{"requestError":{"serviceException":{"messageId":"SVC3000","text":"Invalid input performing %1 on %2 (msg=%3) (ec=%4)",` +
				`"variables":["PUT","` + pod[1:] + `","Precondition Required:resource-version not passed for update of ` +
				`/k8s-resources/k8s-resource/pod-1","ERR.5.4.6130"]}}}`,
		},
		"update":                      {setup: created, call: put1(pod, with(versioned, podBody)), status: 200},
		"update with stale version":   {setup: created, call: put1(pod, `{`+podFields+`,"resource-version":"1"}`), status: 412, ec: "ERR.5.4.6131"},
		"empty body lacks everything": {call: put1(pod, ""), status: 400, ec: "ERR.5.2.3000"},
		"missing properties": {
			call: put1(pod, `{"name":"n","group":"","version":"v1","namespace":""}`), status: 400, ec: "ERR.5.2.3000",
			body: `{"requestError":{"serviceException":{"messageId":"SVC3000","text":"Invalid input performing %1 on %2 (msg=%3) (ec=%4)",` +
				`"variables":["PUT","v32` + pod + `","Invalid input performing %1 on %2:` +
				`Missing required property: kind,Missing required property: selflink","ERR.5.2.3000"]}}}`,
		},
		"null for a required property": {call: put1(pod, strings.Replace(podBody, `"Pod"`, `null`, 1)), status: 400, ec: "ERR.5.2.3000"},
		"key matches":                  {call: put1(pod, `{"id":"pod-1",`+podFields+`}`), status: 201},
		"key contradicts":              {call: put1(pod, `{"id":"pod-2",`+podFields+`}`), status: 400, ec: "ERR.5.2.3000", message: "Invalid input performing %1 on %2:uri and payload keys don't match"},
		"wrapped":                      {call: put1(pod, `{"k8s-resource":`+podBody+`}`), status: 400, ec: "ERR.5.2.3000"},
		"broken JSON":                  {call: put1(pod, `{"name":`), status: 400, ec: "ERR.5.2.3000"},
		"text after JSON":              {call: put1(pod, podBody+"x"), status: 400, ec: "ERR.5.2.3000"},
		"top-level array":              {call: put1(pod, `[]`), status: 500, ec: "ERR.5.4.4000"},
		"top-level string":             {call: put1(pod, `"x"`), status: 400, ec: "ERR.5.2.3000"},
		"array for a string":           {call: put1(pod, strings.Replace(podBody, `"Pod"`, `["Pod"]`, 1)), status: 500, ec: "ERR.5.4.4000"},
		"unknown property":             {call: put1(pod, `{`+podFields+`,"status":"Ready"}`), status: 201},
		"model id without its version": {call: put1(vnf+"3", `{"vnf-type":"x","model-invariant-id":"m"}`), status: 400, ec: "ERR.5.2.3000"},
		"model id with its version":    {call: put1(vnf+"3", `{"vnf-type":"x","model-invariant-id":"m","model-version-id":"v"}`), status: 201},

		"patch":                       {setup: created, call: patch1(pod, `{"data-source-version":"8"}`), status: 200},
		"patch a missing node":        {call: patch1(pod, `{}`), status: 404, ec: "ERR.5.4.6114"},
		"patch ignores the version":   {setup: created, call: patch1(pod, `{"resource-version":"1","kind":"Job"}`), status: 200},
		"patch a key":                 {setup: created, call: patch1(pod, `{"id":"pod-2"}`), status: 400, ec: "ERR.5.2.3000"},
		"patch a required property":   {setup: created, call: patch1(pod, `{"kind":null}`), status: 200},
		"patch with children":         {call: patch1(tenant, `{"k8s-resources":{"k8s-resource":[]}}`), status: 400, ec: "ERR.5.2.3000"},
		"patch with array for string": {setup: created, call: patch1(pod, `{"kind":["Job"]}`), status: 500, ec: "ERR.5.4.4000"},
		"patch with broken JSON":      {setup: created, call: patch1(pod, `{`), status: 400, ec: "ERR.5.2.3000", message: "Invalid input performing %1 on %2:could not perform patch operation"},

		"delete without version":    {setup: created, call: delete1(pod, ""), status: 412, ec: "ERR.5.4.6130"},
		"delete with stale version": {setup: created, call: delete1(pod+"?resource-version=1", ""), status: 412, ec: "ERR.5.4.6131"},
		"delete a missing node":     {call: delete1(pod+"?resource-version=1", ""), status: 404, ec: "ERR.5.4.6114"},
		"delete a tenant with resources": {
			setup: created, call: delete1(tenant+"?resource-version={rv}", ""), status: 400, ec: "ERR.5.4.6110",
			body: `{"requestError":{"serviceException":{"messageId":"SVC3100","text":"Unsupported operation %1 (msg=%2) (ec=%3)",` +
				`"variables":["DELETE","Node cannot be deleted:Object is being reference by additional objects preventing it from ` +
				`being deleted. Please clean up references from the following types [k8s-resource]","ERR.5.4.6110","` + tenant[1:] + `"]}}}`,
		},
		"delete a region with tenants":   {call: delete1(region+"?resource-version={rv}", ""), status: 400, ec: "ERR.5.4.6110"},
		"version is checked before that": {call: delete1(region+"?resource-version=1", ""), status: 412, ec: "ERR.5.4.6131"},
	}.run(t)
}

// TestWritesOfChildren updates a tenant that has the k8s-resources a and b, which have its resource-version.
func TestWritesOfChildren(t *testing.T) {
	const uri = region + "/tenants/tenant/t2"
	child := func(fields string) string { return `{` + fields + `,` + podFields + `}` }
	list := func(children ...string) string {
		return `,"k8s-resources":{"k8s-resource":[` + strings.Join(children, ",") + `]}`
	}
	created := []call{put1(uri, `{"tenant-name":"two"`+list(child(`"id":"a"`), child(`"id":"b"`))+`}`)}
	update := func(children string) call { return put1(uri, `{"tenant-name":"two",`+versioned+children+`}`) }
	requestTests{
		"left out":              {setup: created, call: update(``), status: 200},
		"present and empty":     {setup: created, call: update(`,"k8s-resources":{}`), status: 403, ec: "ERR.5.0.9109"},
		"one of two":            {setup: created, call: update(list(child(`"id":"a",` + versioned))), status: 403, ec: "ERR.5.0.9109"},
		"child without version": {setup: created, call: update(list(child(`"id":"a"`))), status: 412, ec: "ERR.5.4.6130"},
		"child incomplete":      {setup: created, call: update(list(`{"id":"a"}`)), status: 400, ec: "ERR.5.2.3000"},
		"both":                  {setup: created, call: update(list(child(`"id":"a",`+versioned), child(`"id":"b",`+versioned))), status: 200},
	}.run(t)
}

func TestRelationships(t *testing.T) {
	created := []call{put1(pod, podBody)}
	withVNF := []call{put1(pod, linked(vnf))}
	requestTests{
		"put":                      {setup: created, call: put1(podEdge, linkTo(vnf)), status: 200},
		"put with version in link": {setup: created, call: put1(podEdge, linkTo("/aai/v24"+vnf)), status: 200},
		"put by keys":              {setup: created, call: put1(podEdge, `{"related-to":"generic-vnf","relationship-data":[{"relationship-key":"generic-vnf.vnf-id","relationship-value":"vnf-1"}]}`), status: 200},
		"put with label":           {setup: created, call: put1(podEdge, `{"related-link":"`+vnf+`","relationship-label":"tosca.relationships.HostedOn"}`), status: 200},
		"put from the other end":   {setup: created, call: put1(vnfEdge, linkTo(pod)), status: 200},
		"put again":                {setup: withVNF, call: put1(podEdge, linkTo(vnf)), status: 200},
		"source missing":           {call: put1(podEdge, linkTo(vnf)), status: 404, ec: "ERR.5.4.6114"},
		"target missing": {
			setup: created, call: put1(podEdge, linkTo("/aai/v32"+vnf+"9")), status: 404, ec: "ERR.5.4.6129",
			body: `{"requestError":{"serviceException":{"messageId":"SVC3003","text":"Failed to make edge to missing target node of type %3 ` +
				`with keys %4 performing %1 on %2 (msg=%5) (ec=%6)","variables":["PUT_EDGE","` + pod[1:] + `","generic-vnf",` +
				`"/aai/v32` + vnf + `9","Error making edge to target node:Node of type generic-vnf. ` +
				`Could not find object at: /aai/v32` + vnf + `9","ERR.5.4.6129"]}}}`,
		},
		"absolute link":              {setup: created, call: put1(podEdge, linkTo("https://aai:8443/aai/v32"+vnf)), status: 400, ec: "ERR.5.2.3000"},
		"link without version":       {setup: created, call: put1(podEdge, linkTo("/aai/inventory"+vnf)), status: 400, ec: "ERR.5.2.3000"},
		"no target named":            {setup: created, call: put1(podEdge, `{}`), status: 400, ec: "ERR.5.2.3000"},
		"empty body":                 {setup: created, call: put1(podEdge, ``), status: 400, ec: "ERR.5.2.3000", message: "Invalid input performing %1 on %2:Could not unmarshall: EOF"},
		"keys incomplete":            {setup: created, call: put1(podEdge, `{"related-to":"vf-module","relationship-data":[{"relationship-key":"vf-module.vf-module-id","relationship-value":"mod-1"}]}`), status: 400, ec: "ERR.5.2.3000"},
		"unknown label":              {setup: created, call: put1(podEdge, `{"related-link":"`+vnf+`","relationship-label":"x"}`), status: 400, ec: "ERR.5.4.6107"},
		"no rule for the pair":       {setup: created, call: put1(podEdge, linkTo(region)), status: 400, ec: "ERR.5.4.6107"},
		"containment":                {setup: created, call: put1(podEdge, linkTo(tenant)), status: 400, ec: "ERR.5.4.6107"},
		"second VNF":                 {setup: withVNF, call: put1(podEdge, linkTo(otherVNF)), status: 400, ec: "ERR.5.4.6140"},
		"second VNF from its end":    {setup: withVNF, call: put1(otherVNF+relationshipPath, linkTo(pod)), status: 400, ec: "ERR.5.4.6140"},
		"module beside VNF":          {setup: withVNF, call: put1(podEdge, linkTo(module)), status: 200},
		"array for the link":         {setup: created, call: put1(podEdge, `{"related-link":["`+vnf+`"]}`), status: 500, ec: "ERR.5.4.4000"},
		"delete":                     {setup: withVNF, call: delete1(podEdge, linkTo(vnf)), status: 204},
		"delete an absent edge":      {setup: created, call: delete1(podEdge, linkTo(vnf)), status: 204},
		"delete to an absent target": {setup: created, call: delete1(podEdge, linkTo(vnf+"9")), status: 204},
		"delete without body": {
			setup: withVNF, call: delete1(podEdge, ``), status: 400, ec: "ERR.5.1.3102",
			body: `{"requestError":{"policyException":{"messageId":"POL3102","text":"Error parsing input performing %1 on %2 (msg=%3) (ec=%4)",` +
				`"variables":["DELETE","v32` + podEdge + `","Error parsing input performing %1 on %2:You must supply a relationship","ERR.5.1.3102"]}}}`,
		},
		"delete from a missing node": {call: delete1(podEdge, linkTo(vnf)), status: 404, ec: "ERR.5.4.6114"},
		"list":                       {setup: withVNF, call: call{path: pod + "/relationship-list"}, status: 200},
		"empty list":                 {setup: created, call: call{path: pod + "/relationship-list"}, status: 404, ec: "ERR.5.4.6149"},
		"list of a missing node":     {call: call{path: pod + "/relationship-list"}, status: 404, ec: "ERR.5.4.6114"},
		"body: target missing":       {call: put1(pod, linked(vnf+"9")), status: 404, ec: "ERR.5.4.6129"},
		"body: no rule":              {call: put1(pod, linked(region)), status: 400, ec: "ERR.5.4.6120", message: "Bad Parameter Passed:No EdgeRule found for passed nodeTypes: k8s-resource, cloud-region."},
		"body: containment":          {call: put1(pod, linked(tenant)), status: 400, ec: "ERR.5.4.6145"},
		"body: multiplicity":         {call: put1(pod, linked(vnf, otherVNF)), status: 400, ec: "ERR.5.4.6140"},
		"body: same twice":           {call: put1(pod, linked(vnf, vnf)), status: 201},
	}.run(t)
}

func TestBulk(t *testing.T) {
	thirty := make([]string, 0, 31)
	for i := range 30 {
		thirty = append(thirty, op("put", fmt.Sprintf("%s/k8s-resource/r%d", resources, i), podBody))
	}
	create := op("put", pod, podBody)
	requestTests{
		"thirty":         {call: bulk1(operations(thirty...)), status: 201},
		"thirty-one":     {call: bulk1(operations(append(thirty, create)...)), status: 400, ec: "ERR.5.4.6147", message: "Payload Limit Reached, reduce payload: Allowed limit = 30"},
		"none":           {call: bulk1(operations()), status: 400, ec: "ERR.5.4.6118"},
		"no operations":  {call: bulk1(`{}`), status: 400, ec: "ERR.5.4.6118"},
		"broken JSON":    {call: bulk1(`{`), status: 400, ec: "ERR.5.4.6111"},
		"null":           {call: bulk1(`null`), status: 400, ec: "ERR.5.4.6111"},
		"no body":        {call: bulk1(`{"operations":[{"action":"delete","uri":"` + pod + `"}]}`), status: 400, ec: "ERR.5.4.6111"},
		"body null":      {call: bulk1(operations(op("delete", pod, "null"))), status: 400, ec: "ERR.5.4.6111"},
		"no action":      {call: bulk1(operations(op("", pod, "{}"))), status: 400, ec: "ERR.5.4.6111"},
		"unknown action": {call: bulk1(operations(op("get", pod, "{}"))), status: 400, ec: "ERR.5.4.6111"},
		"no uri":         {call: bulk1(operations(op("put", "", "{}"))), status: 400, ec: "ERR.5.4.6111"},
		"unknown object": {call: bulk1(operations(create, op("put", "/network/pnfs/pnf/p", "{}"))), status: 400, ec: "ERR.5.2.3000"},
		"missing property": {
			call: bulk1(operations(create, op("put", pod+"2", `{"name":"","group":"","version":"","kind":""}`))), status: 400, ec: "ERR.5.2.3000",
			message: "Invalid input performing %1 on %2:Error with operation 1: Missing required property: namespace,Missing required property: selflink",
		},
		"array for a string":   {call: bulk1(operations(create, op("put", pod+"2", `{"kind":[]}`))), status: 500},
		"second create of one": {call: bulk1(operations(create, create)), status: 412, ec: "ERR.5.2.3000"},
		"missing parent":       {call: bulk1(operations(create, op("put", tenant+"9/k8s-resources/k8s-resource/x", podBody))), status: 404, ec: "ERR.5.2.3000"},
		"missing edge target":  {call: bulk1(operations(create, op("put", podEdge, linkTo(vnf+"9")))), status: 404, ec: "ERR.5.2.3000"},
		"stale delete": {
			call: bulk1(operations(create, op("delete", "/aai/v32"+pod+"?resource-version=1", "{}"))), status: 412, ec: "ERR.5.2.3000",
			body: `{"requestError":{"serviceException":{"messageId":"SVC3000","text":"Invalid input performing %1 on %2 (msg=%3) (ec=%4)","variables":["POST","v32/bulk/single-transaction",` +
				`"Invalid input performing %1 on %2:Operation 1 with action (DELETE) on uri (` + pod + `) failed with status code (412), ` +
				`error code (ERR.5.4.6131) and msg (Precondition Failed:resource-version MISMATCH for delete of k8s-resource)","ERR.5.2.3000"]}}}`,
		},
		"patch of nothing": {
			call: bulk1(operations(op("patch", pod, "{}"))), status: 404, ec: "ERR.5.2.3000",
			message: "Invalid input performing %1 on %2:Operation 0 with action (MERGE_PATCH) on uri (" + pod + ") failed with status code (404), " +
				"error code (ERR.5.4.6114) and msg (Node Not Found:No Node of type k8s-resource found at: " + pod + ")",
		},
		"the last of many": {
			setup: []call{put1(pod, linked(vnf))},
			call: bulk1(operations(
				op("put", pod+"2", linked(vnf, module)),
				op("patch", pod, `{"labels":["changed"],"relationship-list":{"relationship":[]}}`),
				op("put", podEdge, linkTo(vnf)), op("delete", podEdge, linkTo(vnf)),
				op("patch", pod+"3", "{}"),
			)), status: 404, ec: "ERR.5.2.3000",
		},
		"raw colon in uri":   {call: bulk1(operations(op("put", resources+"/k8s-resource/a:b", podBody))), status: 201},
		"wrong content type": {call: call{method: "POST", path: "/bulk/single-transaction", body: operations(create), header: map[string]string{"Content-Type": "application/xml"}}, status: 415},
	}.run(t)
}
