package inventory

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/plan"
	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/controllers/fleet"
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
	i.clusterChanged()
	if diff := cmp.Diff(i.mapping.Tenants(), told); diff != "" {
		t.Errorf("tenants told: -want +got:\n%s", diff)
	}
}
