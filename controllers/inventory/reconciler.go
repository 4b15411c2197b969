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

// reconciler makes passes over the tenants of A&AI, or over the VNFs whose modules are kept, and spaces them: resources may
// change all the time, and A&AI may be down, and neither is a reason to ask it more often. Only one worker reconciles a key at
// a time.
type reconciler[K comparable] struct {
	// name begins the messages of the log.
	name     string
	clusters clusters
	timeout  time.Duration
	pass     func(context.Context, K) (outcome, error)
	failures workqueue.TypedRateLimiter[K]

	mu gosync.Mutex // guards the rest
	// notBefore is when a change may begin the next pass over a key.
	notBefore map[K]time.Time
}

// outcome is the outcome of a pass.
type outcome struct {
	// written is the number of objects that the pass has written.
	written int
	// next is when the next pass is due if nothing changes; zero for never.
	next time.Time
	// values are pairs for the log.
	values []any
	// record stores the outcome in the status.
	record func()
}

func newReconciler[K comparable](name string, c clusters, timeout time.Duration, pass func(context.Context, K) (outcome, error)) *reconciler[K] {
	return &reconciler[K]{
		name: name, clusters: c, timeout: timeout, pass: pass, notBefore: map[K]time.Time{},
		failures: workqueue.NewTypedItemExponentialFailureRateLimiter[K](minPause, maxPause),
	}
}

// Reconcile writes what has changed, and reports how far that went.
func (r *reconciler[K]) Reconcile(ctx context.Context, key K) (ctrl.Result, error) {
	r.mu.Lock()
	early := time.Until(r.notBefore[key])
	r.mu.Unlock()
	if early > 0 {
		return ctrl.Result{RequeueAfter: early}, nil
	}
	if err := r.clusters.WaitSynced(ctx); err != nil {
		return ctrl.Result{}, nil // The program is stopping.
	}
	passCtx, cancel := context.WithTimeoutCause(ctx, r.timeout, fmt.Errorf("the pass took longer than %s", r.timeout))
	defer cancel()
	o, err := r.pass(passCtx, key)
	if ctx.Err() != nil {
		return ctrl.Result{}, nil // The program is stopping, which says nothing about A&AI.
	}
	o.record()
	logger := log.FromContext(ctx).WithValues(o.values...)
	if o.written > 0 {
		logger.Info(r.name+" written", "written", o.written)
	}
	pause := r.pauseAfter(key, o, err)
	if err != nil {
		tracing.MarkFailed(ctx)
		logger = logger.WithValues("retryAfter", pause.String())
		if aai.NotSent(err) { // The error before has said why.
			logger.V(1).Info(r.name+" not up to date", "cause", err.Error())
		} else {
			logger.Error(err, r.name+" not up to date")
		}
	} else if !o.next.IsZero() {
		pause = max(time.Until(o.next), pause)
	}
	return ctrl.Result{RequeueAfter: pause}, nil
}

// pauseAfter returns how long no other pass over a key may begin; zero when there is none to come. After an error, that is
// when the client asks A&AI again, and after pauses that grow. Only answers of A&AI make them grow, and not that the client
// did not ask.
func (r *reconciler[K]) pauseAfter(key K, o outcome, err error) time.Duration {
	pause := minPause
	if err == nil {
		r.failures.Forget(key)
	} else if !aai.NotSent(err) {
		pause = r.failures.When(key)
	}
	now := time.Now()
	var e *aai.Error
	if errors.As(err, &e) {
		pause = max(pause, e.NotBefore.Sub(now))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && o.next.IsZero() {
		delete(r.notBefore, key)
		return 0
	}
	r.notBefore[key] = now.Add(pause)
	return pause
}

// tenantSyncer is the part of sync.Syncer that passes over tenants use.
type tenantSyncer interface {
	Sync(ctx context.Context, tenant aai.Tenant, changes func() sync.Change) (sync.Report, error)
}

// newTenantReconciler returns the reconciler of tenants. lag is called with the lag of each change that was written.
func newTenantReconciler(s *Status, c clusters, syncer tenantSyncer, lag func(time.Duration)) *reconciler[aai.Tenant] {
	return newReconciler("Inventory", c, tenantTimeout, func(ctx context.Context, tenant aai.Tenant) (outcome, error) {
		var last change
		report, err := syncer.Sync(ctx, tenant, func() sync.Change {
			n := s.inputs.take(tenant, c)
			n.ownerChanged = append(n.ownerChanged, last.ownerChanged...)
			last = n
			return n.Change
		})
		return outcome{
			written: len(report.Acknowledged), next: report.NextPass,
			values: []any{"tenant", tenant.String(), "synced", report.Synced, "pending", report.Pending, "failed", report.Failed, "deletionsHeld", len(report.Skipped)},
			record: func() {
				for _, each := range report.Lags {
					lag(each)
				}
				s.recordPass(tenant, last, report, err, time.Now())
			},
		}, err
	})
}

// moduleSyncer is the part of sync.Syncer that passes over the modules of VNFs use.
type moduleSyncer interface {
	SyncModules(ctx context.Context, vnfID string, desired map[aai.VFModule]aai.OperationalStatus) (sync.ModuleReport, error)
}

// newModuleReconciler returns the reconciler of the modules of VNFs.
func newModuleReconciler(s *Status, c clusters, syncer moduleSyncer) *reconciler[string] {
	return newReconciler("Modules", c, modulesTimeout, func(ctx context.Context, v string) (outcome, error) {
		desired, scopes := s.inputs.desiredModules(v)
		report, err := syncer.SyncModules(ctx, v, desired)
		o := outcome{
			written: report.Written, values: []any{"genericVnf", v},
			record: func() { s.recordModulesPass(v, scopes, report, err, time.Now()) },
		}
		if len(report.Modules) > 0 {
			o.next = report.NextPass
		}
		return o, err
	})
}
