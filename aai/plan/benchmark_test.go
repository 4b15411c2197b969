package plan_test

import (
	"strconv"
	"testing"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/plan"
)

// BenchmarkDiffOfTenThousandEqualDocuments measures a pass over a tenant. A pass compares all documents, even if only one has
// changed.
func BenchmarkDiffOfTenThousandEqualDocuments(b *testing.B) {
	desired, current := map[aai.Key]aai.Document{}, map[aai.Key]aai.Document{}
	for i := range 10_000 {
		d := ready(strconv.Itoa(i), labels("app=x", "hs/reason=ReplicasNotReady", "hs/since=2026-11-20T10:22:33Z", "hs/status=Pending", vnf1Claim), links(vnf1))
		desired[key(d.ID)] = d
		d.Labels = []string{"hs/status=Pending", "hs/since=2026-11-20T10:22:33Z", "app=x", vnf1Claim, "hs/reason=ReplicasNotReady"}
		d.RelationshipList.Relationships = []aai.Relationship{as(vnf1)}
		current[key(d.ID)] = d
	}
	for b.Loop() {
		if p := plan.Diff(desired, current, plan.Guards{}, options); len(p.Operations) > 0 {
			b.Fatal("the documents are equal")
		}
	}
}
