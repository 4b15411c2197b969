package inventory

import (
	"context"
	"fmt"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
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
}

// Reconcile gathers what a tenant is to hold, has it written, and reports how far that went.
func (r *reconciler) Reconcile(ctx context.Context, tenant aai.Tenant) (ctrl.Result, error) {
	if err := r.gatherer.view.WaitSynced(ctx); err != nil {
		return ctrl.Result{}, errors.Wrap(err, "cannot wait for the bundles to be read")
	}
	w, err := r.gatherer.gather(ctx, tenant)
	if err != nil {
		return ctrl.Result{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, passTimeout, fmt.Errorf("the pass took longer than %s", passTimeout))
	defer cancel()
	report, err := r.syncer.Sync(ctx, tenant, w.documents, w.holds)
	r.ledger.put(tenant, outcome{report: report, err: err, partial: w.partial})
	if err != nil {
		return r.later(ctx, tenant, err)
	}
	if written := len(report.Acknowledged); written > 0 {
		log.FromContext(ctx).Info("Inventory written", "tenant", tenant.String(), "written", written, "synced", report.Synced, "pending", report.Pending, "failed", report.Failed)
	}
	return ctrl.Result{RequeueAfter: max(time.Until(report.NextPass), minPause)}, nil
}

// later decides when to try again after a pass that could not finish: when A&AI
// asked for it, else with growing pauses.
func (r *reconciler) later(ctx context.Context, tenant aai.Tenant, err error) (ctrl.Result, error) {
	var aaiErr *aai.Error
	if errors.As(err, &aaiErr) && aaiErr.RetryAfter > 0 {
		log.FromContext(ctx).Info("Inventory is to be tried again later", "tenant", tenant.String(), "after", aaiErr.RetryAfter, "reason", err.Error())
		return ctrl.Result{RequeueAfter: aaiErr.RetryAfter}, nil
	}
	return ctrl.Result{}, err
}
