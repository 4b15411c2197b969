package inventory

import (
	"context"
	"fmt"
	gosync "sync"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/plan"
	"github.com/healthscope/healthscope/aai/sync"
)

// passTimeout bounds one pass over a tenant. What is not done by then is done in the next one.
const passTimeout = 2 * time.Minute

// syncer is the part of sync.Syncer that the reconciler uses.
type syncer interface {
	Sync(ctx context.Context, tenant aai.Tenant, desired map[aai.Key]aai.Document, holds plan.Holds) (sync.Report, error)
}

// reconciler keeps one tenant of A&AI in step with what was judged.
type reconciler struct {
	gatherer *gatherer
	syncer   syncer
	ledger   *Ledger

	mu    gosync.Mutex // guards paces
	paces map[aai.Tenant]*pace
}

// Reconcile gathers what a tenant is to hold, has it written, and reports how far that went.
func (r *reconciler) Reconcile(ctx context.Context, tenant aai.Tenant) (ctrl.Result, error) {
	pace := r.pace(tenant)
	if early := time.Until(pace.notBefore); early > 0 {
		return ctrl.Result{RequeueAfter: early}, nil
	}
	if err := r.gatherer.bundles.WaitSynced(ctx); err != nil {
		return ctrl.Result{}, nil //nolint:nilerr // The program is stopping.
	}
	w, err := r.gatherer.gather(ctx, tenant)
	if err != nil {
		return ctrl.Result{}, err
	}
	report, err := r.sync(ctx, tenant, w)
	if ctx.Err() != nil {
		return ctrl.Result{}, nil //nolint:nilerr // The program is stopping, which says nothing about A&AI.
	}
	r.ledger.put(tenant, newOutcome(report, err, w.partial))
	logger := log.FromContext(ctx).WithValues("tenant", tenant.String(), "synced", report.Synced, "pending", report.Pending, "failed", report.Failed)
	if written := len(report.Acknowledged); written > 0 {
		logger.Info("Inventory written", "written", written)
	}
	if err != nil {
		retry := pace.failed(err, time.Now())
		logger.Error(err, "Inventory not up to date", "retryAfter", retry.String())
		return ctrl.Result{RequeueAfter: retry}, nil
	}
	pace.succeeded(time.Now())
	return ctrl.Result{RequeueAfter: max(time.Until(report.NextPass), minPause)}, nil
}

// sync makes one pass over a tenant.
func (r *reconciler) sync(ctx context.Context, tenant aai.Tenant, w wanted) (sync.Report, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, passTimeout, fmt.Errorf("the pass took longer than %s", passTimeout))
	defer cancel()
	return r.syncer.Sync(ctx, tenant, w.documents, w.holds)
}

// pace returns the pace of a tenant, which is reconciled by one worker at a time.
func (r *reconciler) pace(tenant aai.Tenant) *pace {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.paces[tenant]
	if p == nil {
		p = newPace()
		r.paces[tenant] = p
	}
	return p
}
