package plan_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
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
	type bySource = map[string]int
	cases := map[string]struct {
		owned    bySource
		percent  int
		policy   plan.Policy
		existing []string // the data-sources that exist; nil if it is not known which do
		deleted  bySource
		cause    plan.Cause
		message  string
	}{
		"no limit":                      {owned: bySource{"edge": 1000}, deleted: bySource{"edge": 1000}},
		"all at a time":                 {owned: bySource{"edge": 1000}, percent: 100, deleted: bySource{"edge": 1000}},
		"a fifth at a time":             {owned: bySource{"edge": 1000}, percent: 20, deleted: bySource{"edge": 200}, cause: plan.CauseLimit, message: `no more than 200 of the 1000 resources of cluster "edge" go at a time`},
		"a handful goes in any case":    {owned: bySource{"edge": 25}, percent: 20, deleted: bySource{"edge": 20}, cause: plan.CauseLimit, message: `no more than 20 of the 25 resources of cluster "edge" go at a time`},
		"less than a handful":           {owned: bySource{"edge": 19}, percent: 1, deleted: bySource{"edge": 19}},
		"each source has its own":       {owned: bySource{"edge": 100, "core": 20}, percent: 50, deleted: bySource{"edge": 50, "core": 20}, cause: plan.CauseLimit, message: `no more than 50 of the 100 resources of cluster "edge" go at a time`},
		"a source that was removed":     {owned: bySource{"edge": 1000, "core": 50}, percent: 20, existing: []string{"edge", "x"}, deleted: bySource{"edge": 200, "core": 50}, cause: plan.CauseLimit, message: `no more than 200 of the 1000 resources of cluster "edge" go at a time`},
		"never any":                     {owned: bySource{"edge": 30}, policy: plan.UpsertOnly, cause: plan.CausePolicy, message: "the policy is upsert-only"},
		"never any of a removed source": {owned: bySource{"edge": 30}, policy: plan.UpsertOnly, existing: []string{"core"}, cause: plan.CausePolicy, message: "the policy is upsert-only"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			current, owned := map[aai.Key]aai.Document{}, 0
			for source, n := range c.owned {
				maps.Copy(current, manyDocuments(n, source))
				owned += n
			}
			o := options
			o.Policy, o.Limit = c.policy, plan.Limit{Percent: c.percent}
			p := plan.Diff(nil, current, plan.Guards{Existing: c.existing}, o)
			deleted := bySource{}
			for _, op := range p.Operations {
				deleted[current[op.Key].DataSource]++
			}
			if diff := cmp.Diff(c.deleted, deleted, cmpopts.EquateEmpty()); diff != "" || len(p.Operations)+len(p.Skipped) != owned {
				t.Errorf("%d skipped of %d; deleted, -want +got:\n%s", len(p.Skipped), owned, diff)
			}
			for _, s := range p.Skipped {
				if want := (plan.Skipped{Key: s.Key, Source: "edge", Cause: c.cause, Message: c.message}); s != want {
					t.Fatalf("skipped %+v, want %+v", s, want)
				}
			}
		})
	}
}

// TestNoLimit asserts that documents can go that the source did not have yet when the limiter was created.
func TestNoLimit(t *testing.T) {
	for _, percent := range []int{-1, 0, 100, 101} {
		l := plan.NewDeletionLimiter(1, plan.Limit{Percent: percent})
		for k := range manyDocuments(100, "edge") {
			if !l.Allow(k) {
				t.Fatalf("a limit of %d percent refuses %q", percent, k.ID)
			}
		}
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
