package monitor

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func served(gv string, resources ...metav1.APIResource) *metav1.APIResourceList {
	return &metav1.APIResourceList{GroupVersion: gv, APIResources: resources}
}

// kindServed is a resource of a kind that can be listed and watched.
func kindServed(kind string, namespaced bool) metav1.APIResource {
	return metav1.APIResource{Name: kind + "s", Kind: kind, Namespaced: namespaced, Verbs: metav1.Verbs{"get", "list", "watch"}}
}

func TestDiscoveredKinds(t *testing.T) {
	t.Parallel()
	lists := []*metav1.APIResourceList{
		served("v1", kindServed("Pod", true), kindServed("Secret", true), kindServed("Event", true), kindServed("Endpoints", true),
			kindServed("Node", false), metav1.APIResource{Name: "pods/log", Kind: "Pod", Namespaced: true, Verbs: metav1.Verbs{"list", "watch"}},
			metav1.APIResource{Name: "bindings", Kind: "Binding", Namespaced: true, Verbs: metav1.Verbs{"create"}}),
		served("apps/v1", kindServed("Deployment", true), kindServed("ControllerRevision", true)),
		served("coordination.k8s.io/v1", kindServed("Lease", true)),
		served("discovery.k8s.io/v1", kindServed("EndpointSlice", true)),
		served("metrics.k8s.io/v1beta1", kindServed("PodMetrics", true)),
		served("custom.metrics.k8s.io/v1beta2", kindServed("Whatever", true)),
		served("k8splugin.io/v1alpha1", kindServed("ResourceBundleState", true)),
		served("core.oam.dev/v1alpha2", kindServed("HealthScope", true), kindServed("Application", true)),
		served("example.io/v2", kindServed("Widget", true), metav1.APIResource{Name: "polls", Kind: "Poll", Namespaced: true, Verbs: metav1.Verbs{"list"}}),
		served("example.io/v1/x", kindServed("Odd", true)),
	}
	cases := map[string]struct {
		trusted bool
		named   []schema.GroupVersionKind
		want    []string
	}{
		"namespaced": {
			named: []schema.GroupVersionKind{{Version: "v1", Kind: "Pod"}},
			want:  []string{"apps/v1, Kind=Deployment", "core.oam.dev/v1alpha2, Kind=Application", "example.io/v2, Kind=Widget"},
		},
		"trusted": {
			trusted: true,
			named:   []schema.GroupVersionKind{{Version: "v1", Kind: "Pod"}, {Group: "example.io", Version: "v1", Kind: "Widget"}},
			want:    []string{"/v1, Kind=Node", "apps/v1, Kind=Deployment", "core.oam.dev/v1alpha2, Kind=Application"},
		},
	}
	for name, tc := range cases {
		var got []string
		for kind := range maps.Keys(discovered(lists, tc.trusted, tc.named)) {
			got = append(got, kind.String())
		}
		slices.Sort(got)
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: kinds differ (-want +got):\n%s", name, diff)
		}
	}
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	kind := schema.GroupVersionKind{Group: "example.io", Version: "v1", Kind: "Widget"}
	everywhere := Options{LabelKeys: []string{"a", "b"}}
	single := Options{LabelKeys: []string{"a"}, Namespaces: []string{"x", "y"}}
	trusted := Options{LabelKeys: []string{"a"}, Namespaces: []string{"x", "y"}, TrustedNamespaces: []string{"x"}}
	cases := map[string]struct{ got, want []place }{
		"everywhere":        {placesOf(kind, everywhere), []place{{kind: kind, key: "a"}, {kind: kind, key: "b"}}},
		"single namespaces": {placesOf(kind, single), []place{{kind: kind, key: "a", namespace: "x"}, {kind: kind, key: "a", namespace: "y"}}},
		"single namespaces, one of them trusted": {placesOf(kind, trusted), []place{
			{kind: kind, key: "a", namespace: "x"}, {kind: kind, key: "a", namespace: "y"}, {kind: kind, key: "a", cluster: true},
		}},
		"known to be namespaced":    {placesIn(kind, true, trusted), []place{{kind: kind, key: "a", namespace: "x"}, {kind: kind, key: "a", namespace: "y"}}},
		"known to be the cluster's": {placesIn(kind, false, trusted), []place{{kind: kind, key: "a", cluster: true}}},
		"the cluster's, everywhere": {placesIn(kind, false, everywhere), []place{{kind: kind, key: "a"}, {kind: kind, key: "b"}}},
	}
	for name, tc := range cases {
		if diff := cmp.Diff(tc.want, tc.got, cmp.AllowUnexported(place{})); diff != "" {
			t.Errorf("%s: places differ (-want +got):\n%s", name, diff)
		}
	}
}
