package simulator

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

func TestPutReplacesTheWholeDocument(t *testing.T) {
	h := newHarness(t, Options{})
	h.must(put1(pod, `{`+podFields+`,"labels":["a","b"],"data-owner":"me","relationship-list":{"relationship":[{"related-link":"`+vnf+`"}]}}`))
	out := h.must(put1(pod, `{`+podFields+`,"resource-version":"`+h.version(pod)+`"}`))
	diff(t, "status", http.StatusOK, out.status)
	diff(t, "body", "", out.body)
	doc, _ := h.Get(pod)
	for _, gone := range []string{"labels", "data-owner"} {
		if value, ok := doc[gone]; ok {
			t.Errorf("%s was left out and is still %v", gone, value)
		}
	}
	if _, ok := doc["relationship-list"]; !ok {
		t.Error("relationship-list was left out and is gone")
	}
}

func TestCreateFillsDefaultsAndKeys(t *testing.T) {
	h := newHarness(t, Options{})
	h.must(put1(vnf+"x", `{"vnf-type":"t","persona-model-version":"internal"}`))
	want := `{"vnf-id":"vnf-1x","vnf-type":"t","in-maint":false,"is-closed-loop-disabled":false,"resource-version":"` + h.version(vnf+"x") + `"}`
	diff(t, "document", want, h.must(call{path: vnf + "x"}).body)
}

func TestBodiesAreReadLeniently(t *testing.T) {
	for name, tc := range map[string]struct {
		path, fields string
		want         map[string]any // absent properties are nil
	}{
		"number for a string":   {pod, `"data-owner":5`, map[string]any{"data-owner": "5"}},
		"fraction for a string": {pod, `"data-owner":7.5`, map[string]any{"data-owner": "7.5"}},
		"boolean for a string":  {pod, `"data-owner":true`, map[string]any{"data-owner": "true"}},
		"object for a string":   {pod, `"data-owner":{"a":1}`, map[string]any{"data-owner": ""}},
		"empty string":          {pod, `"data-owner":""`, map[string]any{"data-owner": "", "group": ""}},
		"last duplicate wins":   {pod, `"data-owner":"a","data-owner":"b"`, map[string]any{"data-owner": "b"}},
		"wrong case":            {pod, `"dataOwner":"a"`, map[string]any{"data-owner": nil, "dataOwner": nil}},
		"labels are a set":      {pod, `"labels":["b","a","b"]`, map[string]any{"labels": []string{"a", "b"}}},
		"one label as a string": {pod, `"labels":"a"`, map[string]any{"labels": []string{"a"}}},
		"labels as an object":   {pod, `"labels":{}`, map[string]any{"labels": []string{""}}},
		"labels null":           {pod, `"labels":null`, map[string]any{"labels": nil}},
		"labels empty":          {pod, `"labels":[]`, map[string]any{"labels": nil}},
		"label with a number":   {pod, `"labels":[1,null,"a"]`, map[string]any{"labels": []string{"1", "a"}}},
		"boolean as a string":   {vnf, `"encrypted-access-flag":"true"`, map[string]any{"encrypted-access-flag": true}},
		"boolean as nonsense":   {vnf, `"encrypted-access-flag":"banana","in-maint":"banana"`, map[string]any{"encrypted-access-flag": nil, "in-maint": false}},
		"integer as a string":   {vnf, `"vcpu":"12"`, map[string]any{"vcpu": int64(12)}},
		"integer as nonsense":   {vnf, `"vcpu":"abc"`, map[string]any{"vcpu": nil}},
		"container as an array": {vnf, `"vf-modules":[]`, map[string]any{"vf-modules": nil}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, Options{})
			uri := tc.path + "-new"
			base := podFields
			if tc.path == vnf {
				base = `"vnf-type":"t"`
			}
			diff(t, "status", http.StatusCreated, h.must(put1(uri, `{`+base+`,`+tc.fields+`}`)).status)
			doc, _ := h.Get(uri)
			for property, want := range tc.want {
				got := doc[property]
				if labels, ok := got.([]string); ok {
					got = sorted(labels)
				}
				diff(t, property, want, got)
			}
		})
	}
}

