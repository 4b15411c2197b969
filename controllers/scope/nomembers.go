package scope

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/healthscope"
)

// withoutMembers returns the apps of a spec that lead to nothing at all, sorted. An app that the roll-up leaves out may.
func (v *judgement) withoutMembers(spec *corev1alpha2.HealthScopeSpec) []string {
	if len(spec.Apps) == 0 {
		return nil
	}
	found := map[string]bool{}
	for _, r := range v.refs {
		found[r.app] = found[r.app] || len(r.placed)+len(r.unlisted) > 0
	}
	var without []string
	for _, a := range spec.Apps {
		if !found[a.Name] && !ignored(spec.Rollup, healthscope.Key{}, a.Name) {
			without = append(without, a.Name)
		}
	}
	slices.Sort(without)
	return without
}

// lookedFor returns the message of a scope, or of apps, to which nothing belongs that counts: what was looked for. It is empty when all have members.
func lookedFor(scope *corev1alpha2.HealthScope, v judgement) string {
	switch {
	case v.summary.Total > 0 && len(v.without) == 0:
		return ""
	case v.summary.Total > 0:
		return "nothing belongs to " + appsLookedFor(scope, v)
	case len(v.members) > 0:
		return fmt.Sprintf("no resource counts: rollup.ignore matches each of the %d resources that do", len(v.members))
	}
	var looked []string
	if v.probing.reason != "" {
		looked = append(looked, v.probing.message) // The line in a list is cut, and this is what the scope asks for.
	}
	if len(scope.Spec.Apps) > 0 {
		looked = append(looked, appsLookedFor(scope, v))
	} else {
		looked = append(looked, "the spec has no references and no apps")
	}
	looked = append(looked, fmt.Sprintf("no bundle in namespace %q%s has the label %s=%s or %s%s=true",
		scope.Namespace, ofSelected(scope.Spec.Clusters), corev1alpha2.LabelScopeName, scope.Name, corev1alpha2.LabelScopePrefix, scope.Name))
	if len(scope.Spec.ExpectedClusters) > 0 {
		looked = append(looked, "expectedClusters says where apps are expected, and not which")
	}
	return "nothing belongs to the scope: " + strings.Join(looked, "; ")
}

// appsLookedFor returns what was looked for in apps.
func appsLookedFor(scope *corev1alpha2.HealthScope, v judgement) string {
	var looked []string
	for _, a := range scope.Spec.Apps {
		if !slices.Contains(v.without, a.Name) {
			continue
		}
		in := fmt.Sprintf("in namespace %q%s has the labels ", scope.Namespace, ofSelected(scope.Spec.Clusters, a.Clusters))
		var why []string
		if a.Selector != nil {
			why = append(why, "no bundle "+in+metav1.FormatLabelSelector(a.Selector)+v.hints[a.Name])
		}
		if a.WorkloadSelector != nil {
			why = append(why, "no "+kindsText(a.WorkloadSelector)+" "+in+metav1.FormatLabelSelector(&a.WorkloadSelector.LabelSelector))
		}
		if len(why) == 0 {
			why = append(why, "it has no references and no selector")
		}
		looked = append(looked, fmt.Sprintf("app %q (%s)", a.Name, strings.Join(why, "; ")))
	}
	slices.Sort(looked)
	return strings.Join(looked, ", ")
}

// ofSelected adds to a message that bundles are taken from some clusters only, where that is so.
func ofSelected(selections ...*corev1alpha2.ClusterSelection) string {
	if slices.ContainsFunc(selections, func(s *corev1alpha2.ClusterSelection) bool { return s != nil }) {
		return " of the clusters that are selected"
	}
	return ""
}
