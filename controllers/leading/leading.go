// Package leading says whether this replica leads. A replica may lead, stop, and
// lead again, without a restart: what it knows stays warm meanwhile, and only what
// the leader alone may do waits.
//
// The controllers of a manager cannot be stopped and started again. So the manager
// has its runnables for leaders start when this replica leads for the first time,
// by Gate.Lock, and they never stop; what they do to others goes through the gate.
package leading

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// The times of leader election are those of Kubernetes' own programs.
const (
	leaseDuration = 15 * time.Second
	// RenewDeadline is how long the leader tries to renew its Lease before it stops leading.
	RenewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// Gate is open while this replica leads. A nil Gate is always open. It is safe for concurrent use.
type Gate struct {
	// serving is held as long as a term lasts, so that the next one begins after the end of the one before.
	serving sync.Mutex

	mu sync.Mutex // guards the rest
	// term ends when this replica does not lead any more; nil while it does not lead.
	term context.Context //nolint:containedctx // It is what the gate tells of.
	// began is closed when the next term begins, and first when the first one does.
	began, first chan struct{}
	notify       []func(leads bool)
}

// NewGate returns a gate that is closed.
func NewGate() *Gate {
	return &Gate{began: make(chan struct{}), first: make(chan struct{})}
}

// Run takes part in the election by a lock, again and again, until ctx ends. Then it gives the lock back. name is that of the metric.
func (g *Gate) Run(ctx context.Context, lock resourcelock.Interface, name string) error {
	for ctx.Err() == nil {
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: lock, Name: name, LeaseDuration: leaseDuration, RenewDeadline: RenewDeadline, RetryPeriod: retryPeriod, ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: g.serve, OnStoppedLeading: func() {}},
		})
		if err != nil {
			return err
		}
		elector.Run(ctx)
	}
	return nil
}

// serve keeps the gate open until the term ends.
func (g *Gate) serve(term context.Context) {
	g.serving.Lock()
	defer g.serving.Unlock()
	if term.Err() != nil {
		return // It was a short one.
	}
	g.tell(true)
	g.mu.Lock()
	g.term = term
	close(g.began)
	select {
	case <-g.first:
	default:
		close(g.first)
	}
	g.mu.Unlock()
	<-term.Done()
	g.mu.Lock()
	g.term, g.began = nil, make(chan struct{})
	g.mu.Unlock()
	g.tell(false)
}

func (g *Gate) tell(leads bool) {
	g.mu.Lock()
	notify := g.notify
	g.mu.Unlock()
	for _, f := range notify {
		f(leads)
	}
}

// Subscribe calls notify before each term begins, and after it has ended. It is to be called before Run.
func (g *Gate) Subscribe(notify func(leads bool)) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.notify = append(g.notify, notify)
}

// Leads reports whether this replica leads now.
func (g *Gate) Leads() bool {
	if g == nil {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.term != nil && g.term.Err() == nil
}

// Wait waits until this replica leads, and returns a context that ends when ctx does, when cancel is called, and when it leads no more.
func (g *Gate) Wait(ctx context.Context) (term context.Context, cancel context.CancelFunc, err error) {
	term, end := context.WithCancel(ctx)
	if g == nil {
		return term, end, nil
	}
	for {
		g.mu.Lock()
		now, began := g.term, g.began
		g.mu.Unlock()
		if now != nil {
			stop := context.AfterFunc(now, end)
			return term, func() { stop(); end() }, nil
		}
		select {
		case <-ctx.Done():
			end()
			return nil, nil, ctx.Err()
		case <-began:
		}
	}
}

// Reconciler returns a reconciler that waits with each request until this replica leads. What is under way when it stops leading is cut off.
func Reconciler[request comparable](g *Gate, next reconcile.TypedReconciler[request]) reconcile.TypedReconciler[request] {
	if g == nil {
		return next
	}
	return reconcile.TypedFunc[request](func(ctx context.Context, r request) (reconcile.Result, error) {
		term, cancel, err := g.Wait(ctx)
		if err != nil {
			return reconcile.Result{}, nil //nolint:nilerr // The program is stopping.
		}
		defer cancel()
		result, err := next.Reconcile(term, r)
		if term.Err() != nil && ctx.Err() == nil { // It was cut off, and is done in the next term.
			return reconcile.Result{RequeueAfter: retryPeriod}, nil
		}
		return result, err
	})
}
