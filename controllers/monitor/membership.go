package monitor

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

// selectorKey is a label with its value in a namespace. A bundle selects the objects that carry the label. A bundle's key without a
// namespace selects those of all namespaces and of the cluster. An object's key without a namespace is that of a cluster-scoped object.
type selectorKey struct {
	namespace, key, value string
}

// index returns the value of the key in the cache's index of bundles, which is namespaced already.
func (c selectorKey) index() string {
	return c.key + "=" + c.value
}

// selectorKeyIndex is the cache's index of bundles by their selector keys.
const selectorKeyIndex = "selectorKeys"

// membership decides which objects belong to a bundle, and finds the bundles of an object.
type membership struct {
	// keys are the label keys of the monitor.
	keys []string
	// trusted are the namespaces whose bundles may show objects of other namespaces and of the cluster. Bundles of other namespaces never
	// do, whatever they select: a user who may write a bundle in a namespace must not see objects outside it.
	trusted sets.Set[string]
	// bundles reads bundles from the cache.
	bundles client.Reader
}

// selectorKeys returns the keys that a bundle selects. If its selector names none of the monitor's label keys, the bundle selects any of
// them with its own name as the value, because EMCO gives a bundle the value of the label as its name.
func (m membership) selectorKeys(b *k8spluginv1alpha1.ResourceBundleState) []selectorKey {
	namespace := b.Namespace
	if m.trusted.Has(namespace) {
		namespace = metav1.NamespaceAll
	}
	if key, value, ok := m.selected(b); ok {
		return []selectorKey{{namespace: namespace, key: key, value: value}}
	}
	named := make([]selectorKey, 0, len(m.keys))
	for _, key := range m.keys {
		named = append(named, selectorKey{namespace: namespace, key: key, value: b.Name})
	}
	return named
}

// selected returns the label that a bundle's selector names. If the selector names several keys, the first one finds the candidates, and
// wanted rejects those without the other labels.
func (m membership) selected(b *k8spluginv1alpha1.ResourceBundleState) (key, value string, ok bool) {
	if b.Spec.Selector == nil {
		return "", "", false
	}
	for _, key := range m.keys {
		if value, ok := b.Spec.Selector.MatchLabels[key]; ok {
			return key, value, true
		}
	}
	return "", "", false
}

// wanted returns the selector that objects found by the bundle's selector keys must match to belong to the bundle: its whole selector. An
// invalid selector, such as one with an unknown operator, selects nothing.
func (m membership) wanted(b *k8spluginv1alpha1.ResourceBundleState) labels.Selector {
	if _, _, ok := m.selected(b); !ok {
		return labels.Everything()
	}
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil {
		return labels.Nothing()
	}
	return selector
}

// addIndex adds the index of bundles by their selector keys to the cache.
func (m membership) addIndex(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &k8spluginv1alpha1.ResourceBundleState{}, selectorKeyIndex, func(object client.Object) []string {
		var values []string
		if b, ok := object.(*k8spluginv1alpha1.ResourceBundleState); ok {
			for _, c := range m.selectorKeys(b) {
				values = append(values, c.index())
			}
		}
		return values
	})
	if err != nil {
		return fmt.Errorf("cannot index bundles: %w", err)
	}
	return nil
}

// selecting returns the bundles that select a key: those in the namespace of the key and those in trusted namespaces.
func (m membership) selecting(ctx context.Context, c selectorKey) ([]types.NamespacedName, error) {
	namespaces := m.trusted.Clone()
	if c.namespace != "" {
		namespaces = namespaces.Insert(c.namespace)
	}
	var names []types.NamespacedName
	for namespace := range namespaces {
		found, err := m.list(ctx, client.InNamespace(namespace), client.MatchingFields{selectorKeyIndex: c.index()})
		if err != nil {
			return nil, err
		}
		names = append(names, found...)
	}
	return names, nil
}

// list returns the names of bundles.
func (m membership) list(ctx context.Context, options ...client.ListOption) ([]types.NamespacedName, error) {
	var list k8spluginv1alpha1.ResourceBundleStateList
	if err := m.bundles.List(ctx, &list, append(options, client.UnsafeDisableDeepCopyOption(true))...); err != nil {
		return nil, err
	}
	names := make([]types.NamespacedName, 0, len(list.Items))
	for i := range list.Items {
		names = append(names, nameOfBundle(&list.Items[i]))
	}
	return names, nil
}

func nameOfBundle(b *k8spluginv1alpha1.ResourceBundleState) types.NamespacedName {
	return types.NamespacedName{Namespace: b.Namespace, Name: b.Name}
}
