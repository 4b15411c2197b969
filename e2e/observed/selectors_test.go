package observed

import (
	"slices"
	"testing"
)

func TestSelectors(t *testing.T) {
	for query, want := range map[string][]string{
		`up`: {"up"},
		`sum without (instance, pod) (rate(a_total{code=~"5..|x", job='}'}[5m] offset 1h)) > bool 0.05`: {`a_total{code=~"5..|x",job="}"}`},
		`max(a) by (le) / on (job) group_left (name) b unless ignoring (c) d{} == 1e3`:                  {"a", "b", "d"},
		`max_over_time((max by (by) (a) - time())[1d:5m])`:                                              {"a"},
		`histogram_quantile(0.95, sum by (le) (rate(a_bucket{b=~"$b"}[$__rate_interval])))`:             {`a_bucket{b=~".*"}`},
	} {
		selectors, err := Selectors(query)
		if err != nil {
			t.Errorf("%s: %v", query, err)
		}
		var got []string
		for _, s := range selectors {
			got = append(got, s.String())
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}
	if got, err := Selectors(`sum(a`); err == nil {
		t.Errorf("got %v of what is no query, want an error", got)
	}
}
