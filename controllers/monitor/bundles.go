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

// indexClaims makes the cache find bundles by their claims.
func indexClaims(ctx context.Context, indexer client.FieldIndexer, m membership) error {
	byClaim := func(object client.Object) []string {
		b, ok := object.(*k8spluginv1alpha1.ResourceBundleState)
		if !ok {
			return nil
		}
		var values []string
		for _, c := range m.claims(b) {
			values = append(values, c.index())
		}
		return values
	}
	if err := indexer.IndexField(ctx, &k8spluginv1alpha1.ResourceBundleState{}, claimIndex, byClaim); err != nil {
		return fmt.Errorf("cannot index bundles: %w", err)
	}
	return nil
}

// bundlesIn returns how to find the bundles in a cache that want an object with
// a claim: those of the object's namespace and those of trusted ones.
func bundlesIn(bundles client.Reader, trusted []string) func(context.Context, claim) ([]types.NamespacedName, error) {
	return func(ctx context.Context, c claim) ([]types.NamespacedName, error) {
		namespaces := sets.New(trusted...)
		if c.namespace != "" {
			namespaces.Insert(c.namespace)
		}
		var names []types.NamespacedName
		for namespace := range namespaces {
			found, err := bundleNames(ctx, bundles, client.InNamespace(namespace), client.MatchingFields{claimIndex: c.index()})
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

// releases returns what to do with the events of bundles so that the claims are
// released that a bundle no longer makes, because it was changed or is gone,
// and those to whose bundle it no longer denies its name.
func releases(m membership, released func(sets.Set[claim])) handler.TypedEventHandler[*k8spluginv1alpha1.ResourceBundleState, claim] {
	own := func(b *k8spluginv1alpha1.ResourceBundleState) sets.Set[claim] {
		claims := sets.New[claim]()
		for _, c := range m.claims(b) {
			claims.Insert(claim{namespace: b.Namespace, key: c.key, value: c.value})
		}
		return claims
	}
	named := func(b *k8spluginv1alpha1.ResourceBundleState) sets.Set[claim] {
		claims := sets.New[claim]()
		for _, key := range m.keys {
			claims.Insert(claim{namespace: b.Namespace, key: key, value: b.Name})
		}
		return claims
	}
	return handler.TypedFuncs[*k8spluginv1alpha1.ResourceBundleState, claim]{
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*k8spluginv1alpha1.ResourceBundleState], _ workqueue.TypedRateLimitingInterface[claim]) {
			old, b := e.ObjectOld, e.ObjectNew
			if old.UID != b.UID || old.Generation != b.Generation { // An update is all that is seen of what goes and comes between two lists.
				released(own(old).Difference(own(b)))
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*k8spluginv1alpha1.ResourceBundleState], _ workqueue.TypedRateLimitingInterface[claim]) {
			released(own(e.Object).Union(named(e.Object)))
		},
	}
}
