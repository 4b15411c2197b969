package monitor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

const (
	// listTimeout bounds a list; the API server itself gives up after a minute.
	listTimeout = 90 * time.Second
	// watchGrace is how long a watch may outlive the time after which the API server should have ended it.
	watchGrace = time.Minute
)

var (
	// errNotServed says that the cluster has no such kind, for certain.
	errNotServed = errors.New("the cluster does not serve this kind")
	// errCannotFollow says that nobody can follow the kind.
	errCannotFollow = errors.New("only kinds that can be listed and watched are reported")
	// errClusterScoped says that the kind's objects belong to no namespace, and no namespace is trusted with them.
	errClusterScoped = errors.New("kinds without namespaces are reported in trusted namespaces only")
	// errElsewhere says that another watch follows the kind: a namespace has no
	// objects of a cluster-scoped kind, and the cluster none of a namespaced one.
	errElsewhere = errors.New("objects of this kind are not in this place")
)

// absent says that there is nothing to read, for certain: what was read before is gone.
func absent(err error) bool {
	for _, known := range []error{errNotServed, errCannotFollow, errClusterScoped, errElsewhere} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// refused tells an error that asking again soon will not change (the cluster
// has no such kind, or the monitor may not read it) from a passing one.
func refused(err error) bool {
	return absent(err) || apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err)
}

// kindFinder is the part of a discovery client that says what the cluster serves.
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
	reader  reader
}

// open finds the resource of the kind and returns how to list and watch it.
func (s source) open() (*cache.ListWatch, error) {
	resource, err := s.resource()
	if err != nil {
		return nil, err
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			ctx, cancel := context.WithTimeout(ctx, listTimeout)
			defer cancel()
			options.LabelSelector = s.key
			return s.reader.list(ctx, resource, s.namespace, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
			options.LabelSelector = s.key
			return bounded(ctx, options, func(ctx context.Context) (apiwatch.Interface, error) {
				return s.reader.watch(ctx, resource, s.namespace, options)
			})
		},
	}, nil
}

// resource asks the cluster what the kind's resource is called. It asks anew
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
	return schema.GroupVersionResource{}, errNotServed
}

// suits returns an error when a resource cannot be read at the source's place.
func (s source) suits(r metav1.APIResource) error {
	switch {
	case !slices.Contains(r.Verbs, "list") || !slices.Contains(r.Verbs, "watch"):
		return errCannotFollow
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
	return errNotServed
}

// bounded opens a watch that ends by itself when neither the API server nor
// the connection ends it in time.
func bounded(ctx context.Context, options metav1.ListOptions, open func(context.Context) (apiwatch.Interface, error)) (apiwatch.Interface, error) {
	cancel := context.CancelFunc(func() {})
	if options.TimeoutSeconds != nil {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(*options.TimeoutSeconds)*time.Second+watchGrace)
	}
	w, err := open(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	return boundedWatch{Interface: w, cancel: cancel}, nil
}

// boundedWatch frees its deadline when it is stopped.
type boundedWatch struct {
	apiwatch.Interface

	cancel context.CancelFunc
}

// Stop ends the watch.
func (w boundedWatch) Stop() {
	w.Interface.Stop()
	w.cancel()
}
