package oam

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/healthscope"
)

const (
	// timeout is the deadline of one reconcile.
	timeout = time.Minute
	// conflictRetryInterval is the time until the next attempt after a write conflict.
	conflictRetryInterval = 100 * time.Millisecond
)

// reconciler keeps the references in scopes and the labels of Services up to date for ApplicationConfigurations.
type reconciler struct {
	client client.Client
	// cached reads from the cache, unstructured objects too.
	cached client.Reader
	// watches hold the workloads, and the Services if these are to be labelled.
	watches  *watches
	recorder events.EventRecorder
}

// Reconcile reads the objects that concern an ApplicationConfiguration, decides what to change, writes it, and reports the result
// in a condition.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if synced, err := r.watches.synced(); err != nil || !synced {
		return ctrl.Result{}, err // Once all kinds are synced, all ApplicationConfigurations are enqueued.
	}
	g, err := r.gather(ctx, req.NamespacedName)
	if err != nil {
		return ctrl.Result{}, errors.Wrapf(err, "cannot gather what belongs to ApplicationConfiguration %q", req.NamespacedName)
	}
	d := decide(g)
	err = r.apply(ctx, req.NamespacedName, d)
	if err == nil {
		err = r.report(ctx, g.application, d)
	}
	if isOutdated(err) {
		return ctrl.Result{RequeueAfter: conflictRetryInterval}, nil // The cache has not caught up, or another writer was first.
	}
	return ctrl.Result{}, errors.Wrapf(err, "cannot join the scopes of ApplicationConfiguration %q", req.NamespacedName)
}

// apply writes scopes and the labels of Services.
func (r *reconciler) apply(ctx context.Context, application types.NamespacedName, d decision) error {
	var errs []error
	for _, c := range d.scopes {
		errs = append(errs, errors.Wrapf(r.writeScope(ctx, c.before, c.next), "cannot write HealthScope %q", c.before.Name))
	}
	for _, c := range d.labels {
		errs = append(errs, errors.Wrapf(r.label(ctx, application, c), "cannot label Service %q", c.service.name))
	}
	for _, err := range errs {
		if err != nil && !isOutdated(err) {
			return err // It is more useful than that an object has changed.
		}
	}
	return errors.Join(errs...)
}

// isOutdated reports whether a write was refused because the object has changed since it was read. A field of another owner is refused with
// the same status code, but reading again does not help.
func isOutdated(err error) bool {
	return apierrors.IsConflict(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict)
}

// writeScope writes only the references of a scope and the annotation that records them, unless the scope has changed since it was read.
func (r *reconciler) writeScope(ctx context.Context, before *corev1alpha2.HealthScope, next scopeState) error {
	scope := before.DeepCopy()
	if scope.Spec.WorkloadReferences = next.references; next.references == nil {
		scope.Spec.WorkloadReferences = []corev1alpha2.WorkloadReference{}
	}
	if annotation := next.annotation(); annotation == "" {
		delete(scope.Annotations, AnnotationReferences)
	} else {
		metav1.SetMetaDataAnnotation(&scope.ObjectMeta, AnnotationReferences, annotation)
	}
	return client.IgnoreNotFound(r.client.Patch(ctx, scope, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
}

// label replaces the labels of scopes that the field manager of an ApplicationConfiguration owns on a Service.
func (r *reconciler) label(ctx context.Context, application types.NamespacedName, c labelChange) error {
	labels := map[string]any{}
	for _, scope := range c.scopes {
		labels[corev1alpha2.LabelScopePrefix+scope] = "true"
	}
	u := newObject(serviceKind)
	u.Object["metadata"] = map[string]any{
		"namespace": application.Namespace, "name": c.service.name, "labels": labels,
		"uid": string(c.service.uid), // This keeps the API server from creating a Service that is gone.
	}
	return r.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(fieldManager(application.Name)))
}

// fieldManager returns the field manager of the labels of an ApplicationConfiguration.
func fieldManager(name string) string {
	if len(name) > maxFieldManagerName {
		sum := sha256.Sum256([]byte(name))
		name = hex.EncodeToString(sum[:16])
	}
	return fieldManagerPrefix + name
}

// report writes the condition of an ApplicationConfiguration if it differs, and then records an event if it is False.
func (r *reconciler) report(ctx context.Context, object *unstructured.Unstructured, d decision) error {
	if object == nil {
		return nil
	}
	var was map[string]any
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions") // Conditions of another form are not this controller's.
	conditions = slices.DeleteFunc(conditions, func(item any) bool {
		c, ok := item.(map[string]any)
		if ok = ok && c["type"] == ConditionJoined; ok {
			was = c
		}
		return ok
	})
	condition := d.condition(was)
	same := func(field string) bool {
		before, _ := was[field].(string)
		after, _ := condition[field].(string)
		return before == after
	}
	if same("status") && same("reason") && same("message") {
		return nil // The other fields do not count: another writer may set them again.
	}
	if condition != nil {
		conditions = append(conditions, condition)
	}
	before := object.DeepCopy()
	if err := unstructured.SetNestedSlice(object.Object, conditions, "status", "conditions"); err != nil {
		return errors.Wrap(err, "cannot set the condition")
	}
	if err := r.client.Status().Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return client.IgnoreNotFound(errors.Wrap(err, "cannot write the condition"))
	}
	if d.status == conditionStatusFalse {
		r.recorder.Eventf(object, nil, corev1.EventTypeWarning, d.reason, actionJoin, "%s", condition["message"])
	}
	return nil
}

// condition returns the condition for the decision; nil for none. It keeps the transition time of the condition before while the
// status is the same.
func (d decision) condition(before map[string]any) map[string]any {
	if d.status == "" {
		return nil
	}
	c := map[string]any{"type": ConditionJoined, "status": d.status, "reason": d.reason, "lastTransitionTime": metav1.Now().UTC().Format(time.RFC3339)}
	if d.message != "" {
		c["message"] = healthscope.Shorten(d.message, maxMessage)
	}
	if before["status"] == d.status {
		c["lastTransitionTime"] = before["lastTransitionTime"]
	}
	return c
}
