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

// fieldOwner is the name under which status is written.
const fieldOwner = client.FieldOwner("healthscope-controller")

// writeTimeout is the deadline of writing one status.
const writeTimeout = 30 * time.Second

// missingRetry is when a scope that is gone is looked at again. By then the cache knows it.
const missingRetry = time.Second

// write writes the status of a scope. A wait means that it was not written, or
// was not kept, and when to try again. Whether the API server keeps what it is sent
// shows in the summary, which KubeVela's CRD does not know, when it is part of what was sent.
func (r *reconciler) write(ctx context.Context, e *entry, before, after *corev1alpha2.HealthScope, now time.Time) (wait time.Duration, err error) {
	if wait := max(e.conflict.wait(now), r.Guard.Allow(now)); wait > 0 {
		return wait, nil
	}
	r.noteConflict(ctx, e, before, now)
	wanted := after.Status.Summary
	deadline, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	err = r.client.Status().Patch(deadline, after, client.MergeFrom(before), fieldOwner)
	switch {
	case apierrors.IsNotFound(err):
		return r.notFound(ctx, before, now)
	case err != nil:
		return 0, errors.Wrapf(err, "cannot write the status of HealthScope %q", client.ObjectKeyFromObject(before))
	}
	if after.Status.Summary != wanted && before.Status.Summary != wanted {
		r.inVain(ctx, now, "the CRD prunes status.summary")
		return pruning.Interval, nil
	}
	// An API server drops what the CRD does not know from its answer too, also when it has it from before.
	if after.Status.Summary == wanted && r.Guard.Intact() {
		log.FromContext(ctx).Info("The CRD no longer prunes the status of HealthScopes")
		r.wake(ctx)
	}
	e.written = after.DeepCopy()
	return 0, nil
}

// notFound finds out, after a write was answered with NotFound, whether the scope is gone and the cache does not know it
// yet, or the CRD has no status: the API server says the same of both.
func (r *reconciler) notFound(ctx context.Context, scope *corev1alpha2.HealthScope, now time.Time) (wait time.Duration, err error) {
	deadline, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	var list corev1alpha2.HealthScopeList
	err = r.live.List(deadline, &list, client.InNamespace(scope.Namespace), client.MatchingFields{"metadata.name": scope.Name})
	if err != nil {
		return 0, errors.Wrapf(err, "cannot find out whether HealthScope %q still exists", client.ObjectKeyFromObject(scope))
	}
	if !slices.ContainsFunc(list.Items, func(s corev1alpha2.HealthScope) bool { return s.UID == scope.UID }) {
		return missingRetry, nil
	}
	r.inVain(ctx, now, "the API server does not serve their status")
	return pruning.Interval, nil
}

// inVain reports that the API server does not keep a status.
func (r *reconciler) inVain(ctx context.Context, now time.Time, what string) {
	if r.Guard.Pruned(now, what) {
		log.FromContext(ctx).Error(r.Guard.Ready(), "Waiting for the CRD")
	}
}

// newer reports whether what was written last is newer than what the cache holds.
func newer(written, cached *corev1alpha2.HealthScope) bool {
	if written == nil || written.UID != cached.UID {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(written.ResourceVersion, cached.ResourceVersion)
	return err == nil && order > 0
}

// sooner returns the shorter of two times to wait, of which zero means no time limit.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return cmp.Or(a, b)
	}
	return min(a, b)
}
