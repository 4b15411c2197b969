package inventory

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/sync"
	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/controllers/scope"
	"github.com/healthscope/healthscope/healthscope"
)

// passes is an A&AI whose passes return an error, or nil.
type passes struct {
	begun []time.Time
	err   error
	// wait is how long the client sends no requests after an error.
	wait time.Duration
	// during is called in every pass.
	during func(ctx context.Context)
}

func (p *passes) Sync(ctx context.Context, _ aai.Tenant, changes func() sync.Change) (sync.Report, error) {
	changes()
	p.begun = append(p.begun, time.Now())
	if p.during != nil {
		p.during(ctx)
	}
	var e *aai.Error
	if errors.As(p.err, &e) && p.wait > 0 {
		e.NotBefore = time.Now().Add(p.wait)
	}
	return sync.Report{NextPass: time.Now().Add(10 * time.Minute)}, p.err
}

// reconcilerOf returns a reconciler that makes the passes, and its status.
func reconcilerOf(p *passes) (*reconciler[aai.Tenant], *Status) {
	registry := judgedScopes{shop: judged(placed(member("shop", "web", healthscope.Ready))...)}
	s := newStatus(filled(registry, nil, nil, configv1alpha1.SelectScoped))
	return newTenantReconciler(s, oneCluster{}, p, func(time.Duration) {}), s
}

// run reconciles for a while like a controller, in the bubble of a synctest, with a change in every interval; never if every is
// zero.
func run(t *testing.T, r *reconciler[aai.Tenant], every, length time.Duration) {
	t.Helper()
	end := time.Now().Add(length)
	next := time.Now()
	for change := time.Now(); next.Before(end); {
		<-time.After(time.Until(next))
		result, err := r.Reconcile(t.Context(), tenant)
		if err != nil || result.RequeueAfter <= 0 {
			t.Fatalf("got %+v, %v", result, err)
		}
		next = time.Now().Add(result.RequeueAfter)
		if change = change.Add(every); every > 0 && change.Before(next) {
			next = change
		}
	}
}

func failure(op aai.Op, status int) error {
	return fmt.Errorf("cannot synchronize: %w", &aai.Error{Op: op, Status: status, Kind: aai.Retry})
}

func TestPassBackoff(t *testing.T) {
	const often = 10 * time.Millisecond
	down := failure(aai.OpUpdate, 0)
	cases := map[string]struct {
		err                 error
		wait, every, length time.Duration
		least, most         int
	}{
		"nothing to do":                         {length: time.Hour, least: 6, most: 7},
		"changes without an end":                {every: often, length: 10 * time.Second, least: 40, most: 51},
		"A&AI is down":                          {err: down, length: time.Hour, least: 1600, most: 1900},
		"A&AI is down, and changes":             {err: down, every: 100 * time.Millisecond, length: time.Hour, least: 1600, most: 1900},
		"A&AI was not asked":                    {err: &aai.Error{Op: aai.OpPut, Kind: aai.Retry, NotSent: true}, wait: 500 * time.Millisecond, length: time.Minute, least: 119, most: 121},
		"it cannot be listed":                   {err: failure(aai.OpList, http.StatusInternalServerError), every: 100 * time.Millisecond, length: time.Hour, least: 1600, most: 1900},
		"there is no pass":                      {err: errors.New("a document does not belong here"), every: 100 * time.Millisecond, length: time.Hour, least: 1600, most: 1900},
		"A&AI is left alone for half an hour":   {err: failure(aai.OpPut, http.StatusTooManyRequests), wait: 30 * time.Minute, every: time.Second, length: time.Hour, least: 2, most: 3},
		"one resource fails":                    {err: failure(aai.OpPut, http.StatusInternalServerError), length: time.Hour, least: 1600, most: 1900},
		"one resource fails, and others change": {err: failure(aai.OpPut, http.StatusInternalServerError), every: often, length: time.Minute, least: 25, most: 40},
	}
	for title, c := range cases {
		t.Run(title, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &passes{err: c.err, wait: c.wait}
				r, _ := reconcilerOf(p)
				run(t, r, c.every, c.length)
				if n := len(p.begun); n < c.least || n > c.most {
					t.Errorf("%d passes in %s, want %d to %d", n, c.length, c.least, c.most)
				}
			})
		})
	}
}

func TestBackoffIsResetBySuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &passes{err: failure(aai.OpPut, 0)}
		r, _ := reconcilerOf(p)
		run(t, r, 0, time.Hour)
		p.err, p.begun = nil, nil
		run(t, r, 10*time.Millisecond, 2*time.Minute)
		if len(p.begun) < 200 {
			t.Errorf("%d passes in two minutes", len(p.begun))
		}
		p.err, p.begun = failure(aai.OpPut, 0), nil
		run(t, r, 0, 3*time.Second)
		if len(p.begun) < 3 {
			t.Errorf("%d tries in three seconds: the outage before counts no more", len(p.begun))
		}
	})
}

func TestPassIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		r, status := reconcilerOf(&passes{err: failure(aai.OpPut, 0), during: func(ctx context.Context) { <-ctx.Done() }})
		if _, err := r.Reconcile(t.Context(), tenant); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took != tenantTimeout {
			t.Errorf("the pass took %s", took)
		}
		if got := status.Report(shop, placed(member("shop", "web", healthscope.Ready)), nil); got.Reason != scope.ReasonUnavailable {
			t.Errorf("got %+v", got)
		}
	})
}

func TestCancelledPassIsNotReported(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := &passes{err: failure(aai.OpPut, 0), during: func(context.Context) { cancel() }}
	r, status := reconcilerOf(p)
	if result, err := r.Reconcile(ctx, tenant); err != nil || result.RequeueAfter != 0 {
		t.Errorf("got %+v, %v", result, err)
	}
	want := &scope.InventoryReport{Waiting: true}
	if diff := cmp.Diff(want, status.Report(shop, placed(member("shop", "web", healthscope.Ready)), nil)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
