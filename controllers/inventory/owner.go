package inventory

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/mapping"
	"github.com/healthscope/healthscope/aai/plan"
	"github.com/healthscope/healthscope/aai/sync"
	"github.com/healthscope/healthscope/controllers/scope"
	"github.com/healthscope/healthscope/healthscope"
)

// older says whether a scope goes before another that has the same resource: the one that was created first, and of two of the same age the one whose name sorts first. A scope of which the age is not known, and a bundle, go last.
func (i *index) older(a, b types.NamespacedName) bool {
	first, known := i.scopes[a]
	second, knownToo := i.scopes[b]
	if !known || !knownToo {
		return known || !knownToo && a.Name != "" && (b.Name == "" || compareNames(a, b) < 0)
	}
	return cmp.Or(first.created.Compare(second.created), compareNames(a, b)) < 0
}

// owner returns who has a resource, of those that want it.
func (i *index) owner(key healthscope.Key) (owner claimant, ok bool) {
	for by := range i.claims[key] {
		if !ok || i.older(by.scope, owner.scope) || by.scope == owner.scope && by.bundle.Compare(owner.bundle) < 0 {
			owner, ok = by, true
		}
	}
	return owner, ok
}

// ownerOf returns the scope that has a resource; the zero name when none has.
func (i *index) ownerOf(key healthscope.Key) types.NamespacedName {
	i.mu.Lock()
	defer i.mu.Unlock()
	owner, _ := i.owner(key)
	return owner.scope
}

// mayBeClaimed says whether a scope that waits to be judged may have a resource, and goes before the one that has it now.
// After a restart the resource would else change hands for a moment. A scope's resources are in its own namespace, or
// wherever bundles there speak of: with others, one that waits long for a cluster holds up nothing.
func (i *index) mayBeClaimed(key healthscope.Key, owner types.NamespacedName) bool {
	for name := range i.never {
		if (name.Namespace == key.Namespace || i.speaksOfMore(name.Namespace)) && i.older(name, owner) {
			return true
		}
	}
	return false
}

// heldDeletions returns of what nothing is deleted, and why. A scope's judgement
// may be older than what is known of its bundles, and says itself what it had to
// do without. A scope that has not been judged may claim what is in its namespace.
func (i *index) heldDeletions() map[plan.Part]string {
	held := map[plan.Part]string{}
	note := func(part plan.Part, why string) {
		if i.speaksOfMore(part.Namespace) {
			part.Namespace = ""
		}
		if before, ok := held[part]; !ok || why < before {
			held[part] = why
		}
	}
	for _, holds := range i.holds {
		for at, why := range holds {
			note(plan.Part{Source: at.cluster, Namespace: at.namespace}, why)
		}
	}
	i.unaware(note)
	for name := range i.late {
		note(plan.Part{Namespace: name.Namespace}, fmt.Sprintf("scope %q has not been judged", name))
	}
	return held
}

// speaksOfMore says whether bundles of a namespace may speak of resources outside of it, so far as a hub can know: the
// namespaces that a monitor trusts are in the configuration of that monitor.
func (i *index) speaksOfMore(namespace string) bool {
	return slices.Contains(i.trusted, namespace) || len(i.farSeeing[namespace]) > 0
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

// entry returns what A&AI is to hold about a resource, for its owner: by what the owner knows of it, or, where that cannot
// see it, by what somebody else knows who has it too. That one takes it for gone and another cannot see it does not make it go.
func (i *index) entry(owner claimant, key healthscope.Key) mapping.Entry {
	own := i.claims[key][owner]
	e := mapping.Map(resourceOf(owner.scope, own), i.mapping)
	if e.Decision == mapping.Write || len(i.claims[key]) == 1 {
		return e
	}
	others := slices.SortedFunc(maps.Keys(i.claims[key]), func(a, b claimant) int {
		return cmp.Or(boolInt(i.older(b.scope, a.scope))-boolInt(i.older(a.scope, b.scope)), a.bundle.Compare(b.bundle))
	})
	for _, by := range others {
		p := i.claims[key][by]
		p.Links = own.Links
		other := mapping.Map(resourceOf(owner.scope, p), i.mapping)
		if other.Decision == mapping.Write {
			return other
		}
		if other.Decision == mapping.Hold {
			e = other
		}
	}
	return e
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// wish returns what is to become of a resource.
func (i *index) wish(place aai.Key, key healthscope.Key) sync.Wish {
	owner, ok := i.owner(key)
	if !ok {
		return sync.Wish{}
	}
	e := i.entry(owner, key)
	switch e.Decision {
	case mapping.Write:
		w := sync.Wish{Document: &e.Document, Held: i.mayBeClaimed(key, owner.scope)}
		if w.Held {
			if i.contested[place.Tenant] == nil {
				i.contested[place.Tenant] = map[aai.Key]healthscope.Key{}
			}
			i.contested[place.Tenant][place] = key
		}
		return w
	case mapping.Hold:
		return sync.Wish{Held: true}
	case mapping.Remove, mapping.Exclude, mapping.Unmapped:
	}
	return sync.Wish{}
}