func TestLabelsAreReturnedInAnotherOrder(t *testing.T) {
	h := newHarness(t, Options{})
	h.must(put1(pod, `{`+podFields+`,"labels":["a","b","c","d","e","f","g","h"]}`))
	first := h.must(call{path: pod}).body
	if strings.Contains(first, `["a","b","c","d","e","f","g","h"]`) {
		t.Error("labels come back as they were written, but A&AI keeps no order")
	}
	diff(t, "second read", first, h.must(call{path: pod}).body)
}

func TestEveryWriteChangesTheResourceVersion(t *testing.T) {
	h := newHarness(t, Options{})
	last := ""
	for _, step := range []struct {
		name string
		call func() call
	}{
		{"create", func() call { return put1(pod, podBody) }},
		{"put of the same", func() call { return put1(pod, `{`+podFields+`,"resource-version":"`+h.version(pod)+`"}`) }},
		{"empty patch", func() call { return patch1(pod, `{}`) }},
		{"edge", func() call { return put1(pod+"/relationship-list/relationship", `{"related-link":"`+vnf+`"}`) }},
		{"edge again", func() call { return put1(pod+"/relationship-list/relationship", `{"related-link":"`+vnf+`"}`) }},
		{"edge removed", func() call { return delete1(pod+"/relationship-list/relationship", `{"related-link":"`+vnf+`"}`) }},
		{"absent edge removed", func() call { return delete1(pod+"/relationship-list/relationship", `{"related-link":"`+vnf+`"}`) }},
	} {
		h.must(step.call())
		now := h.version(pod)
		if len(now) < len(last) || now <= last {
			t.Errorf("%s: resource-version went from %s to %s while the clock stood still", step.name, last, now)
		}
		last = now
	}
}

func TestPatchMerges(t *testing.T) {
	h := newHarness(t, Options{})
	h.must(put1(pod, `{`+podFields+`,"labels":["a","b"],"data-owner":"me","relationship-list":{"relationship":[{"related-link":"`+vnf+`"}]}}`))
	vnfVersion := h.version(vnf)
	h.must(patch1(pod, `{"labels":["c"],"data-owner":null,"data-source":"cluster","unknown":{"x":1}}`))
	doc, _ := h.Get(pod)
	diff(t, "labels are replaced", []string{"c"}, doc["labels"])
	diff(t, "null deletes", nil, doc["data-owner"])
	diff(t, "new property", "cluster", doc["data-source"])
	diff(t, "others stay", "Pod", doc["kind"])
	if _, ok := doc["relationship-list"]; !ok {
		t.Error("a patch that does not name relationship-list removed it")
	}
	diff(t, "version of the other end", vnfVersion, h.version(vnf))

	h.must(patch1(vnf, `{"in-maint":null,"vcpu":4}`))
	h.must(patch1(vnf, `{"vnf-name":"n"}`))
	doc, _ = h.Get(vnf)
	diff(t, "a boolean with default comes back", false, doc["in-maint"])
	diff(t, "an integer survives", int64(4), doc["vcpu"])
}

func TestNestedCreate(t *testing.T) {
	h := newHarness(t, Options{})
	uri := region + "/tenants/tenant/t2"
	body := `{"tenant-name":"two","k8s-resources":{"k8s-resource":[{"id":"a",` + podFields + `},{"id":"b",` + podFields + `}]}}`
	h.must(put1(uri, body))
	diff(t, "children", 2, len(h.List(uri+"/k8s-resources")))
	h.must(put1(vnf+"3", `{"vnf-type":"t","vf-modules":{"vf-module":{"vf-module-id":"m"}}}`))
	diff(t, "a single object is a list of one", 1, len(h.List(vnf+"3/vf-modules")))
	diff(t, "one version for all", h.version(uri), h.version(uri+"/k8s-resources/k8s-resource/a"))
}

