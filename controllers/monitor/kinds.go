package monitor

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// unreported are kinds that discovery leaves out: what would report itself, and
// what repeats, with its labels, something that is reported, and changes often.
// A kind that the options name is reported all the same.
var unreported = sets.New(
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

// measured is how the groups of aggregated metrics end: samples, not objects.
const measured = "metrics.k8s.io"

// discovered returns the kinds to report of those that the cluster serves: what
// can be listed and watched and is not in unreported. lists are the resources
// in their preferred versions; kinds without a namespace are reported only with
// trusted namespaces. What is in named is left out, because it is followed in any case.
func discovered(lists []*metav1.APIResourceList, trusted bool, named []schema.GroupVersionKind) map[schema.GroupVersionKind]metav1.APIResource {
	found := map[schema.GroupVersionKind]metav1.APIResource{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil || gv.Group == measured || strings.HasSuffix(gv.Group, "."+measured) {
			continue
		}
		for _, r := range list.APIResources {
			kind := gv.WithKind(r.Kind)
			switch {
			case strings.Contains(r.Name, "/"), !r.Namespaced && !trusted, unreported.Has(kind.GroupKind()),
				!slices.Contains(r.Verbs, "list"), !slices.Contains(r.Verbs, "watch"),
				slices.ContainsFunc(named, func(n schema.GroupVersionKind) bool { return n.GroupKind() == kind.GroupKind() }):
			default:
				found[kind] = r
			}
		}
	}
	return found
}

// allBuiltIn reports whether all kinds are of groups of Kubernetes itself, which neither come nor go.
func allBuiltIn(kinds []schema.GroupVersionKind) bool {
	return !slices.ContainsFunc(kinds, func(k schema.GroupVersionKind) bool { return !clientgoscheme.Scheme.IsGroupRegistered(k.Group) })
}

// placesIn returns where to read a kind whose scope is known.
func placesIn(kind schema.GroupVersionKind, namespaced bool, opts Options) []place {
	single := len(opts.Namespaces) > 0
	return slices.DeleteFunc(placesOf(kind, opts), func(p place) bool {
		return single && namespaced == p.cluster
	})
}

// placesOf returns where to read a kind that the options name: its scope is not
// known, so that with single namespaces and trusted ones it is looked for in both places.
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
