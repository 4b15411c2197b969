package controlplane

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// await watches one object until holds says so. It ends early when a process of the control plane dies. The namespace of
// a cluster-scoped object is empty.
func (cp *ControlPlane) await(
	ctx context.Context, kind schema.GroupVersionResource, namespace, name string, holds func(*unstructured.Unstructured) bool,
) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var alarm sync.WaitGroup
	alarm.Go(func() {
		if err := cp.Wait(ctx); err != nil {
			cancel(err)
		}
	})
	defer alarm.Wait()
	defer cancel(nil)
	client, err := dynamic.NewForConfig(cp.config)
	if err != nil {
		return fmt.Errorf("cannot make client: %w", err)
	}
	objects := client.Resource(kind).Namespace(namespace)
	only := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = only
			return objects.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = only
			return objects.Watch(ctx, options)
		},
	}
	_, err = watchtools.UntilWithSync(ctx, source, &unstructured.Unstructured{}, nil, func(event watch.Event) (bool, error) {
		object, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			return false, apierrors.FromObject(event.Object)
		}
		return event.Type != watch.Deleted && holds(object), nil
	})
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return fmt.Errorf("cannot wait for %s %q: %w", kind.Resource, name, err)
}

// hasCondition tells whether the object's status has the condition with status True. The API server has checked the
// types, but a list may be null.
func hasCondition(object *unstructured.Unstructured, condition string) bool {
	for _, entry := range list(object, "status", "conditions") {
		fields, ok := entry.(map[string]any)
		if ok && fields["type"] == condition {
			return fields["status"] == string(metav1.ConditionTrue)
		}
	}
	return false
}

// list is the list at a path in the object, nil if there is none.
func list(object *unstructured.Unstructured, path ...string) []any {
	value, _, err := unstructured.NestedFieldNoCopy(object.Object, path...)
	if err != nil {
		return nil
	}
	entries, _ := value.([]any)
	return entries
}
