package plan_test

import (
	"testing"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/plan"
)

func TestDeletionsAreHeldInParts(t *testing.T) {
	of := func(namespace, selflink string) aai.Document {
		return ready("a", func(d *aai.Document) { d.Namespace, d.Selflink = namespace, selflink })
	}
	cases := map[string]struct {
		document aai.Document
		part     plan.Part
		held     bool
	}{
		"the whole source":                                    {of("ns", "http://x/scopes/ns/s"), plan.Part{Source: "edge"}, true},
		"every source":                                        {of("ns", "http://x/scopes/ns/s"), plan.Part{}, true},
		"another source":                                      {of("ns", "http://x/scopes/ns/s"), plan.Part{Source: "core"}, false},
		"its namespace":                                       {of("ns", "http://x/scopes/ns/s"), plan.Part{Source: "edge", Namespace: "ns"}, true},
		"its namespace in every source":                       {of("ns", "http://x/scopes/ns/s"), plan.Part{Namespace: "ns"}, true},
		"its namespace in another source":                     {of("ns", "http://x/scopes/ns/s"), plan.Part{Source: "core", Namespace: "ns"}, false},
		"another namespace":                                   {of("ns", "http://x/scopes/ns/s"), plan.Part{Source: "edge", Namespace: "other"}, false},
		"the namespace of its scope":                          {of("ns", "http://x/scopes/trusted/s"), plan.Part{Source: "edge", Namespace: "trusted"}, true},
		"its own, when the scope is elsewhere":                {of("ns", "http://x/scopes/trusted/s"), plan.Part{Source: "edge", Namespace: "ns"}, true},
		"of no namespace, the scope's":                        {of("", "http://x/scopes/trusted/s"), plan.Part{Source: "edge", Namespace: "trusted"}, true},
		"of no namespace, another":                            {of("", "http://x/scopes/trusted/s"), plan.Part{Source: "edge", Namespace: "ns"}, false},
		"of no scope: nobody knows which bundle it came from": {of("ns", "http://x/scopes?namespace=ns"), plan.Part{Source: "edge", Namespace: "other"}, true},
		"of no scope, in another source":                      {of("ns", "http://x/scopes?namespace=ns"), plan.Part{Source: "core", Namespace: "ns"}, false},
		"with a selflink that somebody has put there":         {of("ns", "gopher://x"), plan.Part{Source: "edge", Namespace: "other"}, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := plan.Diff(nil, documents(c.document), plan.Holds{Deletions: map[plan.Part]string{c.part: "it is truncated"}}, options)
			if held := len(p.Kept) == 1; held != c.held || len(p.Operations) == len(p.Kept) {
				t.Fatalf("%d deleted, %d kept; want it held: %t", len(p.Operations), len(p.Kept), c.held)
			}
			if c.held && (p.Kept[0].Message != "it is truncated" || p.Kept[0].Cause != plan.CauseSource || p.Kept[0].Source != "edge") {
				t.Errorf("kept: %+v", p.Kept[0])
			}
		})
	}
}
