package inventory

import (
	"cmp"
	"maps"

	"k8s.io/apimachinery/pkg/types"

	"github.com/healthscope/healthscope/aai/mapping"
	"github.com/healthscope/healthscope/aai/sync"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/controllers/scope"
	"github.com/healthscope/healthscope/healthscope"
)

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

// claim is what a candidate owner claims in one namespace of one cluster.
type claim struct {
	candidate
	members []scope.Placed
	// disputed is true while an older scope has not been judged, which may claim the same resources.
	disputed bool
}

// object is what A&AI is to hold of a resource, and for whom.
type object struct {
	// owner is the candidate that owns the resource, and from what it knows of it; without a Member when the entry tells what a co-owner knows.
	owner candidate
	from  scope.Placed
	entry *mapping.Entry
	// disputed is true while an older scope may claim the resource.
	disputed bool
}

// desired decides who owns the resources of one namespace of one cluster, and what A&AI is to hold of each. This is the
// only place that decides it.
//
// claims are sorted by age: the oldest candidate that claims a resource owns it. The document tells what the owner knows of
// the resource. Where the owner cannot see it, or takes it for gone, the document tells what the oldest co-owner that sees
// it knows: that one candidate does not see a resource does not remove it.
//
// before is what was decided last. An entry is shared with it when its owner and what that knows are the very same: to make
// documents is most of the work.
func desired(claims []claim, before map[healthscope.Key]object, o mapping.Options) map[healthscope.Key]object {
	objects := make(map[healthscope.Key]object, len(before))
	for _, c := range claims {
		for _, p := range c.members {
			own, claimed := objects[p.Key]
			switch {
			case !claimed:
				entry := before[p.Key].entry
				if was := before[p.Key]; was.owner != c.candidate || was.from != p {
					entry = new(mapping.Map(resourceOf(c.scope(), p), o))
				}
				objects[p.Key] = object{owner: c.candidate, from: p, entry: entry, disputed: c.disputed}
			case own.entry.Decision != mapping.Write:
				p.Links = own.from.Links
				if e := mapping.Map(resourceOf(own.owner.scope(), p), o); e.Decision == mapping.Write || e.Decision == mapping.Hold {
					own.entry, own.from.Member = &e, nil
					objects[p.Key] = own
				}
			}
		}
	}
	maps.DeleteFunc(objects, func(_ healthscope.Key, o object) bool {
		return o.entry.Decision != mapping.Write && o.entry.Decision != mapping.Hold
	})
	return objects
}

// wish returns what is to become of an object.
func (o object) wish() sync.Wish {
	if o.entry.Decision == mapping.Hold {
		return sync.Wish{Held: true}
	}
	return sync.Wish{Document: &o.entry.Document, Held: o.disputed}
}

// resourceOf describes a member of a scope, or with an empty name of a bundle, to the mapping.
func resourceOf(name types.NamespacedName, p scope.Placed) mapping.Resource {
	r := mapping.Resource{Member: *p.Member, Scope: mapping.Scope{Namespace: name.Namespace, Name: name.Name}}
	if p.Links != nil {
		r.GenericVNFID, r.VFModuleID = p.Links.GenericVNFID, p.Links.VFModuleID
	}
	return r
}

func compareNames(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
