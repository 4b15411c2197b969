package inventory

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/mapping"
	"github.com/healthscope/healthscope/aai/plan"
	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/controllers/scope"
	"github.com/healthscope/healthscope/healthscope"
)

// bundles is the part of fleet.View that the inventory reads.
type bundles interface {
	WaitSynced(ctx context.Context) error
	All() []*fleet.Bundle
}

// judgements is the part of scope.Registry that the inventory reads.
type judgements interface {
	All() map[types.NamespacedName]*scope.Judged
}

// gatherer collects what A&AI is to hold.
type gatherer struct {
	scopes   client.Reader
	bundles  bundles
	registry judgements
	mapping  mapping.Options
	selects  configv1alpha1.InventorySelect
}

// wanted is what a tenant is to hold, and what is not to be touched in it.
type wanted struct {
	documents map[aai.Key]aai.Document
	holds     plan.Holds
	// partial is true when a scope has not been judged yet.
	partial bool
}

// gather returns what a tenant is to hold.
//
// It reads judgements first, then what shows how complete they are, each once:
// so what changes meanwhile can only make too little look known.
func (g *gatherer) gather(ctx context.Context, tenant aai.Tenant) (wanted, error) {
	s := snapshot{judged: g.registry.All()}
	if err := g.scopes.List(ctx, &s.scopes, client.UnsafeDisableDeepCopy); err != nil {
		return wanted{}, errors.Wrap(err, "cannot list HealthScopes")
	}
	s.bundles = g.bundles.All()
	waiting := s.waiting()
	held := s.heldSources(g.selects)
	w := wanted{partial: waiting.any, documents: map[aai.Key]aai.Document{}, holds: plan.Holds{
		Keys:   map[aai.Key]bool{},
		Source: func(source string) bool { return waiting.any || held[source] },
	}}
	for _, c := range s.claims(g.selects) {
		e := mapping.Map(c.resource, g.mapping)
		if e.Key.Tenant != tenant {
			continue
		}
		switch e.Decision {
		case mapping.Write:
			w.documents[e.Key] = e.Document
			if waiting.mayClaim(c) {
				w.holds.Keys[e.Key] = true
			}
		case mapping.Hold:
			w.holds.Keys[e.Key] = true
		case mapping.Remove, mapping.Exclude, mapping.Unmapped:
		}
	}
	return w, nil
}

// snapshot is what was known at one moment.
type snapshot struct {
	judged  map[types.NamespacedName]*scope.Judged
	scopes  corev1alpha2.HealthScopeList
	bundles []*fleet.Bundle
}

// claim is a resource with what it goes to A&AI for.
type claim struct {
	resource mapping.Resource
	// scope is the scope that has the resource; one without a name stands for the bundles of its namespace.
	scope types.NamespacedName
}

// claims returns the resources that go to A&AI, each once. One that two scopes
// have belongs to the one whose name sorts first.
func (s *snapshot) claims(selects configv1alpha1.InventorySelect) []claim {
	all := map[healthscope.Key]claim{}
	for _, name := range slices.SortedFunc(maps.Keys(s.judged), compareNames) {
		for _, p := range s.judged[name].Members {
			if _, taken := all[p.Key]; !taken {
				all[p.Key] = claim{resource: resourceOf(name, p), scope: name}
			}
		}
	}
	if selects == configv1alpha1.SelectAll {
		for _, b := range s.bundles {
			for _, m := range b.Members {
				if _, taken := all[m.Key]; !taken {
					all[m.Key] = claim{resource: mapping.Resource{Member: m}, scope: types.NamespacedName{Namespace: b.Namespace}}
				}
			}
		}
	}
	return slices.Collect(maps.Values(all))
}

// heldSources returns the clusters with a bundle that does not say all: one that
// is truncated, that cannot be read, or that no monitor has filled yet. A scope's
// judgement may be older than what is known of its bundles, and says itself what it had to do without.
func (s *snapshot) heldSources(selects configv1alpha1.InventorySelect) map[string]bool {
	held := map[string]bool{}
	for _, b := range s.bundles {
		unfilled := !b.Observed && selects == configv1alpha1.SelectAll
		if b.Truncated || len(b.Malformed) > 0 || unfilled {
			held[b.Cluster] = true
		}
	}
	for _, judged := range s.judged {
		for _, p := range judged.Members {
			if p.Kind == k8spluginv1alpha1.ResourceBundleStateKind && (p.Reason == healthscope.ReasonMalformedBundle || p.Reason == healthscope.ReasonNotObserved) {
				held[p.Cluster] = true
			}
		}
	}
	return held
}

// unjudged are the scopes of which too little is known.
type unjudged struct {
	// any is true when there is one whose present spec has not been judged.
	any bool
	// first is, by namespace, the first one by name that has not been judged at all.
	first map[string]string
}

// waiting returns the scopes that wait to be judged.
func (s *snapshot) waiting() unjudged {
	u := unjudged{first: map[string]string{}}
	for i := range s.scopes.Items {
		name := client.ObjectKeyFromObject(&s.scopes.Items[i])
		judged := s.judged[name]
		u.any = u.any || judged == nil || judged.Generation < s.scopes.Items[i].Generation
		if first, ok := u.first[name.Namespace]; judged == nil && (!ok || name.Name < first) {
			u.first[name.Namespace] = name.Name
		}
	}
	return u
}

// mayClaim says whether a scope that waits to be judged goes before the one that
// has a resource now. After a restart the resource would else change hands for a moment.
func (u unjudged) mayClaim(c claim) bool {
	first, ok := u.first[c.scope.Namespace]
	return ok && (c.scope.Name == "" || first < c.scope.Name)
}

// resourceOf describes a member of a scope to the mapping.
func resourceOf(name types.NamespacedName, p scope.Placed) mapping.Resource {
	r := mapping.Resource{Member: p.Member, Scope: mapping.Scope{Namespace: name.Namespace, Name: name.Name}}
	if p.Links != nil {
		r.GenericVNFID, r.VFModuleID = p.Links.GenericVNFID, p.Links.VFModuleID
	}
	return r
}

func compareNames(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
