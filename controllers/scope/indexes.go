package scope

import (
	"context"
	"maps"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
)

// The fields that scopes are indexed by in the cache.
const (
	// indexRefs has group/Kind/name of every object a scope refers to.
	indexRefs = "healthscope.refs"
	// indexKinds has group/Kind of every kind a scope refers to.
	indexKinds = "healthscope.kinds"
	// indexClusters has the name of every cluster that a scope names in its spec or status.
	indexClusters = "healthscope.clusters"
	// indexSelects has key=value of a label that a bundle must have for a selector of the scope to match, and indexAny for selectors that require no one label.
	indexSelects = "healthscope.selects"
	indexAny     = "*"
)

// addIndexes adds the indexes to a cache.
func addIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	indexes := map[string]func(*corev1alpha2.HealthScope) []string{
		indexRefs: func(s *corev1alpha2.HealthScope) []string {
			return indexed(s, refKey)
		},
		indexKinds: func(s *corev1alpha2.HealthScope) []string {
			return indexed(s, func(gk schema.GroupKind, _ string) string { return kindKey(gk) })
		},
		indexSelects:  selectedBy,
		indexClusters: clustersNamed,
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

// selectedBy returns a value for each selector of a scope, under which the bundles that it may match are found.
func selectedBy(s *corev1alpha2.HealthScope) []string {
	values := map[string]struct{}{}
	for _, app := range s.Spec.Apps {
		selector, err := metav1.LabelSelectorAsSelector(app.Selector)
		if app.Selector == nil || err != nil {
			continue
		}
		if key, value, ok := fleet.RequiredLabel(selector); ok {
			values[labelKey(key, value)] = struct{}{}
		} else {
			values[indexAny] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(values))
}

func labelKey(key, value string) string              { return key + "=" + value }
func kindKey(gk schema.GroupKind) string             { return gk.Group + "/" + gk.Kind }
func refKey(gk schema.GroupKind, name string) string { return kindKey(gk) + "/" + name }
