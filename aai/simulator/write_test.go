package simulator

import (
	"net/http"
	"strings"
	"testing"
)

func TestWriteAnswers(t *testing.T) {
	created := []call{put1(pod, podBody)}
	missing := strings.Replace(pod, "tenant/t1", "tenant/nope", 1)
	answers{
		"create":                       {call: put1(pod, podBody), status: 201},
		"create with version":          {call: put1(pod, `{`+podFields+`,"resource-version":"1"}`), status: 412, ec: "ERR.5.4.6135"},
		"create below missing parent":  {call: put1(missing, podBody), status: 404, ec: "ERR.5.4.6114"},
		"version comes before parent":  {call: put1(missing, `{`+podFields+`,"resource-version":"1"}`), status: 412, ec: "ERR.5.4.6135"},
		"update without version":       {given: created, call: put1(pod, podBody), status: 412, ec: "ERR.5.4.6130"},
		"update with stale version":    {given: created, call: put1(pod, `{`+podFields+`,"resource-version":"1"}`), status: 412, ec: "ERR.5.4.6131"},
		"empty body lacks everything":  {call: put1(pod, ""), status: 400, ec: "ERR.5.2.3000"},
		"null for a required property": {call: put1(pod, strings.Replace(podBody, `"Pod"`, `null`, 1)), status: 400, ec: "ERR.5.2.3000"},
		"key matches":                  {call: put1(pod, `{"id":"pod-1",`+podFields+`}`), status: 201},
		"key contradicts":              {call: put1(pod, `{"id":"pod-2",`+podFields+`}`), status: 400, ec: "ERR.5.2.3000"},
		"wrapped":                      {call: put1(pod, `{"k8s-resource":`+podBody+`}`), status: 400, ec: "ERR.5.2.3000"},
		"broken JSON":                  {call: put1(pod, `{"name":`), status: 400, ec: "ERR.5.2.3000"},
		"text after JSON":              {call: put1(pod, podBody+"x"), status: 400, ec: "ERR.5.2.3000"},
		"top-level array":              {call: put1(pod, `[]`), status: 500, ec: "ERR.5.4.4000"},
		"top-level string":             {call: put1(pod, `"x"`), status: 400, ec: "ERR.5.2.3000"},
		"array for a string":           {call: put1(pod, strings.Replace(podBody, `"Pod"`, `["Pod"]`, 1)), status: 500, ec: "ERR.5.4.4000"},
		"unknown property":             {call: put1(pod, `{`+podFields+`,"status":"Ready"}`), status: 201},
		"model id without its version": {call: put1(vnf+"3", `{"vnf-type":"x","model-invariant-id":"m"}`), status: 400, ec: "ERR.5.2.3000"},
		"model id with its version":    {call: put1(vnf+"3", `{"vnf-type":"x","model-invariant-id":"m","model-version-id":"v"}`), status: 201},

		"patch":                       {given: created, call: patch1(pod, `{"data-source-version":"8"}`), status: 200},
		"patch a missing node":        {call: patch1(pod, `{}`), status: 404, ec: "ERR.5.4.6114"},
		"patch ignores the version":   {given: created, call: patch1(pod, `{"resource-version":"1","kind":"Job"}`), status: 200},
		"patch a key":                 {given: created, call: patch1(pod, `{"id":"pod-2"}`), status: 400, ec: "ERR.5.2.3000"},
		"patch a required property":   {given: created, call: patch1(pod, `{"kind":null}`), status: 200},
		"patch with children":         {call: patch1(tenant, `{"k8s-resources":{"k8s-resource":[]}}`), status: 400, ec: "ERR.5.2.3000"},
		"patch with array for string": {given: created, call: patch1(pod, `{"kind":["Job"]}`), status: 500, ec: "ERR.5.4.4000"},
		"patch with broken JSON":      {given: created, call: patch1(pod, `{`), status: 400, ec: "ERR.5.2.3000"},

		"delete without version":         {given: created, call: delete1(pod, ""), status: 412, ec: "ERR.5.4.6130"},
		"delete with stale version":      {given: created, call: delete1(pod+"?resource-version=1", ""), status: 412, ec: "ERR.5.4.6131"},
		"delete with the magic version":  {given: created, call: delete1(pod+"?resource-version="+anyVersion, ""), status: 204},
		"magic version is for DELETE":    {given: created, call: put1(pod, `{`+podFields+`,"resource-version":"`+anyVersion+`"}`), status: 412, ec: "ERR.5.4.6131"},
		"delete a missing node":          {call: delete1(pod+"?resource-version=1", ""), status: 404, ec: "ERR.5.4.6114"},
		"delete a tenant with resources": {given: created, call: delete1(tenant+"?resource-version="+anyVersion, ""), status: 400, ec: "ERR.5.4.6110"},
		"delete a region with tenants":   {call: delete1(region+"?resource-version="+anyVersion, ""), status: 400, ec: "ERR.5.4.6110"},
		"version is checked before that": {call: delete1(region+"?resource-version=1", ""), status: 412, ec: "ERR.5.4.6131"},
	}.run(t)
}

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

func TestLabelsComeBackInAnOrderOfTheirOwn(t *testing.T) {
	h := newHarness(t, Options{})
	h.must(put1(pod, `{`+podFields+`,"labels":["a","b","c","d","e","f","g","h"]}`))
	first := h.must(call{path: pod}).body
	if strings.Contains(first, `["a","b","c","d","e","f","g","h"]`) {
		t.Error("labels come back as they were written, but A&AI keeps no order")
	}
	diff(t, "second read", first, h.must(call{path: pod}).body)
}

func TestEveryWriteMovesTheVersion(t *testing.T) {
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

func TestVersionIsTheClockInMilliseconds(t *testing.T) {
	h := newHarness(t, Options{})
	diff(t, "version of the first write at 1763600000000", "1763600000000", h.version(region))
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

func TestDeleteTakesAlongWhatTheRulesSay(t *testing.T) {
	h := newHarness(t, Options{})
	vnfc := "/network/vnfcs/vnfc/c1"
	h.must(put1(vnfc, `{"nfc-naming-code":"n","nfc-function":"f","relationship-list":{"relationship":[{"related-link":"`+module+`"}]}}`))
	h.must(put1(pod, `{`+podFields+`,"relationship-list":{"relationship":[{"related-link":"`+module+`"},{"related-link":"`+vnf+`"}]}}`))
	version := h.version(pod)
	h.must(delete1(vnf+"?resource-version="+h.version(vnf), ""))
	for _, uri := range []string{vnf, module, vnfc} {
		if _, ok := h.Get(uri); ok {
			t.Errorf("%s outlived its VNF", uri)
		}
	}
	doc, ok := h.Get(pod)
	if !ok {
		t.Fatal("the k8s-resource went with the VNF, but no rule says so")
	}
	diff(t, "edges to the deleted", nil, doc["relationship-list"])
	if h.version(pod) == version {
		t.Error("the resource-version of the other end did not move")
	}
}

func TestDeleteOfResourceMovesTheOtherEndsButNotTheTenant(t *testing.T) {
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

// The examples of RFC 7396, appendix A, that start from an object.
func TestMerge(t *testing.T) {
	for _, tc := range [][3]string{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
	} {
		target, patch := decodeInto[map[string]any](t, tc[0]), decodeInto[map[string]any](t, tc[1])
		diff(t, tc[0]+" with "+tc[1], decodeInto[map[string]any](t, tc[2]), merge(target, patch))
	}
}
