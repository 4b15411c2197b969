package scope

import (
	"maps"
	"slices"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

// LinkedApp is how an app that names a module of a VNF is.
type LinkedApp struct {
	// Links are the app's links into the inventory. They name a module.
	Links corev1alpha2.InventoryLinks
	// Summary counts the app's members that contribute, also those that count in another app first, and the unlisted ones.
	Summary healthscope.Summary
}

// linkedApp is a LinkedApp while it is summed up.
type linkedApp struct {
	links   corev1alpha2.InventoryLinks
	seen    map[healthscope.Key]bool
	members []Placed
	bundles map[fleet.BundleKey]healthscope.Summary
}

// linked sums up the apps of findings that name a module, sorted by app. findings and refs go together.
func (v *verdict) linked(findings []finding) []LinkedApp {
	apps := map[string]*linkedApp{}
	for i, f := range findings {
		if f.links == nil || f.links.GenericVNFID == "" || f.links.VFModuleID == "" {
			continue
		}
		a := apps[f.app]
		if a == nil {
			a = &linkedApp{links: *f.links, seen: map[healthscope.Key]bool{}, bundles: map[fleet.BundleKey]healthscope.Summary{}}
			apps[f.app] = a
		}
		for _, p := range v.refs[i].members {
			if !a.seen[p.Key] {
				a.seen[p.Key] = true
				a.members = append(a.members, p)
			}
		}
		maps.Copy(a.bundles, f.unlisted)
	}
	var all []LinkedApp
	for _, app := range slices.Sorted(maps.Keys(apps)) {
		a := apps[app]
		all = append(all, LinkedApp{Links: a.links, Summary: sum(summarize(a.members), sumOf(a.bundles))})
	}
	return all
}
