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
	"k8s.io/client-go/dynamic"
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
	// errUnsuitable says that the kind cannot be reported, whoever asks.
	errUnsuitable = errors.New("only namespaced kinds that can be listed and watched are reported")
)

// refused tells an error that asking again soon will not change (the cluster
// has no such kind, or the monitor may not read it) from a passing one.
func refused(err error) bool {
	return errors.Is(err, errNotServed) || errors.Is(err, errUnsuitable) ||
		apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err)
}

// kindFinder is the part of a discovery client that says what the cluster serves.
type kindFinder interface {
	ServerGroups() (*metav1.APIGroupList, error)
	ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error)
}

// source is where a watch reads: the objects of a kind that carry a label key,
// in one namespace or, when that is empty, in all.
type source struct {
	kind      schema.GroupVersionKind
	key       string
	namespace string
	kinds     kindFinder
	client    dynamic.Interface
}

// open finds the resource of the kind and returns how to list and watch it.
func (s source) open() (*cache.ListWatch, error) {
	resource, err := s.resource()
	if err != nil {
		return nil, err
	}
	var objects dynamic.ResourceInterface = s.client.Resource(resource)
	if s.namespace != "" {
		objects = s.client.Resource(resource).Namespace(s.namespace)
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			ctx, cancel := context.WithTimeout(ctx, listTimeout)
			defer cancel()
			options.LabelSelector = s.key
			return objects.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
			options.LabelSelector = s.key
			return bounded(ctx, objects, options)
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
		if !r.Namespaced || !slices.Contains(r.Verbs, "list") || !slices.Contains(r.Verbs, "watch") {
			return schema.GroupVersionResource{}, errUnsuitable
		}
		return gv.WithResource(r.Name), nil
	}
	return schema.GroupVersionResource{}, errNotServed
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
func bounded(ctx context.Context, objects dynamic.ResourceInterface, options metav1.ListOptions) (apiwatch.Interface, error) {
	cancel := context.CancelFunc(func() {})
	if options.TimeoutSeconds != nil {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(*options.TimeoutSeconds)*time.Second+watchGrace)
	}
	w, err := objects.Watch(ctx, options)
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
