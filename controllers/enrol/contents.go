package enrol

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// contentsPageSize is the limit of a list: one object is enough, and Kubernetes creates one of some kinds itself.
const contentsPageSize = 2

// contents lists the objects in a namespace, of all kinds.
type contents struct {
	discovery *discovery.DiscoveryClient
	metadata  metadata.Interface
}

func newContents(config *rest.Config) (contents, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1 // The requests, one for each kind, are sequential.
	// API servers warn of deprecated kinds, which the user of the command cannot change.
	config.WarningHandlerWithContext = rest.NoWarnings{}
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return contents{}, err
	}
	m, err := metadata.NewForConfig(config)
	return contents{discovery: d, metadata: m}, err
}

// keepReason returns why a namespace must not be deleted: it holds an object, or its contents cannot be listed. The reason is empty
// for an empty namespace.
func (t target) keepReason(ctx context.Context, in contents, namespace string) (string, error) {
	const notVerified = "cannot find out whether it is empty: "
	kinds, err := in.kinds()
	if discovery.IsGroupDiscoveryFailedError(err) {
		return notVerified + err.Error(), nil
	}
	if err != nil {
		return "", err
	}
	for _, k := range kinds {
		o, err := in.firstObject(ctx, k, namespace)
		switch {
		case ctx.Err() != nil:
			return "", ctx.Err()
		case err != nil:
			return notVerified + errors.Wrapf(err, "cannot list %s", schema.GroupResource{Group: k.Group, Resource: k.Name}).Error(), nil
		case o != nil:
			return "it holds " + t.name(o), nil
		}
	}
	return "", nil
}

// kinds returns the kinds whose objects are deleted with a namespace, with group and version. Like Kubernetes it leaves out
// kinds that cannot be deleted: they are views of other objects. It leaves out events too, which expire.
func (c contents) kinds() (kinds []metav1.APIResource, err error) {
	lists, err := c.discovery.ServerPreferredNamespacedResources()
	if err != nil {
		return nil, err
	}
	core := false // The discovery client treats 404 as no kinds.
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists) {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, k := range list.APIResources {
			core = core || gv.Group == corev1.GroupName && k.Name == "secrets"
			if k.Name != "events" || gv.Group != corev1.GroupName && gv.Group != eventsv1.GroupName {
				k.Group, k.Version = gv.Group, gv.Version
				kinds = append(kinds, k)
			}
		}
	}
	if !core {
		return nil, errors.New("the API server does not name the kinds of its core")
	}
	return kinds, nil
}

// firstObject returns an object of a kind in a namespace that Kubernetes does not create in every namespace; nil when there is none.
func (c contents) firstObject(ctx context.Context, k metav1.APIResource, namespace string) (*metav1.PartialObjectMetadata, error) {
	resource := schema.GroupVersionResource{Group: k.Group, Version: k.Version, Resource: k.Name}
	options := metav1.ListOptions{Limit: contentsPageSize}
	for {
		list, err := c.metadata.Resource(resource).Namespace(namespace).List(ctx, options)
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			if o := &list.Items[i]; !isDefault(resource.GroupResource(), o.Name) {
				o.SetGroupVersionKind(resource.GroupVersion().WithKind(k.Kind))
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
	return r == schema.GroupResource{Resource: "serviceaccounts"} && name == "default" || r == schema.GroupResource{Resource: "configmaps"} && name == "kube-root-ca.crt"
}
