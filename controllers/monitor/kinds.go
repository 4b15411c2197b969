package monitor

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// excludedKinds are the kinds that discovery omits, mostly because they report health themselves, repeat other objects with their labels,
// or change often. A kind that the options name is reported nevertheless.
var excludedKinds = sets.New(
	schema.GroupKind{Group: "k8splugin.io", Kind: "ResourceBundleState"},
	schema.GroupKind{Group: "core.oam.dev", Kind: "HealthScope"},
	schema.GroupKind{Kind: "Secret"},                                            // Only by name: its labels and annotations may say much.
	schema.GroupKind{Kind: "Event"},                                             // What happened, not what is.
	schema.GroupKind{Group: "events.k8s.io", Kind: "Event"},                     // The same.
	schema.GroupKind{Group: "coordination.k8s.io", Kind: "Lease"},               // Changes every few seconds.
	schema.GroupKind{Group: "coordination.k8s.io", Kind: "LeaseCandidate"},      // The same.
	schema.GroupKind{Kind: "Endpoints"},                                         // Mirrors a Service.
	schema.GroupKind{Group: "discovery.k8s.io", Kind: "EndpointSlice"},          // Mirrors a Service.
	schema.GroupKind{Group: "cilium.io", Kind: "CiliumEndpoint"},                // Mirrors a Pod.
	schema.GroupKind{Group: "apps", Kind: "ControllerRevision"},                 // The history of a StatefulSet or DaemonSet.
	schema.GroupKind{Group: "storage.k8s.io", Kind: "CSIStorageCapacity"},       // Changes with each volume.
	schema.GroupKind{Group: "wgpolicyk8s.io", Kind: "PolicyReport"},             // Repeats what it is about.
	schema.GroupKind{Group: "wgpolicyk8s.io", Kind: "ClusterPolicyReport"},      // The same.
	schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"},       // Mirrors a CRD.
	schema.GroupKind{Group: "resource.k8s.io", Kind: "ResourceSlice"},           // Changes with each device.
	schema.GroupKind{Group: "flowcontrol.apiserver.k8s.io", Kind: "FlowSchema"}, // The API server's own.
)

// metricsGroup is the suffix of the groups of aggregated metrics, which are samples, not objects.
const metricsGroup = "metrics.k8s.io"

// discovered returns the kinds to report among those that the cluster serves: those that can be listed and watched and are not in
// excludedKinds. lists are the resources in their preferred versions. Cluster-scoped kinds are reported only if trusted is true. Kinds in
// named are omitted, because they are watched in any case.
func discovered(lists []*metav1.APIResourceList, trusted bool, named []schema.GroupVersionKind) map[schema.GroupVersionKind]metav1.APIResource {
	found := map[schema.GroupVersionKind]metav1.APIResource{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil || gv.Group == metricsGroup || strings.HasSuffix(gv.Group, "."+metricsGroup) {
			continue
		}
		for _, r := range list.APIResources {
			kind := gv.WithKind(r.Kind)
			switch {
			case strings.Contains(r.Name, "/"), !r.Namespaced && !trusted, excludedKinds.Has(kind.GroupKind()),
				!slices.Contains(r.Verbs, "list"), !slices.Contains(r.Verbs, "watch"),
				slices.ContainsFunc(named, func(n schema.GroupVersionKind) bool { return n.GroupKind() == kind.GroupKind() }):
			default:
				found[kind] = r
			}
		}
	}
	return found
}

// allBuiltIn reports whether all kinds are in groups of Kubernetes itself, which are always served.
func allBuiltIn(kinds []schema.GroupVersionKind) bool {
	return !slices.ContainsFunc(kinds, func(k schema.GroupVersionKind) bool { return !clientgoscheme.Scheme.IsGroupRegistered(k.Group) })
}

// placesIn returns the places of a kind whose scope is known.
func placesIn(kind schema.GroupVersionKind, namespaced bool, opts Options) []place {
	single := len(opts.Namespaces) > 0
	return slices.DeleteFunc(placesOf(kind, opts), func(p place) bool {
		return single && namespaced == p.cluster
	})
}

// placesOf returns the places of a kind that the options name. Its scope is not
// known, so with both Namespaces and TrustedNamespaces it is watched in the namespaces and in the cluster.
func placesOf(kind schema.GroupVersionKind, opts Options) []place {
	var places []place
	for _, key := range opts.LabelKeys {
		for _, namespace := range opts.Namespaces {
			places = append(places, place{kind: kind, key: key, namespace: namespace})
		}
		if len(opts.Namespaces) == 0 {
			places = append(places, place{kind: kind, key: key})
		} else if len(opts.TrustedNamespaces) > 0 {
			places = append(places, place{kind: kind, key: key, cluster: true})
		}
	}
	return places
}
