package simulator

import (
	"strconv"
	"strings"
	"testing"
)

func TestStrictModeNamesWhatACarefulClientAvoids(t *testing.T) {
	withHeader := func(c call, name, value string) call {
		c.header = map[string]string{name: value, "X-TransactionId": "tx-0"}
		return c
	}
	fresh := func(c call) call { return withHeader(c, "X-TransactionId", "tx-0") }
	for name, tc := range map[string]struct {
		given []call
		call  call
		want  []ViolationKind
	}{
		"good create":             {call: fresh(put1(pod, linked(vnf))), want: nil},
		"good patch":              {given: []call{put1(pod, podBody)}, call: fresh(patch1(pod, `{"labels":["a"]}`)), want: nil},
		"good delete":             {given: []call{put1(pod, podBody)}, call: fresh(delete1(pod+"?resource-version="+anyVersion, "")), want: nil},
		"good bulk":               {call: fresh(bulk1(operations(op("put", pod, podBody), op("patch", pod, `{"labels":["a"]}`)))), want: nil},
		"good nested create":      {call: fresh(put1(vnf+"3", `{"vnf-type":"t","vf-modules":{"vf-module":[{"vf-module-id":"m"}]}}`)), want: nil},
		"unknown property":        {call: fresh(put1(pod, `{`+podFields+`,"status":"Ready"}`)), want: []ViolationKind{UnknownProperty}},
		"unknown below":           {call: fresh(put1(pod, `{`+podFields+`,"relationship-list":{"relationships":[]}}`)), want: []ViolationKind{UnknownProperty}},
		"unknown in relationship": {call: fresh(put1(pod, strings.Replace(linked(vnf), `"related-link"`, `"link":"","related-link"`, 1))), want: []ViolationKind{UnknownProperty}},
		"wrong case":              {call: fresh(put1(pod, `{`+podFields+`,"dataOwner":"x"}`)), want: []ViolationKind{WrongCase}},
		"number for a string":     {call: fresh(put1(pod, `{`+podFields+`,"data-owner":5}`)), want: []ViolationKind{WrongType}},
		"string for a boolean":    {call: fresh(put1(vnf+"3", `{"vnf-type":"t","in-maint":"true"}`)), want: []ViolationKind{WrongType}},
		"string for an integer":   {call: fresh(put1(vnf+"3", `{"vnf-type":"t","vcpu":"4"}`)), want: []ViolationKind{WrongType}},
		"labels as a string":      {call: fresh(put1(pod, `{`+podFields+`,"labels":"a"}`)), want: []ViolationKind{WrongType}},
		"labels twice":            {call: fresh(put1(pod, `{`+podFields+`,"labels":["a","a"]}`)), want: []ViolationKind{DuplicateLabel}},
		"edges as an array":       {call: fresh(put1(pod, `{`+podFields+`,"relationship-list":[]}`)), want: []ViolationKind{WrongType}},
		"wrapped":                 {call: fresh(put1(pod, `{"k8s-resource":`+podBody+`}`)), want: []ViolationKind{WrappedBody}},
		"no accept":               {call: withHeader(call{path: vnf}, "Accept", ""), want: []ViolationKind{MissingAccept}},
		"any accept":              {call: withHeader(call{path: vnf}, "Accept", "*/*"), want: []ViolationKind{XMLAccept}},
		"raw colon":               {call: fresh(call{path: resources + "/k8s-resource/a:b"}), want: []ViolationKind{NonCanonicalEncoding}},
		"raw colon in bulk":       {call: fresh(bulk1(operations(op("put", resources+"/k8s-resource/a:b", podBody)))), want: []ViolationKind{NonCanonicalEncoding}},
		"patch of nothing":        {given: []call{put1(pod, podBody)}, call: fresh(patch1(pod, `{}`)), want: []ViolationKind{UnchangedPatch}},
		"patch of the same edges": {given: []call{put1(pod, linked(vnf))}, call: fresh(patch1(pod, `{"relationship-list":{"relationship":[{"related-link":"`+vnf+`"}]}}`)), want: []ViolationKind{UnchangedPatch}},
		"patch of edges":          {given: []call{put1(pod, linked(vnf))}, call: fresh(patch1(pod, `{"relationship-list":{"relationship":[{"related-link":"`+otherVNF+`"}]}}`)), want: nil},
		"two faults in one body":  {call: fresh(put1(pod, `{`+podFields+`,"status":"Ready","labels":["a","a"]}`)), want: []ViolationKind{DuplicateLabel, UnknownProperty}},
		"transaction id again":    {given: []call{put1(pod, podBody)}, call: call{path: pod}, want: []ViolationKind{ReusedTransactionID}},
		"the same request again":  {given: []call{{path: vnf}}, call: call{path: vnf}, want: nil},
		"another body":            {given: []call{put1(pod, podBody)}, call: put1(pod, linked(vnf)), want: []ViolationKind{ReusedTransactionID}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, Options{Strict: true})
			for _, c := range tc.given {
				h.must(c)
			}
			h.send(tc.call)
			log := h.Violations()
			kinds := make([]ViolationKind, len(log))
			for i, v := range log {
				kinds[i] = v.Kind
			}
			diff(t, "violations", append([]ViolationKind{}, tc.want...), kinds)
		})
	}
}

func TestUnchangedPut(t *testing.T) {
	h := newHarness(t, Options{Strict: true})
	body := `{` + podFields + `,"labels":["b","a"]`
	h.must(put1(pod, body+`}`))
	c := put1(pod, `{`+podFields+`,"labels":["a","b"],"resource-version":"`+h.version(pod)+`"}`)
	c.header = map[string]string{"X-TransactionId": "tx-2"}
	h.must(c)
	edges := put1(pod, strings.Replace(linked(vnf), "{", `{"labels":["a","b"],"resource-version":"`+h.version(pod)+`",`, 1))
	edges.header = map[string]string{"X-TransactionId": "tx-3"}
	h.must(edges)
	diff(t, "violations, as a PUT of other edges is a change", 1, len(h.Violations()))
	got := h.Violations()[0]
	want := Violation{
		Time: base, Kind: UnchangedPut, Request: "PUT /aai/v32" + pod, TransactionID: "tx-2", Detail: pod[1:] + " already is what was sent",
	}
	diff(t, "violation", want, got)
}

func TestFaithfulModeLogsNothingAndAnswersTheSame(t *testing.T) {
	bad := put1(pod, `{`+podFields+`,"status":"Ready","labels":"a"}`)
	strict, faithful := newHarness(t, Options{Strict: true}), newHarness(t, Options{})
	diff(t, "status", strict.send(bad).status, faithful.send(bad).status)
	diff(t, "inventory", strict.State(), faithful.State())
	diff(t, "violations", []Violation{}, faithful.Violations())
	diff(t, "violations in strict mode", 2, len(strict.Violations()))
}

func TestViolationLogIsBounded(t *testing.T) {
	h := newHarness(t, Options{Strict: true, JournalSize: 1})
	for range maxViolations + 10 {
		h.send(call{path: vnf, header: map[string]string{"Accept": ""}})
	}
	diff(t, "entries", maxViolations, len(h.Violations()))
}

func TestTransactionIDsAreForgottenInTheEnd(t *testing.T) {
	l := &violationLog{strict: true}
	for i := range maxTransactionIDs + 1 {
		l.remember(strconv.Itoa(i), "content")
	}
	diff(t, "ids remembered", len(l.order), len(l.seen))
	if len(l.seen) > maxTransactionIDs {
		t.Errorf("%d transaction ids are remembered, the bound is %d", len(l.seen), maxTransactionIDs)
	}
}
