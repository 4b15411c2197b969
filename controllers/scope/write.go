package scope

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/pruning"
)

// fieldOwner is the field manager of the status.
const fieldOwner = client.FieldOwner("healthscope-controller")

// writeTimeout is the deadline of writing one status.
const writeTimeout = 30 * time.Second

// missingRetry is the time until a scope that is gone is reconciled again. By then the cache has the deletion.
const missingRetry = time.Second

// write writes the status of a scope. A wait other than zero means that the status was not written or was
// pruned, and is the time until the next attempt. The summary shows whether the API server prunes the status,
// if it is part of what was sent, because KubeVela's CRD does not have it.
func (r *reconciler) write(ctx context.Context, e *scopeEntry, before, after *corev1alpha2.HealthScope, now time.Time) (wait time.Duration, err error) {
	if wait := max(e.conflict.wait(now), r.Guard.Allow(now)); wait > 0 {
		return wait, nil
	}
	r.recordConflict(ctx, e, before, now)
	sent := after.Status.Summary
	deadline, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	err = r.client.Status().Patch(deadline, after, client.MergeFrom(before), fieldOwner)
	switch {
	case apierrors.IsNotFound(err):
		return r.handleNotFound(ctx, before, now)
	case err != nil:
		return 0, errors.Wrapf(err, "cannot write the status of HealthScope %q", client.ObjectKeyFromObject(before))
	}
	if after.Status.Summary != sent && before.Status.Summary != sent {
		r.reportPruned(ctx, now, "the CRD prunes status.summary")
		return pruning.Interval, nil
	}
	// An API server also prunes its response, even of fields that were stored before.
	if after.Status.Summary == sent && r.Guard.Kept() {
		log.FromContext(ctx).Info("The CRD no longer prunes the status of HealthScopes")
		r.enqueueAll(ctx)
	}
	e.written = after.DeepCopy()
	return 0, nil
}

// handleNotFound handles a write that the API server has answered with NotFound: either the scope is gone and the cache does
// not have the deletion yet, or the CRD has no status. The response is the same for both.
func (r *reconciler) handleNotFound(ctx context.Context, scope *corev1alpha2.HealthScope, now time.Time) (wait time.Duration, err error) {
	deadline, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	var list corev1alpha2.HealthScopeList
	err = r.apiReader.List(deadline, &list, client.InNamespace(scope.Namespace), client.MatchingFields{"metadata.name": scope.Name})
	if err != nil {
		return 0, errors.Wrapf(err, "cannot find out whether HealthScope %q still exists", client.ObjectKeyFromObject(scope))
	}
	if !slices.ContainsFunc(list.Items, func(s corev1alpha2.HealthScope) bool { return s.UID == scope.UID }) {
		return missingRetry, nil
	}
	r.reportPruned(ctx, now, "the API server does not serve their status")
	return pruning.Interval, nil
}

// reportPruned reports that the API server does not keep a status.
func (r *reconciler) reportPruned(ctx context.Context, now time.Time, problem string) {
	if r.Guard.Pruned(now, problem) {
		log.FromContext(ctx).Error(r.Guard.Ready(), "Waiting for the CRD")
	}
}

// newer reports whether the scope that was written last is newer than the cached one.
func newer(written, cached *corev1alpha2.HealthScope) bool {
	if written == nil || written.UID != cached.UID {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(written.ResourceVersion, cached.ResourceVersion)
	return err == nil && order > 0
}

// sooner returns the shorter of two times to wait; zero means no limit.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return cmp.Or(a, b)
	}
	return min(a, b)
}
