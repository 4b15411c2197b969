package inventory

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

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
func (i *index) clusterChanged(before, now *fleet.ClusterState) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if now == nil {
		delete(i.arrivals, before.Name)
	} else if now.Arrival > 0 && i.arrivals[now.Name] != now.Arrival {
		i.arrivals[now.Name] = now.Arrival
		i.latest = max(i.latest, now.Arrival)
		for name := range i.judged {
			i.catchUp(name)
		}
	}
	i.allChanged()
}

// catchUp finds out whether a scope was judged before a cluster came into sight that has come since.
func (i *index) catchUp(name types.NamespacedName) {
	j := i.judged[name]
	behind := j != nil && j.Arrivals < i.latest
	if behind == i.behind[name.Namespace][name] {
		return
	}
	if behind {
		if i.behind[name.Namespace] == nil {
			i.behind[name.Namespace] = map[types.NamespacedName]bool{}
		}
		i.behind[name.Namespace][name] = true
		return
	}
	delete(i.behind[name.Namespace], name)
	if len(i.behind[name.Namespace]) == 0 {
		delete(i.behind, name.Namespace)
		i.allChanged()
	}
}

// isBehind says whether a scope was judged before a cluster came into sight that has come since.
func (i *index) isBehind() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.behind) > 0
}

// unaware calls note with every cluster that has come into sight since a scope of a namespace was judged, which the scope
// may have resources in that it knows nothing of yet. It does not name the scope: with each that is judged, another would be named.
func (i *index) unaware(note func(part plan.Part, why string)) {
	for namespace, scopes := range i.behind {
		least := i.latest
		for name := range scopes {
			least = min(least, i.judged[name].Arrivals)
		}
		for cluster, arrival := range i.arrivals {
			if least < arrival {
				note(plan.Part{Source: cluster, Namespace: namespace}, fmt.Sprintf("not all scopes of namespace %q have been judged since cluster %q came into sight", namespace, cluster))
			}
		}
	}
}
