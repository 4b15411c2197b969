package monitor

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

// claim is a label with its value in a namespace: a bundle that makes a claim
// wants the objects that carry the label.
type claim struct {
	namespace, key, value string
}

// index is the value of the claim in the cache's index of bundles, which knows the namespace by itself.
func (c claim) index() string {
	return c.key + "=" + c.value
}

// claims says which objects a bundle wants: those with the labels of its
// selector. A selector that names none of the keys says nothing that a monitor
// of those keys can follow; the bundle is then taken by its name, which EMCO
// makes equal to the label's value, with any of the keys.
func claims(b *k8spluginv1alpha1.ResourceBundleState, keys []string) []claim {
	if selected := selectorClaims(b, keys); len(selected) > 0 {
		return selected
	}
	named := make([]claim, 0, len(keys))
	for _, key := range keys {
		named = append(named, claim{namespace: b.Namespace, key: key, value: b.Name})
	}
	return named
}

// selectorClaims is the claim of a bundle's selector, or nothing. A selector
// that names several keys wants objects that carry all of them: the first
// finds the candidates, and wanted drops those without the others.
func selectorClaims(b *k8spluginv1alpha1.ResourceBundleState, keys []string) []claim {
	if b.Spec.Selector == nil {
		return nil
	}
	for _, key := range keys {
		if value, ok := b.Spec.Selector.MatchLabels[key]; ok {
			return []claim{{namespace: b.Namespace, key: key, value: value}}
		}
	}
	return nil
}

// wanted returns the test that objects found by the bundle's claims must pass
// to belong to it: its whole selector. A selector that the API server would
// not accept for a workload (an unknown operator) selects nothing.
func wanted(b *k8spluginv1alpha1.ResourceBundleState, keys []string) labels.Selector {
	if len(selectorClaims(b, keys)) == 0 {
		return labels.Everything()
	}
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil {
		return labels.Nothing()
	}
	return selector
}
