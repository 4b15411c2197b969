package inventory

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/healthscope/healthscope/aai/mapping"
	"github.com/healthscope/healthscope/aai/sync"
	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
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
