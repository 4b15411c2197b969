package main

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

// bundleView is what is looked at of a bundle.
type bundleView struct {
	version string
	status  k8spluginv1alpha1.ResourceBundleStateStatus
}

// scopeView is what is looked at of a scope.
type scopeView struct {
	version string
	status  corev1alpha2.HealthScopeStatus
}

// slim drops what is not looked at from objects before they are kept: of bundles, the lists of whole objects.
func slim(object any) (any, error) {
	switch o := object.(type) {
	case *k8spluginv1alpha1.ResourceBundleState:
		s := o.Status
		o.Status = k8spluginv1alpha1.ResourceBundleStateStatus{
			Ready: s.Ready, ResourceCount: s.ResourceCount, Resources: s.Resources, Summary: s.Summary, Truncated: s.Truncated, Malformed: s.Malformed,
		}
	case *corev1alpha2.HealthScope:
		o.Spec = corev1alpha2.HealthScopeSpec{}
	}
	if o, ok := object.(client.Object); ok {
		o.SetManagedFields(nil)
	}
	return object, nil
}

// watch begins to show all bundles and scopes on the boards.
func (p *plane) watch(ctx, watching context.Context, scheme *runtime.Scheme) error {
	return p.follow(ctx, watching, p.config, cache.Options{Scheme: scheme, DefaultTransform: slim}, map[client.Object]toolscache.ResourceEventHandlerFuncs{
		&k8spluginv1alpha1.ResourceBundleState{}: handler(p.bundles, func(o *k8spluginv1alpha1.ResourceBundleState) *bundleView {
			return &bundleView{version: o.ResourceVersion, status: o.Status}
		}),
		&corev1alpha2.HealthScope{}: handler(p.scopes, func(o *corev1alpha2.HealthScope) *scopeView {
			return &scopeView{version: o.ResourceVersion, status: o.Status}
		}),
	})
}

// follow watches kinds until watching is done, and returns when they have been read once.
func (p *plane) follow(ctx, watching context.Context, config *rest.Config, o cache.Options, handlers map[client.Object]toolscache.ResourceEventHandlerFuncs) error {
	informers, err := cache.New(config, o)
	if err != nil {
		return fmt.Errorf("cannot watch: %w", err)
	}
	for object, h := range handlers {
		informer, err := informers.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err == nil {
			_, err = informer.AddEventHandler(h)
		}
		if err != nil {
			return fmt.Errorf("cannot watch %T: %w", object, err)
		}
	}
	p.running.Go(func() {
		if err := informers.Start(watching); err != nil {
			p.logf("watching ended: %v", err)
		}
	})
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	if !informers.WaitForCacheSync(ctx) {
		return errors.Join(errors.New("cannot watch: nothing was read in time"), ctx.Err())
	}
	return nil
}

// handler puts the view of each object on a board.
func handler[O client.Object, V any](b *board[V], view func(O) V) toolscache.ResourceEventHandlerFuncs {
	put := func(object any) {
		if o, ok := object.(O); ok {
			b.put(client.ObjectKeyFromObject(o), view(o))
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    put,
		UpdateFunc: func(_, object any) { put(object) },
		DeleteFunc: func(object any) {
			if last, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
				object = last.Obj
			}
			if o, ok := object.(O); ok {
				b.remove(types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()})
			}
		},
	}
}
