package inventory

import (
	"context"
	"fmt"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/plan"
	"github.com/healthscope/healthscope/controllers/fleet"
)

// clusters is the part of fleet.View that says which clusters there are, and which of them can be seen.
type clusters interface {
	WaitSynced(ctx context.Context) error
	Complete() bool
	Clusters() []string
	States() []fleet.ClusterState
}

// ask returns what has changed for a tenant, as take does. What cannot be seen is
// not taken for gone: nothing is deleted of a cluster that is out of sight, and
// nothing at all before it is known which clusters there are.
func (i *index) ask(tenant aai.Tenant, c clusters) news {
	if !c.Complete() {
		n := i.take(tenant, nil)
		n.Deletions[plan.Part{}] = "it is not known yet which clusters there are"
		return n
	}
	states := c.States() // First: of a cluster that comes into sight meanwhile, what is taken may be from before.
	n := i.take(tenant, c.Clusters())
	for _, s := range states {
		if !s.Reachable() {
			n.Deletions[plan.Part{Source: s.Name}] = fmt.Sprintf("cluster %q cannot be seen as it is now: it is %s", s.Name, s.Reachability)
		}
	}
	return n
}

// clusterChanged notes that a cluster came, went, or can be seen or not.
func (i *index) clusterChanged() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.allChanged()
}
