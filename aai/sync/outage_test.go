package sync_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/client"
	"github.com/healthscope/healthscope/aai/plan"
	"github.com/healthscope/healthscope/aai/simulator"
	aaisync "github.com/healthscope/healthscope/aai/sync"
)

// TestOutage asserts that passes send few requests while A&AI is down, and that each object is written once after that.
func TestOutage(t *testing.T) {
	cases := map[string]struct {
		fault simulator.Fault
		kind  aai.ErrorKind
	}{
		"no backend":         {simulator.Fault{Status: http.StatusServiceUnavailable}, aai.Retry},
		"connection dropped": {simulator.Fault{Drop: simulator.DropBeforeCommit}, aai.Retry},
		"a page of a proxy":  {simulator.Fault{Status: http.StatusOK}, aai.Retry},
		"foreign JSON":       {simulator.Fault{Status: http.StatusOK, Body: `{"status":"UP"}`}, aai.Retry},
		"an empty success":   {simulator.Fault{Status: http.StatusAccepted, Empty: true}, aai.Retry},
		"wrong password":     {simulator.Fault{Status: http.StatusUnauthorized}, aai.Misconfigured},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := start(t)
			w.sync(many(100, "Ready")...)
			w.advance(time.Second)
			w.faults(c.fault)
			var r outcome
			for i := range 10 { // every object flips ten times while A&AI is down
				var err error
				requests := w.requests(func() { r, err = w.trySync(many(100, []string{"Failed", "Pending"}[i%2])...) })
				expectKind(t, err, c.kind)
				if n := len(sent(requests)); n > aaisync.Parallelism {
					t.Errorf("%d requests in one pass: A&AI is down", n)
				}
			}
			if r.Pending != 100 || r.Objects[key("099")].Message == "" {
				t.Errorf("%d pending: %+v", r.Pending, r.Objects[key("099")])
			}
			w.ClearFaults()
			requests := w.requests(func() { r = w.sync(many(100, "Failed")...) })
			if n := len(writes(requests)); n != 100 || r.Synced != 100 {
				t.Errorf("%d writes, %d synced; want 100", n, r.Synced)
			}
			w.expectSync(nil, many(100, "Failed")...)
		})
	}
}

func TestOutageBeforeFirstList(t *testing.T) {
	w := start(t)
	w.faults(simulator.Fault{PathPrefix: "/aai/v32" + tenant.Path(), Status: http.StatusBadGateway, Count: 1})
	w.expect([]string{"GET"}, func() {
		r, err := w.trySync(document("a", "Ready"))
		expectKind(t, err, aai.Retry)
		w.expectObjects(map[string]string{"a": "Pending NotTried"}, r)
	})
	w.expectSync([]string{"GET", "PUT a"}, document("a", "Ready"))
}

// TestHaltedPassReportsOnlyWhatHasChanged asserts that a pass that A&AI does not let begin costs nothing for objects that wait already. The
// error of each pass has another text.
func TestHaltedPassReportsOnlyWhatHasChanged(t *testing.T) {
	w := start(t)
	w.faults(simulator.Fault{Status: http.StatusServiceUnavailable})
	for _, c := range []struct {
		status  string // of one of three objects
		changed int
	}{{"Ready", 3}, {"Ready", 0}, {"Failed", 1}} {
		r, err := w.trySync(append(many(2, "Ready"), document("x", c.status))...)
		expectKind(t, err, aai.Retry)
		if len(r.Changed) != c.changed || r.Pending != 3 {
			t.Errorf("%d pending, changed: %v; want %d", r.Pending, r.Changed, c.changed)
		}
	}
}

// TestTenantIsReadAgainAfterOutage asserts that the syncer does not rely on its state after an outage, because A&AI may have
// been restored from an older backup.
func TestTenantIsReadAgainAfterOutage(t *testing.T) {
	w := start(t)
	w.connect("http://aai.example", w, client.NewBreaker(0, w.clock))
	w.sync(many(2, "Ready")...)
	w.faults(simulator.Fault{Status: http.StatusServiceUnavailable, Count: 1})
	_, err := w.trySync(document("000", "Failed"), document("001", "Ready"))
	expectKind(t, err, aai.Retry)
	w.others("delete", key("001").Path(), nil) // The backup does not have it.
	w.advance(time.Minute)
	w.sync(document("000", "Failed"), document("001", "Ready"))
	w.expectStored(map[string][]string{"000": {"hs/status=Failed"}, "001": {"hs/status=Ready"}})
}

