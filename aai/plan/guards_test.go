package plan_test

import (
	"testing"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/plan"
)

func TestDeletionsAreGuardedByPartition(t *testing.T) {
	of := func(namespace, selflink string) aai.Document {
		return ready("a", func(d *aai.Document) { d.Namespace, d.Selflink = namespace, selflink })
	}
	cases := map[string]struct {
		document aai.Document
		part     plan.Partition
		held     bool
	}{
		"the whole source":               {of("ns", "http://x/scopes/trusted/s"), plan.Partition{Source: "edge"}, true},
		"every source":                   {of("ns", "http://x/scopes/trusted/s"), plan.Partition{}, true},
		"another source":                 {of("ns", "http://x/scopes/trusted/s"), plan.Partition{Source: "core"}, false},
		"its namespace":                  {of("ns", "http://x/scopes/trusted/s"), plan.Partition{Source: "edge", Namespace: "ns"}, true},
		"its namespace in every source":  {of("ns", "http://x/scopes/trusted/s"), plan.Partition{Namespace: "ns"}, true},
		"the namespace of its scope":     {of("ns", "http://x/scopes/trusted/s"), plan.Partition{Source: "edge", Namespace: "trusted"}, true},
		"another namespace":              {of("ns", "http://x/scopes/trusted/s"), plan.Partition{Source: "edge", Namespace: "other"}, false},
		"no namespace, another scope":    {of("", "http://x/scopes/trusted/s"), plan.Partition{Source: "edge", Namespace: "ns"}, false},
		"no scope: any of its bundles":   {of("ns", "http://x/scopes?namespace=ns"), plan.Partition{Source: "edge", Namespace: "other"}, true},
		"no scope, in another source":    {of("ns", "http://x/scopes?namespace=ns"), plan.Partition{Source: "core", Namespace: "ns"}, false},
		"a selflink that others changed": {of("ns", "gopher://x"), plan.Partition{Source: "edge", Namespace: "other"}, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := plan.Diff(nil, documents(c.document), plan.Guards{Deletions: map[plan.Partition]string{c.part: "it is truncated"}}, options)
			if held := len(p.Skipped) == 1; held != c.held || len(p.Operations) == len(p.Skipped) {
				t.Fatalf("%d deleted, %d skipped; want it held: %t", len(p.Operations), len(p.Skipped), c.held)
			}
			if c.held && (p.Skipped[0].Message != "it is truncated" || p.Skipped[0].Cause != plan.CauseSource || p.Skipped[0].Source != "edge") {
				t.Errorf("skipped: %+v", p.Skipped[0])
			}
		})
	}
}
