package observe

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// Client lists and watches a resource, as the dynamic client and the metadata client do.
type Client[L runtime.Object] interface {
	List(ctx context.Context, options metav1.ListOptions) (L, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// NewListerWatcher returns the ListerWatcher of a client.
func NewListerWatcher[L runtime.Object](c Client[L]) cache.ListerWatcher {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return c.List(ctx, options)
		},
		WatchFuncWithContext: c.Watch,
	}
}
