package scope

import (
	"context"
	"maps"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
)

// The fields that scopes are indexed by in the cache.
const (
	// indexRefs has group/Kind/name of every object a scope refers to.
	indexRefs = "healthscope.refs"
	// indexKinds has group/Kind of every kind a scope refers to or selects by labels.
	indexKinds = "healthscope.kinds"
	// indexClusters has the name of every cluster that a scope names in its spec or status.
	indexClusters = "healthscope.clusters"
	// indexSelects has key=value of a label that a bundle must have for a selector of the scope to match, and indexAny for selectors that require no one label.
	indexSelects = "healthscope.selects"
	indexAny     = "*"
	// indexWorkloads is as indexSelects, for the workloads that a scope selects.
	indexWorkloads = "healthscope.workloads"
)

// addIndexes adds the indexes to a cache.
func addIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	indexes := map[string]func(*corev1alpha2.HealthScope) []string{
		indexRefs: func(s *corev1alpha2.HealthScope) []string {
			return indexed(s, refKey)
		},
		indexKinds:     kindsNamed,
		indexSelects:   selectedBy,
		indexWorkloads: workloadsSelectedBy,
		indexClusters:  clustersNamed,
	}
	for field, values := range indexes {
		err := indexer.IndexField(ctx, &corev1alpha2.HealthScope{}, field, func(o client.Object) []string {
			s, ok := o.(*corev1alpha2.HealthScope)
			if !ok {
				return nil
			}
			return values(s)
		})
		if err != nil {
			return errors.Wrapf(err, "cannot index HealthScopes by %q", field)
		}
	}
	return nil
}

// indexed returns one value for each kind and name that a scope refers to.
func indexed(s *corev1alpha2.HealthScope, value func(schema.GroupKind, string) string) []string {
	values := map[string]struct{}{}
	for gvk, ref := range references(s) {
		values[value(gvk.GroupKind(), ref.Name)] = struct{}{}
	}
	return slices.Sorted(maps.Keys(values))
}

// kindsNamed returns a value for each kind that a scope refers to or selects by labels.
func kindsNamed(s *corev1alpha2.HealthScope) []string {
	values := sets.New(indexed(s, func(gk schema.GroupKind, _ string) string { return kindKey(gk) })...)
	for _, selector := range allWorkloadSelectors(s) {
		kinds, _ := workloadKinds(selector)
		for _, gvk := range kinds {
			values.Insert(kindKey(gvk.GroupKind()))
		}
	}
	return sets.List(values)
}

// workloadsSelectedBy returns a value for each selector of workloads of a scope, under which the workloads that it may match are found.
func workloadsSelectedBy(s *corev1alpha2.HealthScope) []string {
	values := sets.New[string]()
	for _, workloads := range allWorkloadSelectors(s) {
		if selector, err := metav1.LabelSelectorAsSelector(&workloads.LabelSelector); err == nil {
			values.Insert(requiredLabel(selector))
		}
	}
	return sets.List(values)
}

// requiredLabel returns the label that a selector requires, as it is indexed; indexAny when it requires no one label.
func requiredLabel(selector labels.Selector) string {
	if key, value, ok := fleet.RequiredLabel(selector); ok {
		return labelKey(key, value)
	}
	return indexAny
}

// selectedBy returns a value for each selector of a scope, under which the bundles that it may match are found.
func selectedBy(s *corev1alpha2.HealthScope) []string {
	values := map[string]struct{}{}
	for _, app := range s.Spec.Apps {
		selector, err := metav1.LabelSelectorAsSelector(app.Selector)
		if app.Selector == nil || err != nil {
			continue
		}
		values[requiredLabel(selector)] = struct{}{}
	}
	return slices.Sorted(maps.Keys(values))
}

func labelKey(key, value string) string              { return key + "=" + value }
func kindKey(gk schema.GroupKind) string             { return gk.Group + "/" + gk.Kind }
func refKey(gk schema.GroupKind, name string) string { return kindKey(gk) + "/" + name }
