package inventory

import (
	"context"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/sync"
	"github.com/healthscope/healthscope/controllers/tracing"
)

// passTimeout bounds one pass over a tenant, most of which is to read it in full when that is due; to write takes
// sync.Options.WriteTime of it at most. What is not done by then is done in the next one.
const passTimeout = 30 * time.Minute

// syncer is the part of sync.Syncer that the reconciler uses.
type syncer interface {
	Sync(ctx context.Context, tenant aai.Tenant, changes func() sync.Change) (sync.Report, error)
}

// reconciler keeps the tenants of A&AI in sync with the judgements.
type reconciler struct {
	inputs   *inputs
	clusters clusters
	syncer   syncer
	status   *Status
	lag      func(time.Duration)
	backoffs *passBackoffs[aai.Tenant]
}

// Reconcile writes what has changed of a tenant, and reports how far that went.
func (r *reconciler) Reconcile(ctx context.Context, tenant aai.Tenant) (ctrl.Result, error) {
	backoff := r.backoffs.of(tenant)
	if early := time.Until(backoff.notBefore); early > 0 {
		return ctrl.Result{RequeueAfter: early}, nil
	}
	if err := r.clusters.WaitSynced(ctx); err != nil {
		return ctrl.Result{}, nil //nolint:nilerr // The program is stopping.
	}
	var last change
	report, err := r.sync(ctx, tenant, func() sync.Change {
		n := r.inputs.take(tenant, r.clusters)
		n.ownerChanged = append(n.ownerChanged, last.ownerChanged...)
		last = n
		return n.Change
	})
	if ctx.Err() != nil {
		return ctrl.Result{}, nil //nolint:nilerr // The program is stopping, which says nothing about A&AI.
	}
	for _, lag := range report.Lags {
		r.lag(lag)
	}
	r.status.recordPass(tenant, last, report, err, time.Now())
	logger := log.FromContext(ctx).WithValues("tenant", tenant.String(), "synced", report.Synced, "pending", report.Pending, "failed", report.Failed, "deletionsHeld", len(report.Skipped))
	if written := len(report.Acknowledged); written > 0 {
		logger.Info("Inventory written", "written", written)
	}
	if err != nil {
		tracing.MarkFailed(ctx)
		retry := backoff.failed(err, time.Now())
		logFailed(logger, err, "Inventory not up to date", retry)
		return ctrl.Result{RequeueAfter: retry}, nil
	}
	backoff.succeeded(time.Now())
	return ctrl.Result{RequeueAfter: max(time.Until(report.NextPass), minPause)}, nil
}

// sync makes one pass over a tenant.
func (r *reconciler) sync(ctx context.Context, tenant aai.Tenant, changes func() sync.Change) (sync.Report, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, passTimeout, fmt.Errorf("the pass took longer than %s", passTimeout))
	defer cancel()
	return r.syncer.Sync(ctx, tenant, changes)
}
