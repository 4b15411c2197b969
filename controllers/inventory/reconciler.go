package inventory

import (
	"context"
	"fmt"
	gosync "sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/client"
	"github.com/healthscope/healthscope/aai/sync"
	"github.com/healthscope/healthscope/controllers/tracing"
)

const (
	// minPause is the time between two passes while all is well: changes that come in a burst share a pass.
	minPause = 200 * time.Millisecond
	// maxPause is the longest time between two passes that does not come from the client, which leaves A&AI alone for longer
	// when A&AI asked for that, or refuses the controller as such.
	maxPause = client.MaxPause
	// tenantTimeout bounds one pass over a tenant, most of which is to read it in full when that is due; to write takes
	// sync.Options.WriteTime of it at most. What is not done by then is done in the next one.
	tenantTimeout = 30 * time.Minute
	// modulesTimeout bounds one pass over the modules of a VNF.
	modulesTimeout = 2 * time.Minute
)

// target is what a pass is made over: a tenant of A&AI, or the modules of a VNF.
type target struct {
	tenant aai.Tenant
	// vnf is the id of the VNF; empty for a tenant.
	vnf string
}

// String returns the id of the VNF, or the tenant.
func (t target) String() string {
	if t.vnf != "" {
		return t.vnf
	}
	return t.tenant.String()
}

// syncer is the part of sync.Syncer that makes passes.
type syncer interface {
	Sync(ctx context.Context, tenant aai.Tenant, changes func() sync.Change) (sync.Report, error)
	SyncModules(ctx context.Context, vnfID string, desired map[aai.VFModule]aai.OperationalStatus) (sync.ModuleReport, error)
}

// reconciler makes passes over the tenants of A&AI, and over the VNFs whose modules are kept, and spaces them: resources may
// change all the time, and A&AI may be down, and neither is a reason to ask it more often. Only one worker reconciles a target
// at a time.
type reconciler struct {
	status   *Status
	clusters clusters
	syncer   syncer
	// observeLag is called with the lag of each change that was written.
	observeLag func(time.Duration)
	failures   workqueue.TypedRateLimiter[target]

	mu gosync.Mutex // guards the rest
	// notBefore is when a change may begin the next pass over a target.
	notBefore map[target]time.Time
}

// outcome is the outcome of a pass.
type outcome struct {
	// what begins the messages of the log, and values are pairs for it.
	what   string
	values []any
	// written is the number of objects that the pass has written.
	written int
	// next is when the next pass is due if nothing changes; zero for never.
	next time.Time
	// record stores the outcome in the status.
	record func()
}

func newReconciler(s *Status, c clusters, y syncer, observeLag func(time.Duration)) *reconciler {
	return &reconciler{
		status: s, clusters: c, syncer: y, observeLag: observeLag, notBefore: map[target]time.Time{},
		failures: workqueue.NewTypedItemExponentialFailureRateLimiter[target](minPause, maxPause),
	}
}

// Reconcile writes what has changed, and reports how far that went.
func (r *reconciler) Reconcile(ctx context.Context, at target) (ctrl.Result, error) {
	r.mu.Lock()
	early := time.Until(r.notBefore[at])
	r.mu.Unlock()
	if early > 0 {
		return ctrl.Result{RequeueAfter: early}, nil
	}
	if err := r.clusters.WaitSynced(ctx); err != nil {
		return ctrl.Result{}, nil // The program is stopping.
	}
	timeout, pass := tenantTimeout, r.syncTenant
	if at.vnf != "" {
		timeout, pass = modulesTimeout, r.syncModules
	}
	passCtx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("the pass took longer than %s", timeout))
	defer cancel()
	o, err := pass(passCtx, at)
	if ctx.Err() != nil {
		return ctrl.Result{}, nil // The program is stopping, which says nothing about A&AI.
	}
	o.record()
	logger := log.FromContext(ctx).WithValues(o.values...)
	if o.written > 0 {
		logger.Info(o.what+" written", "written", o.written)
	}
	pause := r.pauseAfter(at, o, err)
	if err != nil {
		tracing.MarkFailed(ctx)
		logger = logger.WithValues("retryAfter", pause.String())
		if aai.NotSent(err) { // The error before has said why.
			logger.V(1).Info(o.what+" not up to date", "cause", err.Error())
		} else {
			logger.Error(err, o.what+" not up to date")
		}
	} else if !o.next.IsZero() {
		pause = max(time.Until(o.next), pause)
	}
	return ctrl.Result{RequeueAfter: pause}, nil
}

// pauseAfter returns how long no other pass over a target may begin; zero when there is none to come. After an error, that is
// when the client asks A&AI again, and after pauses that grow. Only answers of A&AI make them grow, and not that the client
// did not ask.
func (r *reconciler) pauseAfter(at target, o outcome, err error) time.Duration {
	pause := minPause
	if err == nil {
		r.failures.Forget(at)
	} else if !aai.NotSent(err) {
		pause = r.failures.When(at)
	}
	now := time.Now()
	var e *aai.Error
	if errors.As(err, &e) {
		pause = max(pause, e.NotBefore.Sub(now))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && o.next.IsZero() {
		delete(r.notBefore, at)
		return 0
	}
	r.notBefore[at] = now.Add(pause)
	return pause
}

// syncTenant makes a pass over a tenant.
func (r *reconciler) syncTenant(ctx context.Context, at target) (outcome, error) {
	var last change
	report, err := r.syncer.Sync(ctx, at.tenant, func() sync.Change {
		n := r.status.inputs.take(at.tenant, r.clusters)
		n.ownerChanged = append(n.ownerChanged, last.ownerChanged...)
		last = n
		return n.Change
	})
	return outcome{
		what: "Inventory", written: len(report.Acknowledged), next: report.NextPass,
		values: []any{"tenant", at.tenant.String(), "synced", report.Synced, "pending", report.Pending, "failed", report.Failed, "deletionsHeld", len(report.Skipped)},
		record: func() {
			for _, lag := range report.Lags {
				r.observeLag(lag)
			}
			r.status.recordPass(at.tenant, last, report, err, time.Now())
		},
	}, err
}

// syncModules makes a pass over the modules of a VNF.
func (r *reconciler) syncModules(ctx context.Context, at target) (outcome, error) {
	desired, scopes := r.status.inputs.desiredModules(at.vnf)
	report, err := r.syncer.SyncModules(ctx, at.vnf, desired)
	o := outcome{
		what: "Modules", written: report.Written, values: []any{"genericVnf", at.vnf},
		record: func() { r.status.recordModulesPass(at.vnf, scopes, report, err, time.Now()) },
	}
	if len(report.Modules) > 0 {
		o.next = report.NextPass
	}
	return o, err
}
