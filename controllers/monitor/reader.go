package monitor

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
)

// reader lists and watches the objects of a resource, in a namespace or, when that is empty, in all.
type reader interface {
	list(ctx context.Context, resource schema.GroupVersionResource, namespace string, options metav1.ListOptions) (runtime.Object, error)
	watch(ctx context.Context, resource schema.GroupVersionResource, namespace string, options metav1.ListOptions) (apiwatch.Interface, error)
}

// wholeObjects reads objects whole.
type wholeObjects struct{ client dynamic.Interface }

func (r wholeObjects) list(ctx context.Context, resource schema.GroupVersionResource, namespace string, options metav1.ListOptions) (runtime.Object, error) {
	return r.client.Resource(resource).Namespace(namespace).List(ctx, options)
}

func (r wholeObjects) watch(ctx context.Context, resource schema.GroupVersionResource, namespace string, options metav1.ListOptions) (apiwatch.Interface, error) {
	return r.client.Resource(resource).Namespace(namespace).Watch(ctx, options)
}

// metadataOnly reads nothing but the metadata of objects: the rest does not even leave the API server.
type metadataOnly struct{ client metadata.Interface }

func (r metadataOnly) list(ctx context.Context, resource schema.GroupVersionResource, namespace string, options metav1.ListOptions) (runtime.Object, error) {
	return r.client.Resource(resource).Namespace(namespace).List(ctx, options)
}

func (r metadataOnly) watch(ctx context.Context, resource schema.GroupVersionResource, namespace string, options metav1.ListOptions) (apiwatch.Interface, error) {
	return r.client.Resource(resource).Namespace(namespace).Watch(ctx, options)
}