// TestWriteWithoutResponse asserts that a document is read before it is written again. A&AI has done the write.
func TestWriteWithoutResponse(t *testing.T) {
	cases := map[string]struct {
		before, desired, next string // the desired state in three passes, of which the second gets no response; empty for none
		want                  []string
	}{
		"create":                                 {"", "Ready", "Ready", []string{"GET a"}},
		"create of what is not desired any more": {"", "Ready", "", []string{"GET a", "DELETE a"}},
		"change":                                 {"Ready", "Failed", "Failed", []string{"GET a"}},
		"change, and back":                       {"Ready", "Failed", "Ready", []string{"GET a", "UPDATE a"}},
		"delete":                                 {"Ready", "", "", []string{"GET a"}},
		"delete, and back":                       {"Ready", "", "Ready", []string{"GET a", "PUT a"}},
	}
	desired := func(status string) []aai.Document {
		if status == "" {
			return nil
		}
		return []aai.Document{document("a", status)}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := start(t)
			w.sync(desired(c.before)...)
			w.advance(time.Second)
			w.faults(simulator.Fault{Method: http.MethodPut, Drop: simulator.DropAfterCommit}, simulator.Fault{Method: http.MethodDelete, Drop: simulator.DropAfterCommit})
			r, err := w.trySync(desired(c.desired)...)
			expectKind(t, err, aai.Retry)
			if len(r.Acknowledged) > 0 {
				t.Errorf("acknowledged: %v", r.Acknowledged)
			}
			w.ClearFaults()
			w.expectSync(c.want, desired(c.next)...)
			if got := w.statesOf()["a"]; got != c.next {
				t.Errorf("A&AI has %q, want %q", got, c.next)
			}
			w.expectSync(nil, desired(c.next)...)
		})
	}
}

func TestCancelledPassEnds(t *testing.T) {
	w := start(t)
	ctx, cancel := context.WithCancel(t.Context())
	var n atomic.Int32
	w.intercept = func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodPost {
			n.Add(1)
			cancel()
		}
		return passOn()
	}
	_, err := w.pass(ctx, documents(many(300, "Ready")...), plan.Guards{})
	if !errors.Is(err, context.Canceled) || n.Load() > aaisync.Parallelism+1 {
		t.Errorf("%d requests, %v", n.Load(), err)
	}
	w.intercept = nil
	if r := w.sync(many(300, "Ready")...); r.Synced != 300 {
		t.Errorf("%d synced", r.Synced)
	}
}

// TestCancelledPassDoesNotWaitForAnother cancels a pass that waits for another one, which gets no response to its probe.
func TestCancelledPassDoesNotWaitForAnother(t *testing.T) {
	syncTenant := func(id string) func(context.Context, *world) error {
		return func(ctx context.Context, w *world) error {
			_, err := w.syncer.Sync(ctx, aai.Tenant{CloudOwner: "o", CloudRegionID: "r", TenantID: id}, inTurn())
			return err
		}
	}
	syncModules := func(ctx context.Context, w *world) error {
		_, err := w.syncer.SyncModules(ctx, "vnf-1", map[aai.VFModule]aai.OperationalStatus{module("a"): in})
		return err
	}
	cases := map[string]struct {
		first, second func(context.Context, *world) error
	}{
		`cannot synchronize tenant "o/r/t": context canceled`:                     {syncTenant("t"), syncTenant("t")},
		`cannot synchronize the modules of generic-vnf "vnf-1": context canceled`: {syncModules, syncModules},
		`another probe is under way: context canceled`:                            {syncTenant("t"), syncTenant("t2")},
	}
	for want, c := range cases {
		t.Run(want, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := start(t)
				leave, first, second := make(chan struct{}), make(chan error, 1), make(chan error, 1)
				w.intercept = func(*http.Request) (*http.Response, error) {
					<-leave
					return answer(http.StatusBadGateway, nil, ""), nil
				}
				go func() { first <- c.first(t.Context(), w) }()
				synctest.Wait()
				ctx, cancel := context.WithCancel(t.Context())
				go func() { second <- c.second(ctx, w) }()
				synctest.Wait()
				cancel()
				if err := <-second; !errors.Is(err, context.Canceled) || !strings.HasSuffix(err.Error(), want) {
					t.Errorf("got %v, want %s", err, want)
				}
				close(leave)
				if err := <-first; aai.KindOf(err) != aai.Retry {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

// TestMisconfiguredErrorWinsOverRetry has two requests in parallel, of which one fails because of the configuration.
func TestMisconfiguredErrorWinsOverRetry(t *testing.T) {
	w := start(t)
	w.sync(document("x", "Ready")) // The tenant is known to exist.
	var both sync.WaitGroup
	both.Add(2)
	w.intercept = func(r *http.Request) (*http.Response, error) {
		both.Done()
		both.Wait()
		if mentions(r, "030") {
			return answer(http.StatusForbidden, nil, ""), nil
		}
		return answer(http.StatusTooManyRequests, http.Header{"Retry-After": {"30"}}, ""), nil
	}
	_, err := w.trySync(append(many(60, "Ready"), document("x", "Ready"))...)
	if e := failure(t, err, aai.Misconfigured); e.RetryAfter != 0 {
		t.Errorf("retry after %s, want none", e.RetryAfter)
	}
}
