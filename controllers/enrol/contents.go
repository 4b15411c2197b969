package enrol

import (
	"context"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// contentsPage is how many objects of a kind are asked for at once: one is enough, and Kubernetes creates one automatically.
const contentsPage = 2

// contents look for what is in a namespace, of whatever kind.
type contents struct {
	discovery *discovery.DiscoveryClient
	metadata  metadata.Interface
}

// kind is a kind of objects, by both of its names.
type kind struct {
	schema.GroupVersionResource

	Kind string
}

func newContents(config *rest.Config) (contents, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1 // There is one request for each kind, one after another.
	// A server warns of kinds that are deprecated, which the user of the command cannot change.
	config.WarningHandlerWithContext = rest.NoWarnings{}
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return contents{}, err
	}
	m, err := metadata.NewForConfig(config)
	return contents{discovery: d, metadata: m}, err
}

// whyKeep returns why a namespace is not to be deleted: something is in it, or that cannot be found out. It is empty for an empty namespace.
func (t target) whyKeep(ctx context.Context, in contents, namespace string) (string, error) {
	kinds, err := in.kinds()
	if discovery.IsGroupDiscoveryFailedError(err) {
		return cannotTell(err), nil
	}
	if err != nil {
		return "", err
	}
	for _, k := range kinds {
		o, err := in.first(ctx, k, namespace)
		switch {
		case ctx.Err() != nil:
			return "", ctx.Err()
		case err != nil:
			return cannotTell(errors.Wrapf(err, "cannot list %s", k.GroupResource())), nil
		case o != nil:
			return "it holds " + t.name(o), nil
		}
	}
	return "", nil
}

func cannotTell(err error) string { return "cannot find out whether it is empty: " + err.Error() }

// kinds returns the kinds of what would go with a namespace. What cannot be
// deleted is left out, as Kubernetes does: it is a view of something else.
func (c contents) kinds() ([]kind, error) {
	lists, err := c.discovery.ServerPreferredNamespacedResources()
	if err != nil {
		return nil, err
	}
	var kinds []kind
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists) {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, r := range list.APIResources {
			k := kind{GroupVersionResource: gv.WithResource(r.Name), Kind: r.Kind}
			if !isEvents(k.GroupResource()) {
				kinds = append(kinds, k)
			}
		}
	}
	if !slices.ContainsFunc(kinds, func(k kind) bool { return k.Group == corev1.GroupName && k.Resource == "secrets" }) {
		return nil, errors.New("the API server does not name the kinds of its core") // A client takes 404 for none.
	}
	return kinds, nil
}

// isEvents reports whether a kind is that of events, which expire.
func isEvents(r schema.GroupResource) bool {
	return r.Resource == "events" && (r.Group == corev1.GroupName || r.Group == eventsv1.GroupName)
}

// first returns an object of a kind in a namespace that Kubernetes does not create in every namespace; nil when there is none.
func (c contents) first(ctx context.Context, k kind, namespace string) (*metav1.PartialObjectMetadata, error) {
	options := metav1.ListOptions{Limit: contentsPage}
	for {
		list, err := c.metadata.Resource(k.GroupVersionResource).Namespace(namespace).List(ctx, options)
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			if o := &list.Items[i]; !isDefault(k.GroupResource(), o.Name) {
				o.SetGroupVersionKind(k.GroupVersion().WithKind(k.Kind))
				return o, nil
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return nil, nil
		}
	}
}

// isDefault reports whether Kubernetes creates an object in every namespace.
func isDefault(r schema.GroupResource, name string) bool {
	switch r {
	case schema.GroupResource{Resource: "serviceaccounts"}:
		return name == "default"
	case schema.GroupResource{Resource: "configmaps"}:
		return name == "kube-root-ca.crt"
	}
	return false
}
