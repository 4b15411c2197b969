package bundle

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

// App returns the name of the application a bundle belongs to. It is what
// follows the first "-" in the value of the bundle's emco/deployment-id label,
// else in the value that its selector wants for that label, or for the first
// one by name, else in its name. A word without "-", or with nothing after it, is
// the name of the application itself.
func App(b *k8spluginv1alpha1.ResourceBundleState) string {
	word := cmp.Or(b.Labels[k8spluginv1alpha1.LabelDeploymentID], selectedValue(b), b.Name)
	_, app, _ := strings.Cut(word, "-")
	return cmp.Or(app, word)
}

// selectedValue returns the value of the label by which a bundle selects its objects; empty when it selects by none.
func selectedValue(b *k8spluginv1alpha1.ResourceBundleState) string {
	if b.Spec.Selector == nil {
		return ""
	}
	wanted := b.Spec.Selector.MatchLabels
	if value := wanted[k8spluginv1alpha1.LabelDeploymentID]; value != "" {
		return value
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if wanted[name] != "" {
			return wanted[name]
		}
	}
	return ""
}