func TestNestedWritesAreGuarded(t *testing.T) {
	uri := region + "/tenants/tenant/t2"
	child := func(extra string) string { return `{"id":"a",` + podFields + extra + `}` }
	for name, tc := range map[string]struct {
		children string
		status   int
		ec       string
	}{
		"left out":              {``, 200, ""},
		"present and empty":     {`,"k8s-resources":{}`, 403, "ERR.5.0.9109"},
		"one of two":            {`,"k8s-resources":{"k8s-resource":[` + child(`,"resource-version":"RV"`) + `]}`, 403, "ERR.5.0.9109"},
		"child without version": {`,"k8s-resources":{"k8s-resource":[` + child(``) + `]}`, 412, "ERR.5.4.6130"},
		"child incomplete":      {`,"k8s-resources":{"k8s-resource":[{"id":"a"}]}`, 400, "ERR.5.2.3000"},
		"both":                  {`,"k8s-resources":{"k8s-resource":[` + child(`,"resource-version":"RV"`) + `,{"id":"b",` + podFields + `,"resource-version":"RV"}]}`, 200, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, Options{})
			h.must(put1(uri, `{"tenant-name":"two","k8s-resources":{"k8s-resource":[`+child("")+`,{"id":"b",`+podFields+`}]}}`))
			before := h.State()
			body := `{"tenant-name":"two","resource-version":"RV"` + tc.children + `}`
			out := h.send(put1(uri, strings.ReplaceAll(body, "RV", h.version(uri))))
			diff(t, "status", tc.status, out.status)
			diff(t, "error code", tc.ec, out.ec(t))
			if tc.status >= 400 {
				diff(t, "inventory after a refusal", before, h.State())
			}
		})
	}
}

func TestDeleteOfVNFDeletesItsModules(t *testing.T) {
	h := newHarness(t, Options{})
	h.must(put1(pod, linked(module, vnf)))
	version := h.version(pod)
	h.must(delete1(vnf+"?resource-version={rv}", ""))
	for _, uri := range []string{vnf, module} {
		if _, ok := h.Get(uri); ok {
			t.Errorf("%s is still there", uri)
		}
	}
	diff(t, "edges to the deleted", nil, h.document(pod)["relationship-list"])
	if h.version(pod) == version {
		t.Error("the resource-version of the other end did not move")
	}
}

func TestDeleteOfResourceChangesVersionsOfOtherEndsOnly(t *testing.T) {
	h := newHarness(t, Options{})
	h.must(put1(pod, `{`+podFields+`,"relationship-list":{"relationship":[{"related-link":"`+module+`"},{"related-link":"`+vnf+`"}]}}`))
	before := h.versions(vnf, module, tenant, otherVNF)
	h.must(delete1(pod+"?resource-version="+h.version(pod), ""))
	after := h.versions(vnf, module, tenant, otherVNF)
	for i, moved := range []bool{true, true, false, false} {
		if (before[i] != after[i]) != moved {
			t.Errorf("node %d: version %s became %s, moved should be %t", i, before[i], after[i], moved)
		}
	}
}

