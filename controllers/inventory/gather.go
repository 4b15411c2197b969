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
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/controllers/scope"
	"github.com/healthscope/healthscope/healthscope"
)

// gatherer collects what A&AI is to hold.
type gatherer struct {
	scopes   client.Reader
	view     *fleet.View
	registry *scope.Registry
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
func (g *gatherer) gather(ctx context.Context, tenant aai.Tenant) (wanted, error) {
	held, err := g.heldSources(ctx)
	if err != nil {
		return wanted{}, err
	}
	w := wanted{partial: held.all, documents: map[aai.Key]aai.Document{}, holds: plan.Holds{
		Keys:   map[aai.Key]bool{},
		Source: func(source string) bool { return held.all || held.clusters[source] },
	}}
	for _, r := range g.resources() {
		e := mapping.Map(r, g.mapping)
		if e.Key.Tenant != tenant {
			continue
		}
		switch e.Decision {
		case mapping.Write:
			w.documents[e.Key] = e.Document
		case mapping.Hold:
			w.holds.Keys[e.Key] = true
		case mapping.Remove, mapping.Exclude, mapping.Unmapped:
		}
	}
	return w, nil
}

// sources are the data-sources from which too little is known to delete anything.
type sources struct {
	all      bool
	clusters map[string]bool
}

// heldSources returns the clusters with a truncated or unreadable bundle; all of them, as long as a scope has not been judged.
func (g *gatherer) heldSources(ctx context.Context) (sources, error) {
	s := sources{clusters: map[string]bool{}}
	var list corev1alpha2.HealthScopeList
	if err := g.scopes.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return s, errors.Wrap(err, "cannot list HealthScopes")
	}
	for i := range list.Items {
		judged := g.registry.Get(client.ObjectKeyFromObject(&list.Items[i]))
		if judged == nil || judged.Generation < list.Items[i].Generation {
			s.all = true
		}
	}
	for _, b := range g.view.All() {
		if b.Truncated || len(b.Malformed) > 0 {
			s.clusters[b.Cluster] = true
		}
	}
	return s, nil
}

// resources returns the resources that go to A&AI, each once. One that two
// scopes have belongs to the one whose name sorts first.
func (g *gatherer) resources() []mapping.Resource {
	all := map[healthscope.Key]mapping.Resource{}
	judged := g.registry.All()
	for _, name := range slices.SortedFunc(maps.Keys(judged), compareNames) {
		for _, p := range judged[name].Members {
			if _, taken := all[p.Key]; !taken {
				all[p.Key] = resourceOf(name, p)
			}
		}
	}
	if g.selects == configv1alpha1.SelectAll {
		for _, b := range g.view.All() {
			for _, m := range b.Members {
				if _, taken := all[m.Key]; !taken {
					all[m.Key] = mapping.Resource{Member: m}
				}
			}
		}
	}
	return slices.Collect(maps.Values(all))
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
