package oam

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
)

const (
	// indexWorkloads is the index of ApplicationConfigurations by the names that their workloads may have: those of components, and those in status.workloads.
	indexWorkloads = "healthscope.workloads"
	// indexScopes is the index of ApplicationConfigurations by the scopes that they name.
	indexScopes = "healthscope.scopes"
	// indexNoted is the index of HealthScopes by the ApplicationConfigurations for which they have references.
	indexNoted = "healthscope.noted"
)

// Options configure Setup.
type Options struct {
	// LabelServices makes Services of components have the label of their scopes.
	LabelServices bool
}

// checkTimeout is the deadline of CheckReadable.
const checkTimeout = 2 * time.Minute

// CheckReadable reports, as an error, why objects of a kind cannot be read.
func CheckReadable(ctx context.Context, reader client.Reader, kind schema.GroupVersionKind) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind)
	err := reader.List(ctx, list, client.Limit(1))
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return errors.Errorf("cannot list %ss: the cluster has no CRD for them with version %s; see config/docs/oam.md", kind.Kind, kind.Version)
	}
	if apierrors.IsForbidden(err) {
		return errors.Wrapf(err, "cannot list %ss, for want of a right in config/docs/rights.md", kind.Kind)
	}
	return errors.Wrapf(err, "cannot list %ss", kind.Kind)
}

func newList() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(Kind)
	return list
}

// Setup adds the controller of ApplicationConfigurations to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	kinds := workloadKinds()
	if o.LabelServices {
		kinds = append(kinds, serviceKind)
	}
	watches, err := newWatches(mgr, kinds)
	if err != nil {
		return err
	}
	r := &reconciler{client: mgr.GetClient(), cached: mgr.GetCache(), watches: watches, recorder: mgr.GetEventRecorder("healthscope-controller")}
	if err := errors.Join(mgr.Add(watches), addIndexes(ctx, mgr.GetFieldIndexer())); err != nil {
		return errors.Wrap(err, "cannot prepare the controller of ApplicationConfigurations")
	}
	changed := predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{})
	err = ctrl.NewControllerManagedBy(mgr).
		Named("applicationconfiguration").
		For(newObject()).
		Watches(&corev1alpha2.HealthScope{}, handler.EnqueueRequestsFromMapFunc(r.ofScope), builder.WithPredicates(changed)).
		WatchesRawSource(source.Channel(watches.changes, handler.EnqueueRequestsFromMapFunc(r.ofObject))).
		Complete(r)
	return errors.Wrap(err, "cannot set up the controller of ApplicationConfigurations")
}

// addIndexes adds the indexes to a cache.
func addIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	return errors.Join(
		indexer.IndexField(ctx, newObject(), indexWorkloads, func(o client.Object) []string {
			return named(o, func(c component) []string {
				if c.workload != nil {
					return []string{c.name, c.workload.Name}
				}
				return []string{c.name}
			})
		}),
		indexer.IndexField(ctx, newObject(), indexScopes, func(o client.Object) []string {
			return named(o, func(c component) []string { return c.scopes })
		}),
		indexer.IndexField(ctx, &corev1alpha2.HealthScope{}, indexNoted, func(o client.Object) []string {
			scope, ok := o.(*corev1alpha2.HealthScope)
			if !ok {
				return nil
			}
			return slices.Collect(maps.Keys(readScope(scope).noted))
		}),
	)
}

// named returns, each once, what the components of an ApplicationConfiguration name.
func named(o client.Object, by func(component) []string) (all []string) {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	declared, _ := components(u) // Of one that cannot be read nothing is known.
	for _, c := range declared {
		for _, name := range by(c) {
			all = appendNew(all, name)
		}
	}
	return all
}

// ofScope returns requests for the ApplicationConfigurations that are in a scope, or that name it.
func (r *reconciler) ofScope(ctx context.Context, o client.Object) []reconcile.Request {
	scope, ok := o.(*corev1alpha2.HealthScope)
	if !ok {
		return nil
	}
	names := slices.Collect(maps.Keys(readScope(scope).noted))
	names = append(names, r.names(ctx, client.InNamespace(scope.Namespace), client.MatchingFields{indexScopes: scope.Name})...)
	return requests(scope.Namespace, names)
}

// ofObject returns requests for the ApplicationConfigurations that a workload or a Service may belong to, or for all of them
// when it is not known which objects have changed.
func (r *reconciler) ofObject(ctx context.Context, o client.Object) []reconcile.Request {
	changed, ok := o.(*metav1.PartialObjectMetadata)
	if !ok || changed.Name == "" {
		return r.all(ctx)
	}
	workloads := []string{changed.Name}
	if changed.GroupVersionKind() == serviceKind {
		for _, kind := range oamKinds {
			for _, w := range r.watches.in(kind, changed.Namespace, func(w *object) bool { return slices.Contains(w.services, changed.Name) }) {
				workloads = appendNew(workloads, w.name)
			}
		}
	}
	var names []string
	for _, name := range workloads {
		names = append(names, r.names(ctx, client.InNamespace(changed.Namespace), client.MatchingFields{indexWorkloads: name})...)
	}
	if application := changed.Labels[corev1alpha2.LabelApplication]; application != "" {
		names = append(names, application)
	}
	return requests(changed.Namespace, names)
}

// all returns requests for all ApplicationConfigurations that there are, or that scopes have noted.
func (r *reconciler) all(ctx context.Context) (all []reconcile.Request) {
	list := newList()
	var scopes corev1alpha2.HealthScopeList
	if err := errors.Join(r.cached.List(ctx, list, client.UnsafeDisableDeepCopy), r.client.List(ctx, &scopes, client.UnsafeDisableDeepCopy)); err != nil {
		log.FromContext(ctx).Error(err, "Cannot list all ApplicationConfigurations")
	}
	for i := range list.Items {
		all = append(all, requests(list.Items[i].GetNamespace(), []string{list.Items[i].GetName()})...)
	}
	for i := range scopes.Items {
		all = append(all, requests(scopes.Items[i].Namespace, slices.Collect(maps.Keys(readScope(&scopes.Items[i]).noted)))...)
	}
	return all
}

// names returns the names of the ApplicationConfigurations that options find.
func (r *reconciler) names(ctx context.Context, options ...client.ListOption) (names []string) {
	list := newList()
	if err := r.cached.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		log.FromContext(ctx).Error(err, "Cannot list the ApplicationConfigurations of a change")
	}
	for i := range list.Items {
		names = append(names, list.Items[i].GetName())
	}
	return names
}

// requests returns requests for ApplicationConfigurations of a namespace.
func requests(namespace string, names []string) (all []reconcile.Request) {
	for _, name := range names {
		all = append(all, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}})
	}
	return all
}
