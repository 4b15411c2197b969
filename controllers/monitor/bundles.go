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

// indexSelectorKeys adds the index of bundles by their selector keys to the cache.
func indexSelectorKeys(ctx context.Context, indexer client.FieldIndexer, m membership) error {
	keysOf := func(object client.Object) []string {
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
	if err := indexer.IndexField(ctx, &k8spluginv1alpha1.ResourceBundleState{}, selectorKeyIndex, keysOf); err != nil {
		return fmt.Errorf("cannot index bundles: %w", err)
	}
	return nil
}

// bundlesIn returns a function that finds the bundles in a cache that select a
// key: those in the namespace of the key and those in trusted namespaces.
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

// releases returns an event handler of bundles that calls released with the keys that a bundle no longer selects because it was changed or
// deleted. When a bundle is deleted, the keys whose value is its name are released too: the creator may have been unable to use the name.
func releases(m membership, released func(sets.Set[selectorKey])) handler.TypedEventHandler[*k8spluginv1alpha1.ResourceBundleState, selectorKey] {
	selected := func(b *k8spluginv1alpha1.ResourceBundleState) sets.Set[selectorKey] {
		keys := sets.New[selectorKey]()
		for _, c := range m.selectorKeys(b) {
			keys.Insert(selectorKey{namespace: b.Namespace, key: c.key, value: c.value})
		}
		return keys
	}
	return handler.TypedFuncs[*k8spluginv1alpha1.ResourceBundleState, selectorKey]{
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*k8spluginv1alpha1.ResourceBundleState], _ workqueue.TypedRateLimitingInterface[selectorKey]) {
			old, b := e.ObjectOld, e.ObjectNew
			if old.UID != b.UID || old.Generation != b.Generation { // A bundle that is deleted and recreated between two lists appears as an update.
				released(selected(old).Difference(selected(b)))
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*k8spluginv1alpha1.ResourceBundleState], _ workqueue.TypedRateLimitingInterface[selectorKey]) {
			withoutSelector := &k8spluginv1alpha1.ResourceBundleState{ObjectMeta: e.Object.ObjectMeta} // It selects its name.
			released(selected(e.Object).Union(selected(withoutSelector)))
		},
	}
}
