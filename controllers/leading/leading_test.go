package leading

import (
	"context"
	"testing"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// lead begins a term and returns what ends it.
func lead(ctx context.Context, t *testing.T, g *Gate) (end func()) {
	t.Helper()
	term, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		g.serve(term)
	}()
	if _, stop, err := g.Wait(ctx); err != nil {
		t.Fatal(err)
	} else {
		stop()
	}
	return func() {
		cancel()
		<-ended
	}
}

func TestAReconcileIsCutOffWithItsTermAndDoneInTheNext(t *testing.T) {
	g := NewGate()
	entered, told := make(chan context.Context), make([]bool, 0)
	g.Subscribe(func(leads bool) { told = append(told, leads) })
	r := Reconciler(g, reconcile.TypedFunc[int](func(ctx context.Context, _ int) (reconcile.Result, error) {
		entered <- ctx
		<-ctx.Done()
		return reconcile.Result{}, ctx.Err()
	}))
	results := make(chan reconcile.Result, 1)
	begin := func() {
		go func() {
			result, err := r.Reconcile(t.Context(), 1)
			if err != nil {
				t.Error(err)
			}
			results <- result
		}()
	}
	begin()
	for term := range 3 {
		if g.Leads() {
			t.Fatalf("leads before term %d", term)
		}
		select {
		case <-entered:
			t.Fatal("reconciled by one that does not lead")
		default:
		}
		end := lead(t.Context(), t, g)
		<-entered
		end()
		if result := <-results; result.RequeueAfter == 0 {
			t.Error("what was cut off is not done again")
		}
		begin()
	}
	if len(told) != 6 || !told[0] || told[1] || !told[4] || told[5] {
		t.Errorf("told of terms: %v", told)
	}
	end := lead(t.Context(), t, g)
	<-entered
	end()
	<-results
}

func TestAManagerBeginsWithTheFirstTermAndStays(t *testing.T) {
	g := NewGate()
	lock := g.Lock()
	record, _, err := lock.Get(t.Context())
	if err != nil || record.HolderIdentity == "" || record.HolderIdentity == lock.Identity() {
		t.Fatalf("before the first term the lock is held by %q, %v", record.HolderIdentity, err)
	}
	lead(t.Context(), t, g)()
	if _, _, err := lock.Get(t.Context()); err == nil {
		t.Error("after the first term somebody holds the lock")
	}
	if err := lock.Create(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: lock.Identity()}); err != nil {
		t.Fatal(err)
	}
	if record, _, err = lock.Get(t.Context()); err != nil || record.HolderIdentity != lock.Identity() {
		t.Errorf("the manager loses the lock to %v, %v", record, err)
	}
}
