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

// unsuitable is the reason why a served kind cannot be read from a place.
type unsuitable string

const (
	errNotWatchable unsuitable = "only kinds that can be listed and watched are reported"
	// errNamedStatus means that client-go decodes objects of a watch as errors of the API server, and drops their content.
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

// includes reports whether a place may have objects that a bundle's key selects.
func (p place) includes(c selectorKey) bool {
	return c.key == p.key && (p.namespace == "" || c.namespace == "" || p.namespace == c.namespace)
}

// withoutVersion returns the place without the version of its kind.
func (p place) withoutVersion() place {
	p.kind.Version = ""
	return p
}

// source is the place of a watch and the clients to read it.
type source struct {
	place

	// trusted allows kinds without namespaces.
	trusted bool
	kinds   kindFinder
	// client returns the ListerWatcher of a resource in a namespace or, if that is empty, in all namespaces.
	client func(resource schema.GroupVersionResource, namespace string) cache.ListerWatcher
}

// open discovers the resource of the kind and returns its ListWatch.
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

// confirm returns the error of a request for a resource. NotFound means that the resource is not served only if discovery
// does not list it either: a proxy may have returned the error, and objects must not vanish because of it.
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
	return fmt.Errorf("cannot read %q, which is served: %s", resource.GroupResource(), err.Error()) // Do not wrap err, which would classify the resource as not served.
}

// resource discovers the resource of the kind. It sends a request on each call, so that a kind that is installed later is found.
func (s source) resource() (schema.GroupVersionResource, error) {
	gv := s.kind.GroupVersion()
	list, err := s.kinds.ServerResourcesForGroupVersion(gv.String())
	if apierrors.IsNotFound(err) {
		return schema.GroupVersionResource{}, s.confirmNotServed()
	}
	if err != nil {
		return schema.GroupVersionResource{}, fmt.Errorf("cannot discover %q: %w", gv, err)
	}
	if len(list.APIResources) == 0 { // The client returns an empty list for a 404 of the core group.
		return schema.GroupVersionResource{}, fmt.Errorf("cannot discover %q: the list of its resources is empty", gv)
	}
	for _, r := range list.APIResources {
		if r.Kind != s.kind.Kind || strings.Contains(r.Name, "/") {
			continue
		}
		if err := s.checkSuitable(r); err != nil {
			return schema.GroupVersionResource{}, err
		}
		return gv.WithResource(r.Name), nil
	}
	return schema.GroupVersionResource{}, observe.ErrNotServed
}

// checkSuitable returns an error if a resource cannot be read at the source's place.
func (s source) checkSuitable(r metav1.APIResource) error {
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

// confirmNotServed returns ErrNotServed if the cluster does not list the kind's API version. A 404 alone proves nothing: a proxy may have
// returned it, and objects must not vanish because of it.
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
