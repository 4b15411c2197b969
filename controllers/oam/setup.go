package oam

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
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
	// indexWorkloads is the index of ApplicationConfigurations by the possible names of their workloads: those of components, and
	// those in status.workloads.
	indexWorkloads = "healthscope.workloads"
	// indexScopes is the index of ApplicationConfigurations by the scopes that they name.
	indexScopes = "healthscope.scopes"
	// indexRecorded is the index of HealthScopes by the ApplicationConfigurations for which they have references.
	indexRecorded = "healthscope.recorded"
)

// Options configure Setup.
type Options struct {
	// LabelServices sets the labels of scopes on the Services of their components.
	LabelServices bool
}

// checkTimeout is the deadline of CheckReadable.
const checkTimeout = 2 * time.Minute

// CheckReadable returns an error with the reason why objects of a kind cannot be read; nil when they can.
func CheckReadable(ctx context.Context, reader client.Reader, kind schema.GroupVersionKind) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	err := reader.List(ctx, newList(kind), client.Limit(1))
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return errors.Errorf("cannot list %ss: the cluster has no CRD for them with version %s; see config/docs/oam.md", kind.Kind, kind.Version)
	}
	if apierrors.IsForbidden(err) {
		return errors.Wrapf(err, "cannot list %ss, for want of a right in config/docs/rights.md", kind.Kind)
	}
	return errors.Wrapf(err, "cannot list %ss", kind.Kind)
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
		For(newObject(ApplicationConfigurationKind)).
		Watches(&corev1alpha2.HealthScope{}, handler.EnqueueRequestsFromMapFunc(r.requestsForScope), builder.WithPredicates(changed)).
		WatchesRawSource(source.Func(func(ctx context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			watches.changed = func(kind schema.GroupVersionKind, namespace string, o *watchedObject) {
				for _, request := range r.requestsForObject(ctx, kind, namespace, o) {
					q.Add(request)
				}
			}
			close(watches.started)
			return nil
		})).
		Complete(r)
	return errors.Wrap(err, "cannot set up the controller of ApplicationConfigurations")
}

// addIndexes adds the indexes to a cache.
func addIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	return errors.Join(
		indexer.IndexField(ctx, newObject(ApplicationConfigurationKind), indexWorkloads, func(o client.Object) []string {
			return componentValues(o, func(c component) []string {
				if c.workload != nil {
					return []string{c.name, c.workload.Name}
				}
				return []string{c.name}
			})
		}),
		indexer.IndexField(ctx, newObject(ApplicationConfigurationKind), indexScopes, func(o client.Object) []string {
			return componentValues(o, func(c component) []string { return c.scopes })
		}),
		indexer.IndexField(ctx, &corev1alpha2.HealthScope{}, indexRecorded, recordedIn),
	)
}

// componentValues returns the distinct values of the components of an ApplicationConfiguration.
func componentValues(o client.Object, values func(component) []string) (all []string) {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	declared, _ := components(u) // An ApplicationConfiguration that cannot be read has no index values.
	for _, c := range declared {
		for _, name := range values(c) {
			all = appendNew(all, name)
		}
	}
	return all
}

// requestsForScope returns requests for the ApplicationConfigurations that name a scope, or that have references recorded in it.
func (r *reconciler) requestsForScope(ctx context.Context, o client.Object) []reconcile.Request {
	named := r.listNames(ctx, client.InNamespace(o.GetNamespace()), client.MatchingFields{indexScopes: o.GetName()})
	return requests(o.GetNamespace(), append(recordedIn(o), named...))
}

// recordedIn returns the names of the ApplicationConfigurations that have references recorded in a scope.
func recordedIn(o client.Object) []string {
	scope, ok := o.(*corev1alpha2.HealthScope)
	if !ok {
		return nil
	}
	return slices.Collect(maps.Keys(readScope(scope).recorded))
}

// requestsForObject returns requests for the ApplicationConfigurations that a workload or a Service may belong to, or for all of
// those that exist or that scopes have recorded when it is nil.
func (r *reconciler) requestsForObject(ctx context.Context, kind schema.GroupVersionKind, namespace string, changed *watchedObject) []reconcile.Request {
	if changed == nil {
		return r.requestsForAll(ctx)
	}
	workloads := []string{changed.name}
	if kind == serviceKind {
		for _, kind := range oamKinds {
			for _, w := range r.watches.list(kind, namespace, func(w *watchedObject) bool { return slices.Contains(w.services, changed.name) }) {
				workloads = appendNew(workloads, w.name)
			}
		}
	}
	var names []string
	for _, name := range workloads {
		names = append(names, r.listNames(ctx, client.InNamespace(namespace), client.MatchingFields{indexWorkloads: name})...)
	}
	if changed.application != "" {
		names = append(names, changed.application)
	}
	return requests(namespace, names)
}

func (r *reconciler) requestsForAll(ctx context.Context) (all []reconcile.Request) {
	list := newList(ApplicationConfigurationKind)
	var scopes corev1alpha2.HealthScopeList
	if err := errors.Join(r.cached.List(ctx, list, client.UnsafeDisableDeepCopy), r.client.List(ctx, &scopes, client.UnsafeDisableDeepCopy)); err != nil {
		log.FromContext(ctx).Error(err, "Cannot list all ApplicationConfigurations")
	}
	for i := range list.Items {
		all = append(all, requests(list.Items[i].GetNamespace(), []string{list.Items[i].GetName()})...)
	}
	for i := range scopes.Items {
		all = append(all, requests(scopes.Items[i].Namespace, recordedIn(&scopes.Items[i]))...)
	}
	return all
}

// listNames returns the names of the ApplicationConfigurations that match the options.
func (r *reconciler) listNames(ctx context.Context, options ...client.ListOption) (names []string) {
	list := newList(ApplicationConfigurationKind)
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
