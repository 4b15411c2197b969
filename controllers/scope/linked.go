package scope

import (
	"maps"
	"slices"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/healthscope"
)

// LinkedApp is the state of an app that names a module of a VNF.
type LinkedApp struct {
	// Links are the app's links into the inventory. They name a module.
	Links corev1alpha2.InventoryLinks
	// Summary counts the app's members that contribute, also those that count in another app first, and the unlisted ones.
	Summary healthscope.Summary
}

// linkedAppsOf returns the apps of findings that name a module, sorted by app.
func (v *judgement) linkedAppsOf(findings []*finding) []LinkedApp {
	links := map[string]corev1alpha2.InventoryLinks{}
	for _, f := range findings {
		if f.links != nil && f.links.GenericVNFID != "" && f.links.VFModuleID != "" {
			links[f.app] = *f.links
		}
	}
	var all []LinkedApp
	for _, app := range slices.Sorted(maps.Keys(links)) {
		all = append(all, LinkedApp{Links: links[app], Summary: v.summaryOf(app)})
	}
	return all
}
