package inventory

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/mapping"
	"github.com/healthscope/healthscope/aai/sync"
	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
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

// candidate is a candidate owner of resources in A&AI: a scope, or a bundle.
type candidate struct {
	// cluster is the cluster of a bundle; empty for a scope.
	cluster string
	types.NamespacedName
}

// bundleCandidate returns a bundle as a candidate.
func bundleCandidate(key fleet.BundleKey) candidate {
	return candidate{cluster: key.Cluster, NamespacedName: types.NamespacedName{Namespace: key.Namespace, Name: key.Name}}
}

// scope returns the name of a scope, and the zero name for a bundle.
func (c candidate) scope() types.NamespacedName {
	if c.cluster != "" {
		return types.NamespacedName{}
	}
	return c.NamespacedName
}

// claim is what a candidate owner claims.
type claim struct {
	candidate
	members []scope.AppMember
	// disputed is true while an older scope has not been judged, which may claim the same resources.
	disputed bool
}

// object is what A&AI is to hold of a resource, and for whom.
type object struct {
	mapping.Entry

	owner candidate
	// links are those that the owner asks for.
	links *corev1alpha2.InventoryLinks
	// disputed is true while an older scope may claim the resource.
	disputed bool
}

// desired decides who owns resources, and what A&AI is to hold of each. This is the only place that decides it.
//
// claims are sorted by age: the oldest candidate that claims a resource owns it. The document shows the resource as the owner
// sees it. When the owner does not see it, or takes it for gone, the document shows it as the oldest other candidate that
// sees it does: one candidate that does not see a resource does not remove it.
func desired(claims []claim, o mapping.Options) map[healthscope.Key]object {
	objects := map[healthscope.Key]object{}
	for _, c := range claims {
		for _, p := range c.members {
			own, claimed := objects[p.Key]
			switch {
			case !claimed:
				objects[p.Key] = object{Entry: mapping.Map(resourceOf(c.scope(), p), o), owner: c.candidate, links: p.Links, disputed: c.disputed}
			case own.Decision != mapping.Write:
				p.Links = own.links
				if e := mapping.Map(resourceOf(own.owner.scope(), p), o); e.Decision == mapping.Write || e.Decision == mapping.Hold {
					own.Entry = e
					objects[p.Key] = own
				}
			}
		}
	}
	return objects
}

// desired returns what A&AI is to hold; false when that is nothing.
func (o object) desired(seen time.Time) (want sync.Desired, ok bool) {
	switch o.Decision {
	case mapping.Write:
		document := o.Document
		return sync.Desired{Document: &document, Held: o.disputed, Seen: seen}, true
	case mapping.Hold:
		return sync.Desired{Held: true, Seen: seen}, true
	case mapping.Remove, mapping.Exclude, mapping.Unmapped:
	}
	return sync.Desired{Seen: seen}, false
}

// resourceOf describes a member of a scope, or with an empty name of a bundle, to the mapping.
func resourceOf(name types.NamespacedName, p scope.AppMember) mapping.Resource {
	r := mapping.Resource{Member: *p.Member, Scope: mapping.Scope{Namespace: name.Namespace, Name: name.Name}}
	if p.Links != nil {
		r.GenericVNFID, r.VFModuleID = p.Links.GenericVNFID, p.Links.VFModuleID
	}
	return r
}

func compareNames(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
