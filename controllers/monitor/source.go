package monitor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/healthscope/healthscope/controllers/observe"
)

// unsuitable is the reason why objects of a kind that is served can never be read from a place.
type unsuitable string

const (
	errNotWatchable unsuitable = "only kinds that can be listed and watched are reported"
	// errNamedStatus means that client-go takes what a watch says of the objects for an error of the API server, and loses what is in them.
	errNamedStatus   unsuitable = "objects of a kind named Status cannot be watched"
	errClusterScoped unsuitable = "kinds without namespaces are reported in trusted namespaces only"
	// errElsewhere means that another watch follows the kind: a namespace has no
	// objects of a cluster-scoped kind, and the cluster none of a namespaced one.
	errElsewhere unsuitable = "objects of this kind are not in this place"
)

// Error implements error.
func (u unsuitable) Error() string { return string(u) }

// Is reports whether target is observe.ErrUnsuitable.
func (unsuitable) Is(target error) bool { return target == observe.ErrUnsuitable }

// kindFinder is the part of a discovery client that returns what the cluster serves.
type kindFinder interface {
	ServerGroups() (*metav1.APIGroupList, error)
	ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error)
}

// place is what a watch reads: the objects of a kind that carry a label key, in
// one namespace, or in all when that is empty. Without a key it reads all objects.
type place struct {
	kind      schema.GroupVersionKind
	key       string
	namespace string
	// cluster means the objects of the cluster only: it goes with watches of single namespaces.
	cluster bool
}

// source is where a watch reads its place from.
type source struct {
	place

	// trusted allows kinds without namespaces.
	trusted bool
	kinds   kindFinder
	// client returns how to list and watch a resource in a namespace or, when that is empty, in all.
	client func(resource schema.GroupVersionResource, namespace string) cache.ListerWatcher
}

// open finds the resource of the kind and returns how to list and watch it.
func (s source) open() (*cache.ListWatch, error) {
	resource, err := s.resource()
	if err != nil {
		return nil, err
	}
	all := cache.ToListerWatcherWithContext(s.client(resource, s.namespace))
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = s.key
			list, err := all.ListWithContext(ctx, options)
			return list, s.confirm(resource, err)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
			options.LabelSelector = s.key
			events, err := all.WatchWithContext(ctx, options)
			return events, s.confirm(resource, err)
		},
	}, nil
}

// confirm returns the error of a request for a resource. That the resource is not found means that it is not served only
// if the cluster does not name it either: a proxy on the way may answer so, and objects must not vanish because of it.
func (s source) confirm(resource schema.GroupVersionResource, err error) error {
	if !apierrors.IsNotFound(err) && !apierrors.IsMethodNotSupported(err) {
		return err
	}
	served, cause := s.resource()
	switch {
	case cause != nil:
		return cause
	case served != resource:
		return observe.ErrNotServed
	}
	return fmt.Errorf("cannot read %q, which is served: %s", resource.GroupResource(), err.Error()) // Not the error itself, which says that it is not.
}

// resource asks the cluster for the name of the kind's resource. It asks again
// each time, so that a kind that is installed later is found.
func (s source) resource() (schema.GroupVersionResource, error) {
	gv := s.kind.GroupVersion()
	list, err := s.kinds.ServerResourcesForGroupVersion(gv.String())
	if apierrors.IsNotFound(err) {
		return schema.GroupVersionResource{}, s.confirmNotServed()
	}
	if err != nil {
		return schema.GroupVersionResource{}, fmt.Errorf("cannot discover %q: %w", gv, err)
	}
	if len(list.APIResources) == 0 { // So the client answers a 404 for the core group.
		return schema.GroupVersionResource{}, fmt.Errorf("cannot discover %q: the list of its resources is empty", gv)
	}
	for _, r := range list.APIResources {
		if r.Kind != s.kind.Kind || strings.Contains(r.Name, "/") {
			continue
		}
		if err := s.suits(r); err != nil {
			return schema.GroupVersionResource{}, err
		}
		return gv.WithResource(r.Name), nil
	}
	return schema.GroupVersionResource{}, observe.ErrNotServed
}

// suits returns an error when a resource cannot be read at the source's place.
func (s source) suits(r metav1.APIResource) error {
	switch {
	case !slices.Contains(r.Verbs, "list") || !slices.Contains(r.Verbs, "watch"):
		return errNotWatchable
	case r.Kind == "Status":
		return errNamedStatus
	case r.Namespaced && s.cluster:
		return errElsewhere
	case !r.Namespaced && !s.trusted:
		return errClusterScoped
	case !r.Namespaced && s.namespace != "":
		return errElsewhere
	default:
		return nil
	}
}

// confirmNotServed looks for the kind's API version among all that the cluster
// serves. A 404 alone proves nothing: a proxy on the way may answer so, and
// objects must not vanish because of it.
func (s source) confirmNotServed() error {
	gv := s.kind.GroupVersion().String()
	groups, err := s.kinds.ServerGroups()
	if err != nil {
		return fmt.Errorf("cannot discover API groups: %w", err)
	}
	for _, group := range groups.Groups {
		for _, version := range group.Versions {
			if version.GroupVersion == gv {
				return fmt.Errorf("cannot discover %q: it is served, but its resources are not found", gv)
			}
		}
	}
	return observe.ErrNotServed
}
