package monitor

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

// selectorKeyIndex is the cache's index of bundles by their selector keys.
const selectorKeyIndex = "selectorKeys"

// indexSelectorKeys makes the cache find bundles by their selector keys.
func indexSelectorKeys(ctx context.Context, indexer client.FieldIndexer, m membership) error {
	byClaim := func(object client.Object) []string {
		b, ok := object.(*k8spluginv1alpha1.ResourceBundleState)
		if !ok {
			return nil
		}
		var values []string
		for _, c := range m.selectorKeys(b) {
			values = append(values, c.index())
		}
		return values
	}
	if err := indexer.IndexField(ctx, &k8spluginv1alpha1.ResourceBundleState{}, selectorKeyIndex, byClaim); err != nil {
		return fmt.Errorf("cannot index bundles: %w", err)
	}
	return nil
}

// bundlesIn returns how to find the bundles in a cache that want an object with
// a selector key: those of the object's namespace and those of trusted ones.
func bundlesIn(bundles client.Reader, trusted []string) func(context.Context, selectorKey) ([]types.NamespacedName, error) {
	return func(ctx context.Context, c selectorKey) ([]types.NamespacedName, error) {
		namespaces := sets.New(trusted...)
		if c.namespace != "" {
			namespaces.Insert(c.namespace)
		}
		var names []types.NamespacedName
		for namespace := range namespaces {
			found, err := bundleNames(ctx, bundles, client.InNamespace(namespace), client.MatchingFields{selectorKeyIndex: c.index()})
			if err != nil {
				return nil, err
			}
			names = append(names, found...)
		}
		return names, nil
	}
}

// bundleNames returns the names of the bundles in a cache.
func bundleNames(ctx context.Context, bundles client.Reader, options ...client.ListOption) ([]types.NamespacedName, error) {
	var list k8spluginv1alpha1.ResourceBundleStateList
	if err := bundles.List(ctx, &list, append(options, client.UnsafeDisableDeepCopyOption(true))...); err != nil {
		return nil, err
	}
	names := make([]types.NamespacedName, 0, len(list.Items))
	for i := range list.Items {
		names = append(names, nameOfBundle(&list.Items[i]))
	}
	return names, nil
}

// releases returns what to do with the events of bundles: released is called
// with the keys that a bundle no longer selects, because it has changed or is
// gone, and with those for which no bundle could be made because the name was taken, where they are known by the name.
func releases(m membership, released func(sets.Set[selectorKey])) handler.TypedEventHandler[*k8spluginv1alpha1.ResourceBundleState, selectorKey] {
	own := func(b *k8spluginv1alpha1.ResourceBundleState) sets.Set[selectorKey] {
		keys := sets.New[selectorKey]()
		for _, c := range m.selectorKeys(b) {
			keys.Insert(selectorKey{namespace: b.Namespace, key: c.key, value: c.value})
		}
		return keys
	}
	named := func(b *k8spluginv1alpha1.ResourceBundleState) sets.Set[selectorKey] {
		keys := sets.New[selectorKey]()
		for _, key := range m.keys {
			keys.Insert(selectorKey{namespace: b.Namespace, key: key, value: b.Name})
		}
		return keys
	}
	return handler.TypedFuncs[*k8spluginv1alpha1.ResourceBundleState, selectorKey]{
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*k8spluginv1alpha1.ResourceBundleState], _ workqueue.TypedRateLimitingInterface[selectorKey]) {
			old, b := e.ObjectOld, e.ObjectNew
			if old.UID != b.UID || old.Generation != b.Generation { // An update is all that is seen of what goes and comes between two lists.
				released(own(old).Difference(own(b)))
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*k8spluginv1alpha1.ResourceBundleState], _ workqueue.TypedRateLimitingInterface[selectorKey]) {
			released(own(e.Object).Union(named(e.Object)))
		},
	}
}
