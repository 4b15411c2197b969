package simulator

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

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

// TestWhatAWriteChanges asserts which nodes get a new resource-version while the clock stands still, and the relationships of the
// Pod afterwards.
func TestWhatAWriteChanges(t *testing.T) {
	withVNF, withBoth := put1(pod, linked(vnf)), put1(pod, linked(vnf, module))
	names := map[string]string{"pod": pod, "vnf-1": vnf, "vnf-2": otherVNF, "mod-1": module, "t1": tenant, "region": region}
	for name, tc := range map[string]struct {
		setup, call call
		changed     []string
		links       []string
	}{
		"put of the same":               {withVNF, put1(pod, with(versioned, podBody)), []string{"pod"}, []string{vnf}},
		"empty patch":                   {withVNF, patch1(pod, `{}`), []string{"pod"}, []string{vnf}},
		"relationship":                  {put1(pod, podBody), put1(podEdge, linkTo(vnf)), []string{"pod", "vnf-1"}, []string{vnf}},
		"relationship that exists":      {withVNF, put1(podEdge, linkTo(vnf)), []string{"pod", "vnf-1"}, []string{vnf}},
		"relationship removed":          {withVNF, delete1(podEdge, linkTo(vnf)), []string{"pod", "vnf-1"}, nil},
		"absent relationship removed":   {put1(pod, podBody), delete1(podEdge, linkTo(vnf)), []string{"pod"}, nil},
		"put with another list":         {withBoth, put1(pod, with(versioned, linked(otherVNF))), []string{"mod-1", "pod", "vnf-1", "vnf-2"}, []string{otherVNF}},
		"put with one of two":           {withBoth, put1(pod, with(versioned, linked(vnf))), []string{"mod-1", "pod"}, []string{vnf}},
		"put with an array":             {withBoth, put1(pod, with(versioned+`,"relationship-list":[]`, podBody)), []string{"mod-1", "pod", "vnf-1"}, nil},
		"patch with an empty list":      {withBoth, patch1(pod, `{"relationship-list":{"relationship":[]}}`), []string{"mod-1", "pod", "vnf-1"}, nil},
		"patch with an empty object":    {withBoth, patch1(pod, `{"relationship-list":{}}`), []string{"pod"}, []string{vnf, module}},
		"patch with null":               {withBoth, patch1(pod, `{"relationship-list":null}`), []string{"pod"}, []string{vnf, module}},
		"patch with another list":       {withBoth, patch1(pod, `{`+relationshipsTo(otherVNF, module)+`}`), []string{"pod", "vnf-1", "vnf-2"}, []string{module, otherVNF}},
		"deletion of a resource":        {withBoth, delete1(pod+"?resource-version={rv}", ""), []string{"mod-1", "pod", "vnf-1"}, nil},
		"deletion of a VNF, module too": {withBoth, delete1(vnf+"?resource-version={rv}", ""), []string{"mod-1", "pod", "vnf-1"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, Options{})
			h.must(tc.setup)
			versions := func() map[string]any {
				all := map[string]any{}
				for name, uri := range names {
					if doc, exists := h.Get(uri); exists {
						all[name] = doc["resource-version"]
					}
				}
				return all
			}
			before := versions()
			h.must(tc.call)
			after := versions()
			var changed []string
			for name := range names {
				if before[name] != after[name] {
					changed = append(changed, name)
				}
				if now, ok := after[name].(string); ok && now < as[string](t, before[name]) {
					t.Errorf("the resource-version of %s went from %s to %s", name, before[name], now)
				}
			}
			diff(t, "changed", tc.changed, sorted(changed))
			diff(t, "relationships", tc.links, links(h, pod))
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

func TestSupportsBetweenVNFsIsOneEdge(t *testing.T) {
	h := newHarness(t, Options{})
	h.must(put1(vnfEdge, linkTo(otherVNF)))
	h.must(put1(otherVNF+relationshipPath, linkTo(vnf)))
	diff(t, "edges", []string{otherVNF}, links(h, vnf))
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
		"nor is the page alone":   {"?resultIndex=2", []string{"r0", "r1", "r2", "r3", "r4"}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			out := withResources(t, 5).must(call{path: resources + tc.query})
			diff(t, "ids", tc.want, out.ids(t))
			diff(t, "total-results", tc.results, out.header.Get("total-results"))
			diff(t, "total-pages", tc.all, out.header.Get("total-pages"))
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
