package sync_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/client"
	"github.com/healthscope/healthscope/aai/plan"
	"github.com/healthscope/healthscope/aai/simulator"
	aaisync "github.com/healthscope/healthscope/aai/sync"
)

func TestOutage(t *testing.T) {
	cases := map[string]simulator.Fault{
		"no backend":         {Status: http.StatusServiceUnavailable},
		"gateway timeout":    {Status: http.StatusGatewayTimeout},
		"connection dropped": {Drop: simulator.DropBeforeCommit},
		"a page of a proxy":  {Status: http.StatusOK},
		"foreign JSON":       {Status: http.StatusOK, Body: `{"status":"UP"}`},
		"an empty success":   {Status: http.StatusAccepted, Empty: true},
	}
	for name, fault := range cases {
		t.Run(name, func(t *testing.T) {
			w := start(t)
			w.sync(many(100, "Ready")...)
			w.advance(time.Second)
			w.faults(fault)
			var r outcome
			for i := range 10 { // every object flips ten times while A&AI is down
				var err error
				requests := w.requests(func() { r, err = w.trySync(many(100, []string{"Failed", "Pending"}[i%2])...) })
				expectKind(t, err, aai.Retry)
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
			w.expect(nil, func() { w.sync(many(100, "Failed")...) })
		})
	}
}

// TestTheTenantIsReadAgainAfterAnOutage asserts that the syncer does not rely on its state after an outage, because A&AI may
// have been restored from an older backup.
func TestTheTenantIsReadAgainAfterAnOutage(t *testing.T) {
	w := start(t)
	w.connect("http://aai.example", w, client.NewBreaker(0, w.clock))
	w.restart()
	w.sync(many(2, "Ready")...)
	w.faults(simulator.Fault{Status: http.StatusServiceUnavailable, Count: 1})
	_, err := w.trySync(document("000", "Failed"), document("001", "Ready"))
	expectKind(t, err, aai.Retry)
	w.othersDelete("001") // The backup does not have it.
	w.advance(time.Minute)
	w.sync(document("000", "Failed"), document("001", "Ready"))
	w.expectStored(map[string][]string{"000": {"hs/status=Failed"}, "001": {"hs/status=Ready"}})
}

func TestOutageBeforeTheFirstList(t *testing.T) {
	w := start(t)
	w.faults(simulator.Fault{PathPrefix: "/aai/v32" + tenant.Path(), Status: http.StatusBadGateway, Count: 1})
	w.expect([]string{"GET"}, func() {
		r, err := w.trySync(document("a", "Ready"))
		expectKind(t, err, aai.Retry)
		w.expectObjects(map[string]string{"a": "Pending NotTried"}, r)
	})
	w.expect([]string{"GET", "PUT a"}, func() { w.sync(document("a", "Ready")) })
}

func TestResyncRequestSurvivesOutage(t *testing.T) {
	w := start(t)
	w.sync(document("a", "Ready"))
	w.othersDelete("a")
	w.syncer.Resync(tenant)
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
			method: http.MethodPut, before: []aai.Document{ready}, desired: []aai.Document{document("a", "Failed")}, next: []aai.Document{document("a", "Failed")},
			want: []string{"GET a"}, stored: map[string][]string{"a": {"hs/status=Failed"}},
		},
		"change, and back": {
			method: http.MethodPut, before: []aai.Document{ready}, desired: []aai.Document{document("a", "Failed")}, next: []aai.Document{ready},
			want: []string{"GET a", "UPDATE a"}, stored: map[string][]string{"a": {"hs/status=Ready"}},
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

// mentions reports whether a request concerns an object, alone or with others.
func mentions(r *http.Request, id string) bool {
	if strings.HasSuffix(r.URL.Path, "/"+id) {
		return true
	}
	if r.Body == nil {
		return false
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return false
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return strings.Contains(string(body), "/k8s-resource/"+id+`"`) || strings.Contains(string(body), "/k8s-resource/"+id+"?")
}

// TestFailingObjectDoesNotStarveOthers has an object for which every write fails with a temporary error.
func TestFailingObjectDoesNotStarveOthers(t *testing.T) {
	w := start(t)
	w.sync(document("x", "Ready"))
	w.intercept = func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodGet && mentions(r, "007") {
			return answer(http.StatusInternalServerError, nil, ""), nil
		}
		return nil, nil
	}
	all := append(many(20, "Ready"), document("x", "Ready"))
	var r outcome
	for range 6 { // The requests have 20, 10, 5 and 2 objects, until the failing object is alone.
		var err error
		r, err = w.trySync(all...)
		expectKind(t, err, aai.Retry)
	}
	if r.Synced != 20 || r.Objects[key("007")].Reason != aaisync.ReasonUnavailable {
		t.Errorf("%d synced: %+v", r.Synced, r.Objects[key("007")])
	}
	// From now on, it has no effect on others.
	all = append(all, many(30, "Ready")[20:]...)
	got := w.requests(func() { _, _ = w.trySync(all...) })
	if n := len(writes(got)); n != 10 || len(sent(got)) != 2 {
		t.Errorf("%q; want the bad one read, and 10 created together", got)
	}
	w.intercept = nil
	if r = w.sync(all...); r.Synced != 31 {
		t.Errorf("%d synced", r.Synced)
	}
}

func TestWrongPassword(t *testing.T) {
	w := start(t)
	w.password = "wrong"
	for range 3 {
		w.expect(nil, func() {
			if n := w.probes(func() {
				r, err := w.trySync(many(50, "Ready")...)
				expectKind(t, err, aai.Misconfigured)
				if r.Pending != 50 {
					t.Errorf("%d pending", r.Pending)
				}
			}); n != 1 {
				t.Errorf("%d probes in a pass, want 1", n)
			}
		})
	}
	w.password = "good"
	w.sync(many(50, "Ready")...)
	w.password = "wrong"
	var err error
	requests := w.requests(func() { _, err = w.trySync(many(50, "Failed")...) })
	expectKind(t, err, aai.Misconfigured)
	if n := len(sent(requests)); n > aaisync.Parallelism {
		t.Errorf("%d requests with a wrong password", n)
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
	w.intercept = func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodPost {
			n.Add(1)
			cancel()
		}
		return nil, nil
	}
	_, err := w.pass(ctx, documents(many(300, "Ready")...), plan.Guards{})
	if !errors.Is(err, context.Canceled) || n.Load() > aaisync.Parallelism+1 {
		t.Errorf("%d requests, %v", n.Load(), err)
	}
	if _, err := w.pass(ctx, nil, plan.Guards{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	w.intercept = nil
	if r := w.sync(many(300, "Ready")...); r.Synced != 300 {
		t.Errorf("%d synced", r.Synced)
	}
}

// TestMisconfiguredErrorWinsOverRetry checks which error a pass returns if there are several. Objects are written in parallel,
// so that this can happen.
func TestMisconfiguredErrorWinsOverRetry(t *testing.T) {
	type refusal struct {
		status int
		after  string
	}
	cases := map[string]struct {
		a, b  refusal
		kind  aai.ErrorKind
		after time.Duration
	}{
		"what a person has to repair":           {refusal{429, "30"}, refusal{403, ""}, aai.Misconfigured, 0},
		"what a person has to repair, and both": {refusal{403, ""}, refusal{403, ""}, aai.Misconfigured, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := start(t)
			w.sync(document("x", "Ready")) // The tenant is known to exist.
			var both sync.WaitGroup
			both.Add(2)
			w.intercept = func(r *http.Request) (*http.Response, error) {
				both.Done()
				both.Wait()
				refuse := c.a
				if mentions(r, "030") {
					refuse = c.b
				}
				return answer(refuse.status, http.Header{"Retry-After": {refuse.after}}, ""), nil
			}
			_, err := w.trySync(append(many(60, "Ready"), document("x", "Ready"))...) // two requests
			if e := failure(t, err, c.kind); e.RetryAfter != c.after {
				t.Errorf("retry after %s, want %s", e.RetryAfter, c.after)
			}
		})
	}
}

func TestCancelledPassDoesNotWaitForLock(t *testing.T) {
	w := start(t)
	entered, leave := make(chan struct{}), make(chan struct{})
	w.intercept = func(*http.Request) (*http.Response, error) {
		close(entered)
		<-leave
		return answer(http.StatusBadGateway, nil, ""), nil
	}
	done := make(chan error)
	go func() {
		_, err := w.trySync()
		done <- err
	}()
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.pass(ctx, nil, plan.Guards{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	close(leave)
	expectKind(t, <-done, aai.Retry)
}
