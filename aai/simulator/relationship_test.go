package simulator

import (
	"strings"
	"testing"
)

const podEdge = pod + "/relationship-list/relationship"

func linked(links ...string) string {
	list := make([]string, len(links))
	for i, link := range links {
		list[i] = `{"related-link":"` + link + `"}`
	}
	return `{` + podFields + `,"relationship-list":{"relationship":[` + strings.Join(list, ",") + `]}}`
}

func TestRelationshipAnswers(t *testing.T) {
	created := []call{put1(pod, podBody)}
	withVNF := []call{put1(pod, linked(vnf))}
	complexURI := "/cloud-infrastructure/complexes/complex/c1"
	answers{
		"put":                         {given: created, call: put1(podEdge, `{"related-link":"`+vnf+`"}`), status: 200},
		"put with version in link":    {given: created, call: put1(podEdge, `{"related-link":"/aai/v24`+vnf+`"}`), status: 200},
		"put by keys":                 {given: created, call: put1(podEdge, `{"related-to":"generic-vnf","relationship-data":[{"relationship-key":"generic-vnf.vnf-id","relationship-value":"vnf-1"}]}`), status: 200},
		"put with label":              {given: created, call: put1(podEdge, `{"related-link":"`+vnf+`","relationship-label":"tosca.relationships.HostedOn"}`), status: 200},
		"put from the other end":      {given: created, call: put1(vnf+"/relationship-list/relationship", `{"related-link":"`+pod+`"}`), status: 200},
		"put again":                   {given: withVNF, call: put1(podEdge, `{"related-link":"`+vnf+`"}`), status: 200},
		"source missing":              {call: put1(podEdge, `{"related-link":"`+vnf+`"}`), status: 404, ec: "ERR.5.4.6114"},
		"target missing":              {given: created, call: put1(podEdge, `{"related-link":"`+vnf+`9"}`), status: 404, ec: "ERR.5.4.6129"},
		"absolute link":               {given: created, call: put1(podEdge, `{"related-link":"https://aai:8443/aai/v32`+vnf+`"}`), status: 400, ec: "ERR.5.2.3000"},
		"link without version":        {given: created, call: put1(podEdge, `{"related-link":"/aai/inventory`+vnf+`"}`), status: 400, ec: "ERR.5.2.3000"},
		"no target named":             {given: created, call: put1(podEdge, `{}`), status: 400, ec: "ERR.5.2.3000"},
		"empty body":                  {given: created, call: put1(podEdge, ``), status: 400, ec: "ERR.5.2.3000"},
		"keys incomplete":             {given: created, call: put1(podEdge, `{"related-to":"vf-module","relationship-data":[{"relationship-key":"vf-module.vf-module-id","relationship-value":"mod-1"}]}`), status: 400, ec: "ERR.5.2.3000"},
		"unknown label":               {given: created, call: put1(podEdge, `{"related-link":"`+vnf+`","relationship-label":"x"}`), status: 400, ec: "ERR.5.4.6107"},
		"no rule for the pair":        {given: created, call: put1(podEdge, `{"related-link":"`+region+`"}`), status: 400, ec: "ERR.5.4.6107"},
		"containment":                 {given: created, call: put1(podEdge, `{"related-link":"`+tenant+`"}`), status: 400, ec: "ERR.5.4.6107"},
		"second VNF":                  {given: withVNF, call: put1(podEdge, `{"related-link":"`+otherVNF+`"}`), status: 400, ec: "ERR.5.4.6140"},
		"second VNF from its end":     {given: withVNF, call: put1(otherVNF+"/relationship-list/relationship", `{"related-link":"`+pod+`"}`), status: 400, ec: "ERR.5.4.6140"},
		"module beside VNF":           {given: withVNF, call: put1(podEdge, `{"related-link":"`+module+`"}`), status: 200},
		"array for the link":          {given: created, call: put1(podEdge, `{"related-link":["`+vnf+`"]}`), status: 500, ec: "ERR.5.4.4000"},
		"delete":                      {given: withVNF, call: delete1(podEdge, `{"related-link":"`+vnf+`"}`), status: 204},
		"delete an absent edge":       {given: created, call: delete1(podEdge, `{"related-link":"`+vnf+`"}`), status: 204},
		"delete to an absent target":  {given: created, call: delete1(podEdge, `{"related-link":"`+vnf+`9"}`), status: 204},
		"delete without body":         {given: withVNF, call: delete1(podEdge, ``), status: 400, ec: "ERR.5.1.3102"},
		"delete from a missing node":  {call: delete1(podEdge, `{"related-link":"`+vnf+`"}`), status: 404, ec: "ERR.5.4.6114"},
		"list":                        {given: withVNF, call: call{path: pod + "/relationship-list"}, status: 200},
		"empty list":                  {given: created, call: call{path: pod + "/relationship-list"}, status: 404, ec: "ERR.5.4.6149"},
		"list of a missing node":      {call: call{path: pod + "/relationship-list"}, status: 404, ec: "ERR.5.4.6114"},
		"body: target missing":        {call: put1(pod, linked(vnf+"9")), status: 404, ec: "ERR.5.4.6129"},
		"body: no rule":               {call: put1(pod, linked(region)), status: 400, ec: "ERR.5.4.6120"},
		"body: containment":           {call: put1(pod, linked(tenant)), status: 400, ec: "ERR.5.4.6145"},
		"body: multiplicity":          {call: put1(pod, linked(vnf, otherVNF)), status: 400, ec: "ERR.5.4.6140"},
		"body: same twice":            {call: put1(pod, linked(vnf, vnf)), status: 201},
		"complex with a VNF in it":    {given: complexWith(complexURI, vnf), call: delete1(complexURI+"?resource-version="+anyVersion, ""), status: 400, ec: "ERR.5.4.6110"},
		"VNF in a complex":            {given: complexWith(complexURI, otherVNF), call: delete1(otherVNF+"?resource-version="+anyVersion, ""), status: 204},
		"complex with a region in it": {given: complexWith(complexURI, region), call: delete1(complexURI+"?resource-version="+anyVersion, ""), status: 204},
	}.run(t)
}

func complexWith(uri, link string) []call {
	return []call{put1(uri, `{"physical-location-type":"t","street1":"s","city":"c","postal-code":"p","country":"c","region":"r",`+
		`"relationship-list":{"relationship":[{"related-link":"`+link+`"}]}}`)}
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

func TestSubResourceMovesBothEnds(t *testing.T) {
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

func TestSupportsBetweenVNFsIsOneEdge(t *testing.T) {
	h := newHarness(t, Options{})
	h.must(put1(vnf+"/relationship-list/relationship", `{"related-link":"`+otherVNF+`"}`))
	h.must(put1(otherVNF+"/relationship-list/relationship", `{"related-link":"`+vnf+`"}`))
	diff(t, "edges", []string{otherVNF}, links(h, vnf))
}
