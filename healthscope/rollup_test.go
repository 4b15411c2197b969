package healthscope_test

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/healthscope/healthscope/healthscope"
)

// member returns a judged member that counts as a state.
func member(counts healthscope.State, change ...func(*healthscope.Result)) healthscope.Member {
	return healthscope.Member{Result: pod("p", counts, change...), Counts: counts}
}

func TestSummaryAndState(t *testing.T) {
	missing := member(healthscope.Pending)
	missing.State = healthscope.NotPresent
	owned := member(healthscope.Failed)
	owned.Owned = true
	cases := map[string]struct {
		members []healthscope.Member
		want    healthscope.Summary
		state   healthscope.State
	}{
		"nothing":               {nil, healthscope.Summary{}, healthscope.Unknown},
		"all ready":             {[]healthscope.Member{member(healthscope.Ready), member(healthscope.Ready)}, healthscope.Summary{Total: 2, Ready: 2, Healthy: 2}, healthscope.Ready},
		"owned ones":            {[]healthscope.Member{member(healthscope.Ready), owned}, healthscope.Summary{Total: 1, Ready: 1, Healthy: 1}, healthscope.Ready},
		"pending":               {[]healthscope.Member{member(healthscope.Ready), member(healthscope.Pending)}, healthscope.Summary{Total: 2, Ready: 1, Pending: 1, Healthy: 1}, healthscope.Pending},
		"pending and serving":   {[]healthscope.Member{member(healthscope.Pending, serving)}, healthscope.Summary{Total: 1, Pending: 1, Healthy: 1}, healthscope.Pending},
		"missing":               {[]healthscope.Member{missing}, healthscope.Summary{Total: 1, Pending: 1}, healthscope.Pending},
		"unknown before others": {[]healthscope.Member{member(healthscope.Pending), member(healthscope.Unknown)}, healthscope.Summary{Total: 2, Pending: 1, Unknown: 1}, healthscope.Unknown},
		"failed before all":     {[]healthscope.Member{member(healthscope.Unknown), member(healthscope.Failed)}, healthscope.Summary{Total: 2, Unknown: 1, Failed: 1}, healthscope.Failed},
		"unknown while serving": {[]healthscope.Member{member(healthscope.Unknown, serving)}, healthscope.Summary{Total: 1, Unknown: 1}, healthscope.Unknown},
		"failed while serving":  {[]healthscope.Member{member(healthscope.Failed, serving)}, healthscope.Summary{Total: 1, Failed: 1}, healthscope.Failed},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := healthscope.Summarize(tc.members)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("summary (-want +got):\n%s", diff)
			}
			if got.State() != tc.state {
				t.Errorf("state %s, want %s", got.State(), tc.state)
			}
		})
	}
}

