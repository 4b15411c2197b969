package plan_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/plan"
)

// manyDocuments returns n documents of a data-source.
func manyDocuments(n int, source string) map[aai.Key]aai.Document {
	m := map[aai.Key]aai.Document{}
	for i := range n {
		d := ready(fmt.Sprintf("%s-%05d", source, i), func(d *aai.Document) { d.DataSource = source })
		m[key(d.ID)] = d
	}
	return m
}

func TestDeletionsAreLimited(t *testing.T) {
	cases := map[string]struct {
		owned   int
		percent int
		policy  plan.Policy
		// existing are the data-sources that exist.
		existing []string
		deleted  int
		cause    plan.Cause
	}{
		"no limit":                      {owned: 1000, deleted: 1000},
		"all at a time":                 {owned: 1000, percent: 100, deleted: 1000},
		"a fifth at a time":             {owned: 1000, percent: 20, deleted: 200, cause: plan.CauseLimit},
		"a handful goes in any case":    {owned: 25, percent: 20, deleted: 20, cause: plan.CauseLimit},
		"less than a handful":           {owned: 19, percent: 1, deleted: 19},
		"a cluster that exists":         {owned: 1000, percent: 20, existing: []string{"core", "edge"}, deleted: 200, cause: plan.CauseLimit},
		"a cluster that was removed":    {owned: 1000, percent: 20, existing: []string{"core"}, deleted: 1000},
		"never any":                     {owned: 30, policy: plan.UpsertOnly, deleted: 0, cause: plan.CausePolicy},
		"never any of a removed source": {owned: 30, policy: plan.UpsertOnly, existing: []string{"core"}, deleted: 0, cause: plan.CausePolicy},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o := options
			o.Policy, o.Limit = c.policy, plan.Limit{Percent: c.percent}
			p := plan.Diff(nil, manyDocuments(c.owned, "edge"), plan.Guards{Existing: c.existing}, o)
			if len(p.Operations) != c.deleted || len(p.Skipped) != c.owned-c.deleted {
				t.Errorf("%d deleted, %d skipped; want %d deleted of %d", len(p.Operations), len(p.Skipped), c.deleted, c.owned)
			}
			for _, k := range p.Skipped {
				if k.Cause != c.cause || k.Source != "edge" || k.Message == "" {
					t.Fatalf("skipped: %+v", k)
				}
			}
		})
	}
}

func TestLimitMessageNamesNumbers(t *testing.T) {
	o := options
	o.Limit = plan.Limit{Percent: 10}
	p := plan.Diff(nil, manyDocuments(500, "edge"), plan.Guards{}, o)
	if got := p.Skipped[0].Message; !strings.Contains(got, "50 of the 500") || !strings.Contains(got, `"edge"`) {
		t.Errorf("message is %q", got)
	}
}

func TestDeletionLimitIsPerSource(t *testing.T) {
	current := manyDocuments(100, "edge")
	maps.Copy(current, manyDocuments(40, "core"))
	o := options
	o.Limit = plan.Limit{Percent: 50}
	deleted := map[string]int{}
	for _, op := range plan.Diff(nil, current, plan.Guards{}, o).Operations {
		deleted[current[op.Key].DataSource]++
	}
	if diff := cmp.Diff(map[string]int{"edge": 50, "core": 20}, deleted); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestLimitedDeletionsComplete deletes all documents of a source in several passes, each within the limit of its limiter.
func TestLimitedDeletionsComplete(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		owned := rapid.IntRange(1, 3000).Draw(t, "owned")
		percent := rapid.IntRange(1, 99).Draw(t, "percent")
		limiter := plan.NewDeletionLimiter(owned, plan.Limit{Percent: percent})
		most := max(20, owned*percent/100)
		left, times := owned, 0
		for next := 0; left > 0; times++ {
			granted := 0
			for i := next; i < owned && limiter.Allow(key(fmt.Sprint(i))); i++ {
				if !limiter.Allow(key(fmt.Sprint(i))) {
					t.Fatalf("%d was granted and is refused", i)
				}
				granted++
			}
			if granted > most {
				t.Fatalf("%d of %d at a time, want %d at most", granted, owned, most)
			}
			left -= granted
			next += granted
			limiter = limiter.Next(left)
		}
		if most := (owned + most - 1) / most; times > most {
			t.Fatalf("it took %d times, want %d at most", times, most)
		}
		if !limiter.Allow(key("x")) || limiter.Refused() {
			t.Fatalf("when all is gone there is nothing to refuse")
		}
	})
}
