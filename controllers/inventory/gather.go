package inventory

import (
	"cmp"
	"slices"
	"time"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/mapping"
	"github.com/healthscope/healthscope/aai/sync"
	"github.com/healthscope/healthscope/controllers/scope"
	"github.com/healthscope/healthscope/healthscope"
)

// change is what has changed for a tenant since the last pass.
type change struct {
	sync.Change
	// partial is true when at least one scope has not been judged yet.
	partial bool
	// ownerChanged are the resources that have another owner than before.
	ownerChanged []healthscope.Key
}

// take decides the pending resources of a tenant again, and returns the desired state of each.
func (i *inputs) take(tenant aai.Tenant, c clusters) change {
	complete, states := c.Complete(), c.States() // First: what is read afterwards knows at least of these clusters.
	i.mu.Lock()
	defer i.mu.Unlock()
	i.applyViewChanges() // And of their bundles.
	g := i.currentGuards(complete, states)
	n := change{
		Change:  sync.Change{Desired: map[aai.Key]sync.Desired{}, Deletions: g.deletions, Existing: g.existing},
		partial: g.partial,
	}
	t := i.tenant(tenant)
	pending := t.pending
	t.pending = map[clusterNamespace]map[healthscope.Key]time.Time{}
	for at, resources := range pending {
		objects := desired(i.pendingClaims(at, t.claims[at], resources, g.unjudged), i.mapping)
		for resource, seen := range resources {
			o := objects[resource]
			want, wanted := o.desired(seen)
			switch before, had := t.owners[resource]; {
			case wanted:
				n.Desired[o.Key], t.owners[resource] = want, o.owner
				if had && before != o.owner {
					n.ownerChanged = append(n.ownerChanged, resource)
				}
				if o.disputed {
					putNested(t.pending, at, resource, time.Time{})
				}
			case had:
				key, _ := mapping.KeyFor(resource, i.mapping) // All of its clusterNamespace has a place.
				n.Desired[key] = want
				delete(t.owners, resource)
			}
		}
	}
	return n
}

// pendingClaims returns the claims to the pending resources of a clusterNamespace, the oldest candidate first. unjudged are
// the scopes that oldestUnjudged returns.
func (i *inputs) pendingClaims(at clusterNamespace, all map[candidate][]scope.AppMember, resources map[healthscope.Key]time.Time, unjudged map[string]candidate) []claim {
	var claims []claim
	for by, members := range all {
		c := claim{candidate: by}
		for _, p := range members {
			if _, pending := resources[p.Key]; pending {
				c.members = append(c.members, p)
			}
		}
		if len(c.members) == 0 {
			continue
		}
		for _, namespace := range []string{at.namespace, anyNamespace} {
			older, waits := unjudged[namespace]
			c.disputed = c.disputed || waits && i.compareAge(older, by) < 0
		}
		claims = append(claims, c)
	}
	slices.SortFunc(claims, func(a, b claim) int { return i.compareAge(a.candidate, b.candidate) })
	return claims
}

// compareAge sorts candidates: the scope that was created first goes first, and of two of the same age the one whose name
// sorts first. A scope of which the age is not known goes behind the others, and a bundle behind all scopes.
func (i *inputs) compareAge(a, b candidate) int {
	return cmp.Or(
		cmp.Compare(a.cluster, b.cluster),
		-cmp.Compare(boolInt(i.scopes[a.scope()].exists()), boolInt(i.scopes[b.scope()].exists())),
		i.scopes[a.scope()].created.Compare(i.scopes[b.scope()].created),
		compareNames(a.NamespacedName, b.NamespacedName),
	)
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