func TestRelationshipListIsTheFullSet(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(h *harness) call
		want   []string // other ends afterwards
		moved  []bool   // versions of vnf-1, vnf-2, mod-1
	}{
		"put with other list": {func(h *harness) call {
			return put1(pod, strings.Replace(linked(otherVNF), "{", `{"resource-version":"`+h.version(pod)+`",`, 1))
		}, []string{otherVNF}, []bool{true, true, true}},
		"put with one of two": {func(h *harness) call {
			return put1(pod, strings.Replace(linked(vnf), "{", `{"resource-version":"`+h.version(pod)+`",`, 1))
		}, []string{vnf}, []bool{false, false, true}},
		"put with array": {func(h *harness) call {
			return put1(pod, `{`+podFields+`,"relationship-list":[],"resource-version":"`+h.version(pod)+`"}`)
		}, nil, []bool{true, false, true}},
		"patch with empty list": {func(*harness) call {
			return patch1(pod, `{"relationship-list":{"relationship":[]}}`)
		}, nil, []bool{true, false, true}},
		"patch with empty object": {func(*harness) call {
			return patch1(pod, `{"relationship-list":{}}`)
		}, []string{vnf, module}, []bool{false, false, false}},
		"patch with null": {func(*harness) call {
			return patch1(pod, `{"relationship-list":null}`)
		}, []string{vnf, module}, []bool{false, false, false}},
		"patch with other list": {func(*harness) call {
			return patch1(pod, `{"relationship-list":{"relationship":[{"related-link":"`+otherVNF+`"},{"related-link":"`+module+`"}]}}`)
		}, []string{module, otherVNF}, []bool{true, true, false}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, Options{})
			h.must(put1(pod, linked(vnf, module)))
			before := h.versions(vnf, otherVNF, module)
			h.must(tc.change(h))
			diff(t, "other ends", tc.want, links(h, pod))
			for i, now := range h.versions(vnf, otherVNF, module) {
				diff(t, "moved "+[]string{"vnf-1", "vnf-2", "mod-1"}[i], tc.moved[i], now != before[i])
			}
		})
	}
}

// links returns the other ends of a node's relationships.
func links(h *harness, uri string) []string {
	doc, _ := h.Get(uri)
	list, ok := doc["relationship-list"].(map[string]any)
	if !ok {
		return nil
	}
	relationships := as[[]map[string]any](h.t, list["relationship"])
	uris := make([]string, len(relationships))
	for i, r := range relationships {
		uris[i] = strings.TrimPrefix(as[string](h.t, r["related-link"]), "/aai/v32")
	}
	return uris
}

func TestRelationshipWriteChangesVersionsOfBothEnds(t *testing.T) {
	h := newHarness(t, Options{})
	h.must(put1(pod, podBody))
	for _, step := range []struct {
		name  string
		call  call
		moved bool
	}{
		{"added", put1(podEdge, `{"related-link":"`+vnf+`"}`), true},
		{"added again", put1(podEdge, `{"related-link":"`+vnf+`"}`), true},
		{"removed", delete1(podEdge, `{"related-link":"`+vnf+`"}`), true},
		{"removed again", delete1(podEdge, `{"related-link":"`+vnf+`"}`), false},
	} {
		before := h.version(vnf)
		h.must(step.call)
		diff(t, step.name+": other end moved", step.moved, h.version(vnf) != before)
	}
}

func TestSupportsBetweenVNFsIsOneEdge(t *testing.T) {
	h := newHarness(t, Options{})
	h.must(put1(vnf+"/relationship-list/relationship", `{"related-link":"`+otherVNF+`"}`))
	h.must(put1(otherVNF+"/relationship-list/relationship", `{"related-link":"`+vnf+`"}`))
	diff(t, "edges", []string{otherVNF}, links(h, vnf))
}

func TestBulkRollsBackEverything(t *testing.T) {
	h := newHarness(t, Options{})
	h.must(put1(pod, linked(vnf)))
	h.must(put1(resources+"/k8s-resource/doomed", podBody))
	before := h.State()
	out := h.send(bulk1(operations(
		op("put", pod+"2", linked(vnf, module)),
		op("patch", pod, `{"labels":["changed"],"relationship-list":{"relationship":[]}}`),
		op("delete", resources+"/k8s-resource/doomed?resource-version="+h.version(resources+"/k8s-resource/doomed"), "{}"),
		op("delete", otherVNF+"?resource-version="+h.version(otherVNF), "{}"),
		op("patch", resources+"/k8s-resource/doomed", "{}"),
		op("put", podEdge, `{"related-link":"`+vnf+`"}`),
	)))
	diff(t, "status", 404, out.status)
	diff(t, "inventory", before, h.State())
	checkInvariants(t, h.inventory)
}

