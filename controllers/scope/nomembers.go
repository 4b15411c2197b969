package scope

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/healthscope"
)

// appsWithoutMembers returns the apps of a spec that lead to nothing, sorted. Apps that the roll-up ignores are left out.
func (v *judgement) appsWithoutMembers(spec *corev1alpha2.HealthScopeSpec) []string {
	if len(spec.Apps) == 0 {
		return nil
	}
	found := map[string]bool{}
	for _, r := range v.refs {
		found[r.app] = found[r.app] || len(r.placed) > 0 || r.unlisted().Total > 0
	}
	var empty []string
	for _, a := range spec.Apps {
		if !found[a.Name] && !ignored(spec.Rollup, healthscope.Key{}, a.Name) {
			empty = append(empty, a.Name)
		}
	}
	slices.Sort(empty)
	return empty
}

// noMembersMessage returns the message for a scope or apps without members that count: what was looked for. It is empty when all have members.
func noMembersMessage(scope *corev1alpha2.HealthScope, v judgement) string {
	switch {
	case v.summary.Total > 0 && len(v.emptyApps) == 0:
		return ""
	case v.summary.Total > 0:
		return "nothing belongs to " + emptyAppsMessage(scope, v)
	case len(v.Members) > 0:
		return fmt.Sprintf("no resource counts: rollup.ignore matches each of the %d resources that do", len(v.Members))
	}
	var parts []string
	if v.probesCondition.message != "" {
		parts = append(parts, v.probesCondition.message) // The line in a list is cut, and this is what the scope asks for.
	}
	if len(scope.Spec.Apps) > 0 {
		parts = append(parts, emptyAppsMessage(scope, v))
	} else {
		parts = append(parts, "the spec has no references and no apps")
	}
	parts = append(parts, fmt.Sprintf("no bundle in namespace %q%s has the label %s=%s or %s%s=true",
		scope.Namespace, selectedClustersSuffix(scope.Spec.Clusters), corev1alpha2.LabelScopeName, scope.Name, corev1alpha2.LabelScopePrefix, scope.Name))
	if len(scope.Spec.ExpectedClusters) > 0 {
		parts = append(parts, "expectedClusters says where apps are expected, and not which")
	}
	return "nothing belongs to the scope: " + strings.Join(parts, "; ")
}

func emptyAppsMessage(scope *corev1alpha2.HealthScope, v judgement) string {
	var parts []string
	for _, a := range scope.Spec.Apps {
		if !slices.Contains(v.emptyApps, a.Name) {
			continue
		}
		in := fmt.Sprintf("in namespace %q%s has the labels ", scope.Namespace, selectedClustersSuffix(scope.Spec.Clusters, a.Clusters))
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
		parts = append(parts, fmt.Sprintf("app %q (%s)", a.Name, strings.Join(why, "; ")))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// selectedClustersSuffix returns the words for a message that only selected clusters were searched; empty when there is no selection.
func selectedClustersSuffix(selections ...*corev1alpha2.ClusterSelection) string {
	if slices.ContainsFunc(selections, func(s *corev1alpha2.ClusterSelection) bool { return s != nil }) {
		return " of the clusters that are selected"
	}
	return ""
}
