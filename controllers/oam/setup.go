package oam

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/healthscope/kubevela"
)

// Options configure Setup.
type Options struct {
	// LabelServices makes Services of components have the label of their scopes.
	LabelServices bool
}

// probeTimeout is the deadline of CheckReadable.
const probeTimeout = 2 * time.Minute

// CheckReadable reports, as an error, why ApplicationConfigurations cannot be read.
func CheckReadable(ctx context.Context, reader client.Reader) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	return errors.Wrap(reader.List(ctx, newList(), client.Limit(1)), "cannot list ApplicationConfigurations")
}

// CheckApplicationsReadable reports, as an error, why Applications cannot be read.
func CheckApplicationsReadable(ctx context.Context, reader client.Reader) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kubevela.ApplicationKind)
	return errors.Wrap(reader.List(ctx, list, client.Limit(1)), "cannot list Applications")
}

func newList() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(Kind)
	return list
}

// Setup adds the controller of ApplicationConfigurations to a manager.
func Setup(mgr ctrl.Manager, o Options) error {
	r := &reconciler{options: o, client: mgr.GetClient(), cached: mgr.GetCache(), live: mgr.GetAPIReader(), recorder: mgr.GetEventRecorder("healthscope-controller")}
	changed := predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{})
	err := ctrl.NewControllerManagedBy(mgr).
		Named("applicationconfiguration").
		For(newObject()).
		Watches(&corev1alpha2.HealthScope{}, handler.EnqueueRequestsFromMapFunc(r.joining), builder.WithPredicates(changed)).
		Complete(r)
	return errors.Wrap(err, "cannot set up the controller of ApplicationConfigurations")
}

// joining returns requests for the ApplicationConfigurations that are in a scope, or that name it.
func (r *reconciler) joining(ctx context.Context, o client.Object) []reconcile.Request {
	scope, ok := o.(*corev1alpha2.HealthScope)
	if !ok {
		return nil
	}
	names := map[string]struct{}{}
	for name := range readScope(scope).noted {
		names[name] = struct{}{}
	}
	list := newList()
	if err := r.cached.List(ctx, list, client.InNamespace(scope.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "Cannot list the ApplicationConfigurations of a HealthScope")
	}
	for i := range list.Items {
		declared, err := components(&list.Items[i])
		if err == nil && slices.ContainsFunc(declared, func(c component) bool { return slices.Contains(c.scopes, scope.Name) }) {
			names[list.Items[i].GetName()] = struct{}{}
		}
	}
	var requests []reconcile.Request
	for name := range maps.Keys(names) {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: scope.Namespace, Name: name}})
	}
	return requests
}