// withResources returns a harness with n k8s-resources. Their ids are r0, r1 and so on. Their data-owner alternates between
// "even" and "odd".
func withResources(t *testing.T, n int) *harness {
	t.Helper()
	h := newHarness(t, Options{})
	for i := range n {
		owner := []string{"even", "odd"}[i%2]
		h.must(put1(fmt.Sprintf("%s/k8s-resource/r%d", resources, i),
			`{`+podFields+`,"data-owner":"`+owner+`","labels":["n=`+strconv.Itoa(i)+`","all"]}`))
	}
	return h
}

// ids returns the ids of the k8s-resources in a response.
func (o outcome) ids(t *testing.T) []string {
	t.Helper()
	items := as[[]any](t, o.decode(t)["k8s-resource"])
	list := make([]string, len(items))
	for i, item := range items {
		list[i] = as[string](t, as[map[string]any](t, item)["id"])
	}
	return list
}

func TestListing(t *testing.T) {
	for name, tc := range map[string]struct {
		query        string
		want         []string
		results, all string // total-results and total-pages
	}{
		"all":                     {"", []string{"r0", "r1", "r2", "r3", "r4"}, "", ""},
		"owner":                   {"?data-owner=odd", []string{"r1", "r3"}, "", ""},
		"either owner":            {"?data-owner=odd&data-owner=even", []string{"r0", "r1", "r2", "r3", "r4"}, "", ""},
		"two properties":          {"?data-owner=odd&id=r3", []string{"r3"}, "", ""},
		"label":                   {"?labels=n%3D4", []string{"r4"}, "", ""},
		"first page":              {"?resultIndex=1&resultSize=2", []string{"r0", "r1"}, "5", "3"},
		"last page":               {"?resultIndex=3&resultSize=2", []string{"r4"}, "5", "3"},
		"page of an owner":        {"?data-owner=even&resultIndex=2&resultSize=2", []string{"r4"}, "3", "2"},
		"page without totals":     {"?resultIndex=1&resultSize=2&includeTotalCount=false", []string{"r0", "r1"}, "", ""},
		"size alone is no paging": {"?resultSize=2", []string{"r0", "r1", "r2", "r3", "r4"}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			out := withResources(t, 5).must(call{path: resources + tc.query})
			diff(t, "ids", tc.want, out.ids(t))
			diff(t, "total-results", tc.results, out.header.Get("total-results"))
			diff(t, "total-pages", tc.all, out.header.Get("total-pages"))
		})
	}
}

func TestDepthShowsLevelsOfChildren(t *testing.T) {
	h := newHarness(t, Options{})
	h.must(put1(pod, podBody))
	for depth, want := range map[string][2]bool{ // tenant, k8s-resource
		"": {false, false}, "?depth=0": {false, false}, "?depth=1": {true, false}, "?depth=2": {true, true}, "?depth=all": {true, true},
	} {
		t.Run(depth, func(t *testing.T) {
			body := h.must(call{path: region + depth}).body
			diff(t, "shows tenants", want[0], strings.Contains(body, `"tenants":{"tenant":[{"tenant-id":"t1"`))
			diff(t, "shows resources", want[1], strings.Contains(body, `"k8s-resources":{"k8s-resource":[{"id":"pod-1"`))
		})
	}
}

func TestVertexIDIdentifiesANodeAcrossWrites(t *testing.T) {
	h := newHarness(t, Options{})
	id := h.must(put1(pod, podBody)).header.Get("vertex-id")
	if id == "" {
		t.Fatal("PUT answers no vertex-id")
	}
	diff(t, "on GET", id, h.must(call{path: pod}).header.Get("vertex-id"))
	diff(t, "on PATCH", id, h.must(patch1(pod, `{}`)).header.Get("vertex-id"))
	if other := h.must(call{path: vnf}).header.Get("vertex-id"); other == id {
		t.Errorf("two nodes share vertex-id %s", id)
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
			diff(t, path+query, want, h.must(call{path: path + query}).body)
		}
	}
}
