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
	"github.com/healthscope/healthscope/healthscope"
)

// several is a fleet of several clusters. complete reports whether all clusters are known.
type several struct {
	oneCluster

	complete bool
	states   []fleet.ClusterState
}

func (s several) Complete() bool { return s.complete }

func (s several) States() []fleet.ClusterState { return s.states }

// TestUnreachableClustersGuardDeletions has clusters in every state.
func TestUnreachableClustersGuardDeletions(t *testing.T) {
	t.Parallel()
	c := several{complete: true}
	want, names := map[plan.Partition]bool{}, []string(nil)
	for _, r := range fleet.Reachabilities() {
		c.states = append(c.states, fleet.ClusterState{Name: string(r), Reachability: r})
		names = append(names, string(r))
		if r != fleet.Connected {
			want[plan.Partition{Source: string(r)}] = true
		}
	}
	held := func(n change) map[plan.Partition]bool {
		parts := map[plan.Partition]bool{}
		for part := range n.Deletions {
			parts[part] = true
		}
		return parts
	}
	n := filled(nil, nil, nil, configv1alpha1.SelectScoped).take(tenant, c)
	if diff := cmp.Diff(want, held(n)); diff != "" {
		t.Errorf("deletions are held in: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(names, n.Existing); diff != "" {
		t.Errorf("existing: -want +got:\n%s", diff)
	}
	c.complete = false
	n = filled(nil, nil, nil, configv1alpha1.SelectScoped).take(tenant, c)
	if diff := cmp.Diff(map[plan.Partition]bool{{}: true}, held(n)); diff != "" || n.Existing != nil {
		t.Errorf("before it is known which clusters there are: existing %v, deletions are held in: -want +got:\n%s", n.Existing, diff)
	}
}

// TestClusterChangeWakesEveryTenant asserts that deletions which were held are decided again.
func TestClusterChangeWakesEveryTenant(t *testing.T) {
	t.Parallel()
	i := filled(nil, nil, nil, configv1alpha1.SelectScoped)
	var woken []aai.Tenant
	i.onChange(func(tenant aai.Tenant) { woken = append(woken, tenant) })
	i.changes.Add(fleet.ClusterChange{Cluster: "edge"})
	i.applyViewChanges()
	if diff := cmp.Diff(i.mapping.Tenants(), woken); diff != "" {
		t.Errorf("tenants woken: -want +got:\n%s", diff)
	}
}

// oneBundle is a view with one bundle.
type oneBundle struct{ is *fleet.Bundle }

func (v oneBundle) Bundle(key fleet.BundleKey) *fleet.Bundle {
	if key != v.is.BundleKey {
		return nil
	}
	return v.is
}

// TestTakeAppliesViewChangesFirst asserts that the bundles of a view are known as soon as its clusters are.
func TestTakeAppliesViewChangesFirst(t *testing.T) {
	t.Parallel()
	b := newBundle(member("shop", "web", healthscope.Ready))
	b.Truncated = true
	i := newInputs(options(), configv1alpha1.SelectAll, judgedScopes{}, nil)
	i.view = oneBundle{b}
	i.changes.Add(fleet.BundleChange{BundleKey: b.BundleKey})
	n := i.take(tenant, oneCluster{})
	if len(n.Desired) != 1 || len(parts(n)) != 1 {
		t.Errorf("%d resources are wanted, and deletions are held in %q", len(n.Desired), parts(n))
	}
}

// TestDeletionsWaitUntilScopesAreJudgedWithNewCluster has clusters that are read for the first time before, after and during
// judgements of scopes.
func TestDeletionsWaitUntilScopesAreJudgedWithNewCluster(t *testing.T) {
	t.Parallel()
	shop, back, j := name("shop", "s"), name("back", "b"), judgedScopes{}
	i := newInputs(options(), configv1alpha1.SelectScoped, j, nil)
	c := several{complete: true}
	see := func(name string, arrival uint64) {
		c.states = append(c.states, fleet.ClusterState{Name: name, Reachability: fleet.Connected, FirstSync: arrival})
	}
	judge := func(n types.NamespacedName, arrivals uint64) {
		i.scopeUpdated(n, noon, 1)
		j[n] = judged()
		j[n].FirstSyncs = arrivals
		i.scopeJudged(n)
	}
	held := func(want ...string) {
		t.Helper()
		if got := parts(i.take(tenant, c)); !slices.Equal(got, want) {
			t.Errorf("deletions are held in %q, want %q", got, want)
		}
		if i.allJudged(c.states) != (len(want) == 0) {
			t.Errorf("settled is %t while deletions are held in %q", i.allJudged(c.states), want)
		}
	}
	see("west", 1)
	judge(shop, 1)
	judge(back, 1)
	held()
	see("east", 2)
	held("east/back", "east/shop")
	judge(shop, 1) // It was gathered before the cluster was read.
	held("east/back", "east/shop")
	judge(shop, 2)
	held("east/back")
	woken := 0
	i.onChange(func(aai.Tenant) { woken++ })
	judge(back, 2)
	held()
	if woken == 0 {
		t.Error("no tenant is woken when deletions are held no more")
	}
	c.states = c.states[:1] // The cluster is removed and added again.
	see("east", 3)
	held("east/back", "east/shop")
	judge(shop, 3)
	delete(j, back)
	i.scopeDeleted(back)
	i.scopeJudged(back)
	held()
}

// TestGuardsOfManyScopesAndClustersAreCheap: the cost of the guards grows with the sum of the numbers of scopes and of clusters,
// not with their product.
func TestGuardsOfManyScopesAndClustersAreCheap(t *testing.T) { //nolint:paralleltest // Allocations are counted.
	j := judgedScopes{}
	i := newInputs(options(), configv1alpha1.SelectScoped, j, nil)
	const scopes, clusters = 1000, 100
	for n := range scopes {
		each := name("shop", fmt.Sprint("s", n))
		j[each] = judged()
		i.scopeUpdated(each, noon, 1)
		i.scopeJudged(each)
	}
	c := several{complete: true}
	for n := range clusters {
		c.states = append(c.states, fleet.ClusterState{Name: fmt.Sprint("edge", n), Reachability: fleet.Connected, FirstSync: uint64(n + 1)})
	}
	before := i.take(tenant, c).Deletions
	if allocated := testing.AllocsPerRun(10, func() { i.deletionGuards(true, c.states) }); len(before) != clusters || allocated > 20*clusters {
		t.Errorf("%.0f allocations for %d parts that are held", allocated, len(before))
	}
	first := name("shop", "s0")
	j[first] = &scope.Judged{Generation: 1, FirstSyncs: clusters}
	i.scopeJudged(first)
	if diff := cmp.Diff(before, i.take(tenant, c).Deletions); diff != "" {
		t.Errorf("what is held has changed with the first scope that was judged:\n%s", diff)
	}
}
