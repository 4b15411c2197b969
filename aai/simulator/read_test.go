package simulator

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// withResources adds n k8s-resources, named r0 and so on, data-owner alternating between "even" and "odd".
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

// ids returns the ids of the k8s-resources in an answer.
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

func TestReadAnswers(t *testing.T) {
	created := []call{put1(pod, podBody)}
	answers{
		"node":                    {given: created, call: call{path: pod}, status: 200},
		"trailing slash":          {given: created, call: call{path: resources + "/"}, status: 200},
		"missing node":            {call: call{path: pod}, status: 404, ec: "ERR.5.4.6114"},
		"empty container":         {call: call{path: resources}, status: 404, ec: "ERR.5.4.6114"},
		"container of no node":    {call: call{path: tenant + "x/k8s-resources"}, status: 404, ec: "ERR.5.4.6114"},
		"nothing matches":         {given: created, call: call{path: resources + "?kind=Job"}, status: 404, ec: "ERR.5.4.6114"},
		"node fails the filter":   {given: created, call: call{path: pod + "?kind=Job"}, status: 404, ec: "ERR.5.4.6114"},
		"page past the end":       {given: created, call: call{path: resources + "?resultIndex=2&resultSize=1"}, status: 404, ec: "ERR.5.4.6114"},
		"page far past the end":   {given: created, call: call{path: resources + "?resultIndex=9223372036854775807&resultSize=9223372036854775807"}, status: 404, ec: "ERR.5.4.6114"},
		"page that is no number":  {given: created, call: call{path: resources + "?resultIndex=x&resultSize=1"}, status: 500, ec: "ERR.5.4.4000"},
		"unknown property":        {given: created, call: call{path: resources + "?status=Ready"}, status: 400, ec: "ERR.5.2.3000"},
		"container as a property": {call: call{path: tenant + "?k8s-resources=x"}, status: 400, ec: "ERR.5.2.3000"},
		"depth that is no number": {call: call{path: tenant + "?depth=deep"}, status: 400, ec: "4.0.4016"},
		"unknown format":          {call: call{path: tenant + "?format=nice"}, status: 400, ec: "ERR.5.4.6120"},
		"version as a property":   {call: call{path: tenant + "?resource-version=1"}, status: 404, ec: "ERR.5.4.6114"},
		"boolean as a property":   {call: call{path: vnf + "?in-maint=false"}, status: 200},
		"top container":           {call: call{path: "/cloud-infrastructure/cloud-regions"}, status: 200},
	}.run(t)
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
			diff(t, "shows empty containers", false, strings.Contains(body, "vservers"))
		})
	}
}

func TestCount(t *testing.T) {
	h := withResources(t, 3)
	diff(t, "count", `{"results":[{"k8s-resource":3}]}`, h.must(call{path: resources + "?format=count"}).body)
	diff(t, "count of some", `{"results":[{"k8s-resource":1}]}`, h.must(call{path: resources + "?format=count&data-owner=odd"}).body)
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

func TestFieldsComeInSchemaOrder(t *testing.T) {
	h := newHarness(t, Options{})
	h.must(put1(pod, `{"data-source-version":"7","selflink":"s","labels":["l"],"namespace":"ns","kind":"K","version":"v","group":"g","name":"n","data-source":"c","data-owner":"o"}`))
	want := `{"id":"pod-1","name":"n","group":"g","version":"v","kind":"K","namespace":"ns","labels":["l"],"selflink":"s",` +
		`"data-owner":"o","data-source":"c","data-source-version":"7","resource-version":"` + h.version(pod) + `"}`
	diff(t, "document", want, h.must(call{path: pod}).body)
}

func TestExampleHasEveryFieldOfTheType(t *testing.T) {
	h := newHarness(t, Options{})
	doc := h.must(call{path: "/examples/vf-module"}).decode(t)
	for _, p := range typeNamed("vf-module", 32).properties {
		if _, ok := doc[p.name]; !ok && p.kind != relationsKind {
			t.Errorf("the example lacks %q", p.name)
		}
	}
}
