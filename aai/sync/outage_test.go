package sync_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/plan"
	"github.com/healthscope/healthscope/aai/simulator"
	aaisync "github.com/healthscope/healthscope/aai/sync"
)

func TestOutage(t *testing.T) {
	cases := map[string]simulator.Fault{
		"no backend":         {Status: http.StatusServiceUnavailable},
		"gateway timeout":    {Status: http.StatusGatewayTimeout},
		"connection dropped": {Drop: simulator.DropBeforeCommit},
	}
	for name, fault := range cases {
		t.Run(name, func(t *testing.T) {
			w := start(t)
			w.sync(many(100, "Ready")...)
			w.advance(time.Second)
			w.faults(fault)
			var r aaisync.Report
			for i := range 10 { // every object flips ten times while A&AI is down
				var err error
				requests := w.requests(func() { r, err = w.trySync(many(100, []string{"Failed", "Pending"}[i%2])...) })
				expectKind(t, err, aai.Retry)
				if len(requests) > aaisync.DefaultParallelism {
					t.Errorf("%d requests in one pass: A&AI is down", len(requests))
				}
			}
			if r.Pending != 100 || r.Objects[key("050")].Reason != aaisync.ReasonNotTried || r.Objects[key("050")].Message == "" {
				t.Errorf("%d pending: %+v", r.Pending, r.Objects[key("050")])
			}
			w.ClearFaults()
			requests := w.requests(func() { r = w.sync(many(100, "Failed")...) })
			writes := slices.DeleteFunc(requests, func(r string) bool { return strings.HasPrefix(r, "GET") })
			if len(writes) != 100 || r.Synced != 100 {
				t.Errorf("%d writes, %d synced; want 100", len(writes), r.Synced)
			}
			w.expect(nil, func() { w.sync(many(100, "Failed")...) })
		})
	}
}

func TestOutageBeforeTheFirstList(t *testing.T) {
	w := start(t)
	w.faults(simulator.Fault{Status: http.StatusBadGateway, Count: 1})
	w.expect([]string{"GET"}, func() {
		r, err := w.trySync(document("a", "Ready"))
		expectKind(t, err, aai.Retry)
		w.expectObjects(map[string]string{"a": "Pending NotTried"}, r)
	})
	w.expect([]string{"GET", "PUT a"}, func() { w.sync(document("a", "Ready")) })
}

func TestForgetSurvivesAnOutage(t *testing.T) {
	w := start(t)
	w.sync(document("a", "Ready"))
	w.othersDelete("a")
	w.syncer.Forget(tenant)
	w.faults(simulator.Fault{Status: http.StatusBadGateway, Count: 1})
	if _, err := w.trySync(document("a", "Ready")); err == nil {
		t.Error("no error")
	}
	w.expect([]string{"GET", "PUT a"}, func() { w.sync(document("a", "Ready")) })
}

func TestWritesThatAreDoneButNotAcknowledged(t *testing.T) {
	ready := document("a", "Ready")
	cases := map[string]struct {
		method  string
		before  []aai.Document
		desired []aai.Document
		next    []aai.Document // what is desired afterwards
		want    []string
		stored  map[string][]string
	}{
		"create": {
			method: http.MethodPut, desired: []aai.Document{ready}, next: []aai.Document{ready},
			want: []string{"GET a"}, stored: map[string][]string{"a": {"hs/status=Ready"}},
		},
		"create of what is not desired any more": {
			method: http.MethodPut, desired: []aai.Document{ready},
			want: []string{"GET a", "DELETE a"}, stored: map[string][]string{},
		},
		"change": {
			method: http.MethodPatch, before: []aai.Document{ready}, desired: []aai.Document{document("a", "Failed")}, next: []aai.Document{document("a", "Failed")},
			want: []string{"GET a"}, stored: map[string][]string{"a": {"hs/status=Failed"}},
		},
		"change, and back": {
			method: http.MethodPatch, before: []aai.Document{ready}, desired: []aai.Document{document("a", "Failed")}, next: []aai.Document{ready},
			want: []string{"GET a", "PATCH a"}, stored: map[string][]string{"a": {"hs/status=Ready"}},
		},
		"delete": {
			method: http.MethodDelete, before: []aai.Document{ready},
			want: []string{"GET a"}, stored: map[string][]string{},
		},
		"delete, and back": {
			method: http.MethodDelete, before: []aai.Document{ready}, next: []aai.Document{ready},
			want: []string{"GET a", "PUT a"}, stored: map[string][]string{"a": {"hs/status=Ready"}},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := start(t)
			w.sync(c.before...)
			w.advance(time.Second)
			w.faults(simulator.Fault{Method: c.method, Drop: simulator.DropAfterCommit, Count: 1})
			r, err := w.trySync(c.desired...)
			expectKind(t, err, aai.Retry)
			if len(r.Acknowledged) > 0 {
				t.Errorf("acknowledged: %v", acknowledged(r))
			}
			w.expect(c.want, func() { w.sync(c.next...) })
			w.expectStored(c.stored)
			w.expect(nil, func() { w.sync(c.next...) })
		})
	}
}

func TestRetryAfterIsPassedOn(t *testing.T) {
	w := start(t)
	w.sync()
	n := 0
	w.intercept = func(*http.Request) *http.Response {
		n++
		return answer(http.StatusTooManyRequests, http.Header{"Retry-After": {"17"}}, "")
	}
	_, err := w.trySync(document("a", "Ready"))
	if e := failure(t, err, aai.Retry); e.RetryAfter != 17*time.Second || n != 1 {
		t.Errorf("%d requests, retry after %s", n, e.RetryAfter)
	}
}

