package inventory

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/plan"
	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/controllers/scope"
)

// several is a fleet of several clusters; complete says that it is known which there are.
type several struct {
	oneCluster

	complete bool
	states   []fleet.ClusterState
}

func (s several) Complete() bool { return s.complete }

func (s several) States() []fleet.ClusterState { return s.states }

func (s several) Clusters() []string {
	var names []string
	for _, c := range s.states {
		names = append(names, c.Name)
	}
	return names
}

// TestWhatCannotBeSeenIsNotTakenForGone has clusters in every state.
func TestWhatCannotBeSeenIsNotTakenForGone(t *testing.T) {
	t.Parallel()
	c := several{complete: true}
	want := map[plan.Part]bool{}
	for _, r := range fleet.Reachabilities() {
		c.states = append(c.states, fleet.ClusterState{Name: string(r), Reachability: r})
		if r != fleet.Connected {
			want[plan.Part{Source: string(r)}] = true
		}
	}
	held := func(n news) map[plan.Part]bool {
		parts := map[plan.Part]bool{}
		for part := range n.Deletions {
			parts[part] = true
		}
		return parts
	}
	n := filled(nil, nil, nil, configv1alpha1.SelectScoped).ask(tenant, c)
	if diff := cmp.Diff(want, held(n)); diff != "" {
		t.Errorf("deletions are held in: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(c.Clusters(), n.Existing); diff != "" {
		t.Errorf("existing: -want +got:\n%s", diff)
	}
	c.complete = false
	n = filled(nil, nil, nil, configv1alpha1.SelectScoped).ask(tenant, c)
	if diff := cmp.Diff(map[plan.Part]bool{{}: true}, held(n)); diff != "" || n.Existing != nil {
		t.Errorf("before it is known which clusters there are: existing %v, deletions are held in: -want +got:\n%s", n.Existing, diff)
	}
}

// TestNewsOfAClusterIsNewsForEveryTenant makes sure that deletions which were held are thought of again.
func TestNewsOfAClusterIsNewsForEveryTenant(t *testing.T) {
	t.Parallel()
	i := filled(nil, nil, nil, configv1alpha1.SelectScoped)
	var told []aai.Tenant
	i.onChange(func(tenant aai.Tenant) { told = append(told, tenant) })
	i.clusterChanged(nil, &fleet.ClusterState{Name: "edge", Reachability: fleet.Connecting})
	if diff := cmp.Diff(i.mapping.Tenants(), told); diff != "" {
		t.Errorf("tenants told: -want +got:\n%s", diff)
	}
}

// TestDeletionsWaitForScopesThatAClusterHasComeAfter has clusters come into sight before and after scopes are judged, and while one is.
func TestDeletionsWaitForScopesThatAClusterHasComeAfter(t *testing.T) {
	t.Parallel()
	shop, back, j := name("shop", "s"), name("back", "b"), judgedScopes{}
	i := newIndex(options(), configv1alpha1.SelectScoped, j, nil)
	var told int
	judge := func(n types.NamespacedName, arrivals uint64) {
		i.scopeExists(n, noon, 1)
		j[n] = judged()
		j[n].Arrivals = arrivals
		i.scopeJudged(n)
	}
	state := func(name string, arrival uint64) *fleet.ClusterState {
		return &fleet.ClusterState{Name: name, Reachability: fleet.Connected, Arrival: arrival}
	}
	held := func(want ...string) {
		t.Helper()
		if got := parts(i.take(tenant, nil)); !slices.Equal(got, want) {
			t.Errorf("deletions are held in %q, want %q", got, want)
		}
	}
	i.clusterChanged(nil, state("west", 1))
	judge(shop, 1)
	judge(back, 1)
	held()
	i.clusterChanged(state("east", 0), state("east", 2))
	held("east/back", "east/shop")
	judge(shop, 1) // It was gathered before.
	held("east/back", "east/shop")
	if judge(shop, 2); !i.isBehind() {
		t.Error("nobody is behind while a scope is")
	}
	held("east/back")
	i.onChange(func(aai.Tenant) { told++ })
	judge(back, 2)
	held()
	if i.isBehind() {
		t.Error("somebody is behind when all have been judged")
	}
	if told == 0 {
		t.Error("nobody is told that deletions are held no more")
	}
	i.clusterChanged(state("east", 2), &fleet.ClusterState{Name: "east", Reachability: fleet.Unreachable, Arrival: 2})
	i.clusterChanged(&fleet.ClusterState{Name: "east", Reachability: fleet.Unreachable, Arrival: 2}, state("east", 2))
	held() // It was known all the time.
	i.clusterChanged(state("east", 2), nil)
	i.clusterChanged(nil, state("east", 3))
	held("east/back", "east/shop")
	judge(shop, 3)
	delete(j, back)
	i.scopeGone(back)
	i.scopeJudged(back)
	held()
}

// TestManyScopesWaitingForManyClustersCostLittle holds up everybody who tells of bundles for as long as it takes: what is
// held, and why, is the same however many scopes wait for it.
func TestManyScopesWaitingForManyClustersCostLittle(t *testing.T) { //nolint:paralleltest // Allocations are counted.
	j := judgedScopes{}
	i := newIndex(options(), configv1alpha1.SelectScoped, j, nil)
	const scopes, clusters = 1000, 100
	for n := range scopes {
		each := name("shop", fmt.Sprint("s", n))
		j[each] = judged()
		i.scopeExists(each, noon, 1)
		i.scopeJudged(each)
	}
	for n := range clusters {
		i.clusterChanged(nil, &fleet.ClusterState{Name: fmt.Sprint("edge", n), Reachability: fleet.Connected, Arrival: uint64(n + 1)})
	}
	before := i.take(tenant, nil).Deletions
	if allocated := testing.AllocsPerRun(10, func() { i.take(tenant, nil) }); len(before) != clusters || allocated > 20*clusters {
		t.Errorf("%.0f allocations for %d parts that are held", allocated, len(before))
	}
	first := name("shop", "s0")
	j[first] = &scope.Judged{Generation: 1, Arrivals: clusters}
	i.scopeJudged(first)
	if diff := cmp.Diff(before, i.take(tenant, nil).Deletions); diff != "" {
		t.Errorf("what is held has changed with the first scope that was judged:\n%s", diff)
	}
}
