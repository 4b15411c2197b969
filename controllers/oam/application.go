package oam

import (
	"context"
	"reflect"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/kubevela"
)

const (
	// applicationFieldOwner is the field manager of the health in Applications.
	applicationFieldOwner = client.FieldOwner("healthscope-controller")
	// indexApplications is the index of HealthScopes by the Applications whose health their status holds.
	indexApplications = "healthscope.applications"

	eventHealthNotWritten = "HealthNotWritten"
	actionWriteHealth     = "WriteHealth"
)

// ApplicationOptions configure SetupApplications.
type ApplicationOptions struct {
	// Metrics receives the metrics.
	Metrics prometheus.Registerer
}

// applicationReconciler writes the health that scopes report into KubeVela's Applications, once KubeVela's workflow has ended.
type applicationReconciler struct {
	client client.Client
	// cached reads from the cache, unstructured objects too.
	cached   client.Reader
	recorder events.EventRecorder
	writes   *prometheus.CounterVec
}

// SetupApplications adds the controller that writes health into KubeVela's Applications to a manager.
func SetupApplications(ctx context.Context, mgr ctrl.Manager, o ApplicationOptions) error {
	r := &applicationReconciler{client: mgr.GetClient(), cached: mgr.GetCache(), recorder: mgr.GetEventRecorder("healthscope-controller"), writes: newWrites()}
	if err := o.Metrics.Register(r.writes); err != nil {
		return errors.Wrap(err, "cannot register metrics")
	}
	err := mgr.GetFieldIndexer().IndexField(ctx, &corev1alpha2.HealthScope{}, indexApplications, applicationsOf)
	if err != nil {
		return errors.Wrap(err, "cannot index HealthScopes by Applications")
	}
	err = ctrl.NewControllerManagedBy(mgr).
		Named("application").
		For(NewApplication()).
		Watches(&corev1alpha2.HealthScope{}, handler.EnqueueRequestsFromMapFunc(requestsForApplications),
			builder.WithPredicates(predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return !equalHealth(e.ObjectOld, e.ObjectNew) }})).
		Complete(r)
	return errors.Wrap(err, "cannot set up the controller of Applications")
}

// NewApplication returns an empty Application with its kind set.
func NewApplication() *unstructured.Unstructured { return newObject(kubevela.ApplicationKind) }

// TransformApplication is the cache transform for Applications: it keeps the fields that the controller of SetupApplications reads.
func TransformApplication(object any) (any, error) {
	if u, ok := object.(*unstructured.Unstructured); ok {
		delete(u.Object, "spec")
		u.SetManagedFields(nil)
		u.SetAnnotations(nil)
		status, _ := u.Object["status"].(map[string]any)
		for field := range status {
			if !slices.Contains([]string{"status", "services", "conditions", "workflow"}, field) {
				delete(status, field)
			}
		}
	}
	return object, nil
}

// applicationsOf returns the names of the Applications whose health the status of a scope holds.
func applicationsOf(o client.Object) (names []string) {
	if scope, ok := o.(*corev1alpha2.HealthScope); ok {
		for _, app := range scope.Status.AppHealthConditions {
			names = appendNew(names, app.AppName)
		}
	}
	return names
}

// equalHealth reports whether two versions of a scope hold the same health of Applications.
func equalHealth(a, b client.Object) bool {
	before, ok1 := a.(*corev1alpha2.HealthScope)
	after, ok2 := b.(*corev1alpha2.HealthScope)
	return ok1 && ok2 && before.Status.Truncated == after.Status.Truncated && hasConflict(before) == hasConflict(after) &&
		reflect.DeepEqual(before.Status.AppHealthConditions, after.Status.AppHealthConditions)
}

// hasConflict reports whether another controller also writes the status of a scope: that controller writes the health of Applications too.
func hasConflict(scope *corev1alpha2.HealthScope) bool {
	return meta.IsStatusConditionTrue(scope.Status.Conditions, corev1alpha2.ConditionStatusConflict)
}

// requestsForApplications returns requests for the Applications whose health a scope holds.
func requestsForApplications(_ context.Context, scope client.Object) []reconcile.Request {
	return requests(scope.GetNamespace(), applicationsOf(scope))
}

// Reconcile writes the health that scopes report into an Application, if it differs.
func (r *applicationReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	before := NewApplication()
	if err := r.cached.Get(ctx, req.NamespacedName, before); err != nil {
		return ctrl.Result{}, errors.Wrapf(client.IgnoreNotFound(err), "cannot get Application %q", req.NamespacedName)
	}
	if before.GetDeletionTimestamp() != nil || !kubevela.AwaitsHealth(before.Object) {
		return ctrl.Result{}, nil
	}
	var scopes corev1alpha2.HealthScopeList
	if err := r.client.List(ctx, &scopes, client.InNamespace(req.Namespace), client.MatchingFields{indexApplications: req.Name}); err != nil {
		return ctrl.Result{}, errors.Wrapf(err, "cannot list the HealthScopes of Application %q", req.NamespacedName)
	}
	if slices.ContainsFunc(scopes.Items, func(s corev1alpha2.HealthScope) bool { return hasConflict(&s) }) {
		return ctrl.Result{}, nil
	}
	after := before.DeepCopy()
	if err := kubevela.SetHealth(after.Object, kubevela.JudgementOf(req.Name, scopes.Items), time.Now()); err != nil {
		return ctrl.Result{}, reconcile.TerminalError(errors.Wrapf(err, "cannot read Application %q", req.NamespacedName))
	}
	if reflect.DeepEqual(before.Object, after.Object) {
		return ctrl.Result{}, nil
	}
	return r.write(ctx, before, after)
}

// write writes the health into an Application, unless the Application has changed since it was read.
func (r *applicationReconciler) write(ctx context.Context, before, after *unstructured.Unstructured) (ctrl.Result, error) {
	err := r.client.Status().Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), applicationFieldOwner)
	switch {
	case err == nil:
		r.writes.WithLabelValues(resultWritten).Inc()
		return ctrl.Result{}, nil
	case apierrors.IsConflict(err):
		r.writes.WithLabelValues(resultConflict).Inc()
		return ctrl.Result{RequeueAfter: conflictRetryInterval}, nil // The cache has not caught up, or KubeVela was first.
	case apierrors.IsNotFound(err) || ctx.Err() != nil:
	default:
		r.writes.WithLabelValues(resultRefused).Inc()
		r.recorder.Eventf(before, nil, corev1.EventTypeWarning, eventHealthNotWritten, actionWriteHealth, "%s", healthscope.Shorten("cannot write what HealthScopes say: "+err.Error(), maxMessage))
	}
	return ctrl.Result{}, errors.Wrapf(client.IgnoreNotFound(err), "cannot write the health of Application %q", client.ObjectKeyFromObject(before))
}