func TestOneBadObjectDoesNotKeepOthersFromTheirTurn(t *testing.T) {
	w := start(t)
	w.sync()
	w.faults(simulator.Fault{PathPrefix: "/aai/v32" + key("000").Path(), Status: http.StatusInternalServerError})
	r, err := w.trySync(many(20, "Ready")...)
	if e := failure(t, err, aai.Retry); !strings.HasSuffix(e.URI, "/000") {
		t.Errorf("the error is about %q", e.URI)
	}
	if r.Synced != 19 || r.Objects[key("000")].Reason != aaisync.ReasonUnavailable {
		t.Errorf("%d synced: %+v", r.Synced, r.Objects[key("000")])
	}
	// Next time the bad one comes last.
	got := w.requests(func() { _, _ = w.trySync(many(21, "Ready")...) })
	if diff := cmp.Diff([]string{"GET 000", "PUT 020"}, slices.Sorted(slices.Values(got))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	w.ClearFaults()
	if r = w.sync(many(21, "Ready")...); r.Synced != 21 {
		t.Errorf("%d synced", r.Synced)
	}
}

func TestWrongPassword(t *testing.T) {
	w := start(t)
	w.password = "wrong"
	for range 3 {
		w.expect([]string{"GET"}, func() {
			r, err := w.trySync(many(50, "Ready")...)
			expectKind(t, err, aai.Stop)
			if r.Pending != 50 {
				t.Errorf("%d pending", r.Pending)
			}
		})
	}
	w.password = "good"
	w.sync(many(50, "Ready")...)
	w.password = "wrong"
	var err error
	requests := w.requests(func() { _, err = w.trySync(many(50, "Failed")...) })
	expectKind(t, err, aai.Stop)
	if len(requests) > aaisync.DefaultParallelism {
		t.Errorf("%d requests with a wrong password", len(requests))
	}
	w.password = "good"
	if r := w.sync(many(50, "Failed")...); r.Synced != 50 {
		t.Errorf("%d synced", r.Synced)
	}
}

func TestACancelledPassEnds(t *testing.T) {
	w := start(t)
	ctx, cancel := context.WithCancel(t.Context())
	var n atomic.Int32
	w.intercept = func(r *http.Request) *http.Response {
		if r.Method == http.MethodPut {
			n.Add(1)
			cancel()
		}
		return nil
	}
	_, err := w.syncer.Sync(ctx, tenant, documents(many(100, "Ready")...), plan.Holds{})
	if !errors.Is(err, context.Canceled) || n.Load() > aaisync.DefaultParallelism+1 {
		t.Errorf("%d requests, %v", n.Load(), err)
	}
	if _, err := w.syncer.Sync(ctx, tenant, nil, plan.Holds{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	w.intercept = nil
	if r := w.sync(many(100, "Ready")...); r.Synced != 100 {
		t.Errorf("%d synced", r.Synced)
	}
}

// A server that never tells versions must not be asked for ever.
func TestADocumentWithoutAVersion(t *testing.T) {
	w := start(t)
	w.sync(document("a", "Ready"))
	n := 0
	w.intercept = func(*http.Request) *http.Response {
		n++
		return answer(http.StatusOK, nil, `{"id":"a","data-owner":"`+owner+`"}`)
	}
	_, err := w.trySync()
	if e := failure(t, err, aai.Retry); !strings.Contains(e.Error(), "after "+strconv.Itoa(n)+" requests") || n > 20 {
		t.Errorf("%d requests, %v", n, e)
	}
}

// Objects are written at the same time, so several errors can come together.
func TestOfSeveralErrorsTheMostUsefulIsTold(t *testing.T) {
	type refusal struct {
		status int
		after  string
	}
	cases := map[string]struct {
		a, b  refusal
		kind  aai.ErrorKind
		after time.Duration
	}{
		"the shorter wait":                    {refusal{429, "30"}, refusal{429, "10"}, aai.Retry, 10 * time.Second},
		"a wait before none":                  {refusal{503, ""}, refusal{429, "10"}, aai.Retry, 10 * time.Second},
		"what a person has to mend":           {refusal{429, "30"}, refusal{403, ""}, aai.Stop, 0},
		"what a person has to mend, and both": {refusal{403, ""}, refusal{403, ""}, aai.Stop, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := start(t)
			w.sync()
			var both sync.WaitGroup
			both.Add(2)
			w.intercept = func(r *http.Request) *http.Response {
				both.Done()
				both.Wait()
				refuse := c.a
				if strings.HasSuffix(r.URL.Path, "/b") {
					refuse = c.b
				}
				return answer(refuse.status, http.Header{"Retry-After": {refuse.after}}, "")
			}
			_, err := w.trySync(document("a", "Ready"), document("b", "Ready"))
			if e := failure(t, err, c.kind); e.RetryAfter != c.after {
				t.Errorf("retry after %s, want %s", e.RetryAfter, c.after)
			}
		})
	}
}

func TestNobodyWaitsForHisTurnForEver(t *testing.T) {
	w := start(t)
	entered, leave := make(chan struct{}), make(chan struct{})
	w.intercept = func(*http.Request) *http.Response {
		close(entered)
		<-leave
		return answer(http.StatusBadGateway, nil, "")
	}
	done := make(chan error)
	go func() {
		_, err := w.trySync()
		done <- err
	}()
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.syncer.Sync(ctx, tenant, nil, plan.Holds{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	close(leave)
	expectKind(t, <-done, aai.Retry)
}