func TestHealthPercentage(t *testing.T) {
	cases := map[string]struct {
		summary healthscope.Summary
		percent float64
		want    healthscope.Health
	}{
		"nothing":                         {healthscope.Summary{}, 100, healthscope.HealthUnknown},
		"one short of all":                {healthscope.Summary{Total: 3, Healthy: 2}, 100, healthscope.Unhealthy},
		"an unknown one in the way":       {healthscope.Summary{Total: 3, Healthy: 2, Unknown: 1}, 100, healthscope.HealthUnknown},
		"an unknown one is not all":       {healthscope.Summary{Total: 3, Healthy: 1, Unknown: 1}, 100, healthscope.Unhealthy},
		"unknown ones that do not matter": {healthscope.Summary{Total: 4, Healthy: 3, Unknown: 1}, 75, healthscope.Healthy},
		"unknown ones that would do":      {healthscope.Summary{Total: 4, Healthy: 2, Unknown: 1}, 75, healthscope.HealthUnknown},
		"exactly a fraction":              {healthscope.Summary{Total: 250, Healthy: 161}, 64.4, healthscope.Healthy},
		"one at least":                    {healthscope.Summary{Total: 4}, 0, healthscope.Unhealthy},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.summary.Health(tc.percent); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

func TestHealthNeedsNoMoreMembersThanThePercentage(t *testing.T) {
	for total := 1; total < 200; total++ {
		for percent := 1; percent <= 100; percent++ {
			needed := 0
			for (healthscope.Summary{Total: total, Healthy: needed}).Health(float64(percent)) != healthscope.Healthy {
				needed++
			}
			if needed*100 < total*percent || needed > 0 && (needed-1)*100 >= total*percent {
				t.Fatalf("%d%% of %d members need %d healthy ones", percent, total, needed)
			}
		}
	}
}

// TestABetterMemberIsNoWorseForAll asserts that a better member does not make health or state worse, with any other members. A
// member that does not count has no effect.
func TestABetterMemberIsNoWorseForAll(t *testing.T) {
	rank := map[healthscope.Health]int{healthscope.Unhealthy: 0, healthscope.HealthUnknown: 1, healthscope.Healthy: 2}
	counted := []healthscope.State{healthscope.Ready, healthscope.Pending, healthscope.Unknown, healthscope.Failed}
	rapid.Check(t, func(t *rapid.T) {
		var others []healthscope.Member
		for _, state := range rapid.SliceOfN(rapid.SampledFrom(counted), 0, 9).Draw(t, "others") {
			others = append(others, member(state))
		}
		percent := rapid.Float64Range(0.1, 100).Draw(t, "percent")
		pick := rapid.SampledFrom([]healthscope.Member{member(healthscope.Ready), member(healthscope.Pending), member(healthscope.Failed)})
		worse, better := pick.Draw(t, "worse"), member(healthscope.Ready)
		before, after := healthscope.Summarize(append(others, worse)), healthscope.Summarize(append(others, better))
		if rank[after.Health(percent)] < rank[before.Health(percent)] || healthscope.CompareStates(after.State(), before.State()) < 0 {
			t.Fatalf("with %s: %s, %s; with %s: %s, %s", worse.State, before.State(), before.Health(percent), better.State, after.State(), after.Health(percent))
		}
		shown := member(healthscope.Failed)
		shown.Owned = true
		if got, want := healthscope.Summarize(append(others, shown)), healthscope.Summarize(others); got != want {
			t.Fatalf("with an owned member: %+v, want %+v", got, want)
		}
	})
}

func TestStates(t *testing.T) {
	states := healthscope.States()
	for i, better := range states {
		if !better.Valid() {
			t.Errorf("%s is not valid", better)
		}
		for _, worse := range states[i+1:] {
			if healthscope.CompareStates(worse, better) >= 0 || healthscope.CompareStates(better, worse) <= 0 || healthscope.CompareStates(better, better) != 0 {
				t.Errorf("%s does not come before %s", worse, better)
			}
		}
	}
	if healthscope.State("Dancing").Valid() || healthscope.State("").Valid() {
		t.Error("a word that is no state is valid")
	}
}

func TestKeysSortByPlaceThenKindThenName(t *testing.T) {
	base := healthscope.Key{Cluster: "a", Group: "b", Kind: "c", Namespace: "d", Name: "e"}
	for i, next := range []healthscope.Key{
		{Cluster: "z", Group: "a", Kind: "a", Namespace: "a", Name: "a"},
		{Cluster: "a", Group: "z", Kind: "a", Namespace: "a", Name: "a"},
		{Cluster: "a", Group: "b", Kind: "z", Namespace: "a", Name: "a"},
		{Cluster: "a", Group: "b", Kind: "c", Namespace: "z", Name: "a"},
		{Cluster: "a", Group: "b", Kind: "c", Namespace: "d", Name: "z"},
	} {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			if same := base; base.Compare(next) >= 0 || next.Compare(base) <= 0 || base.Compare(same) != 0 {
				t.Errorf("%+v does not come before %+v", base, next)
			}
		})
	}
}
