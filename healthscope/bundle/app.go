package bundle

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

// App returns the name of the application that a bundle belongs to: the part after
// the first "-" of a value. The value is that of the bundle's emco/deployment-id
// label, else the one that its selector requires for that label, else the one that
// its selector requires for the first label by name, else the bundle's name. A value
// without "-", or with nothing after it, is itself the name of the application.
func App(b *k8spluginv1alpha1.ResourceBundleState) string {
	value := cmp.Or(b.Labels[k8spluginv1alpha1.LabelDeploymentID], selectedValue(b), b.Name)
	_, app, _ := strings.Cut(value, "-")
	return cmp.Or(app, value)
}

// selectedValue returns the value of the label by which a bundle selects its objects; empty when it selects by none.
func selectedValue(b *k8spluginv1alpha1.ResourceBundleState) string {
	if b.Spec.Selector == nil {
		return ""
	}
	matchLabels := b.Spec.Selector.MatchLabels
	if value := matchLabels[k8spluginv1alpha1.LabelDeploymentID]; value != "" {
		return value
	}
	for _, name := range slices.Sorted(maps.Keys(matchLabels)) {
		if matchLabels[name] != "" {
			return matchLabels[name]
		}
	}
	return ""
}
