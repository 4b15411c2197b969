package client_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/client"
)

// watch is a clock that the test advances.
type watch struct {
	mu  sync.Mutex
	now time.Time
}

func newWatch() *watch { return &watch{now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)} }

func (w *watch) read() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *watch) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// withBreaker returns a client with a breaker, and its server. The server responds with the stored status and with retryAfter,
// which may be empty.
func withBreaker(t *testing.T, retryAfter string) (c *client.Client, s *server, status *atomic.Int64, w *watch) {
	t.Helper()
	status = &atomic.Int64{}
	c, s, w = behindBreaker(t, func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Retry-After", retryAfter)
		out.WriteHeader(int(status.Load()))
	})
	return c, s, status, w
}

// behindBreaker returns a client with a breaker, its server, and the clock of the breaker.
func behindBreaker(t *testing.T, handle http.HandlerFunc) (*client.Client, *server, *watch) {
	t.Helper()
	s, w := serve(t, handle), newWatch()
	return connect(t, s.URL, func(o *client.Options) { o.Breaker = client.NewBreaker(0, w.read) }), s, w
}

// remove deletes a document, as an example of another write than update.
func remove(ctx context.Context, c *client.Client) error {
	return c.Write(ctx, client.Write{Op: aai.OpDelete, Key: key, ResourceVersion: "1"})
}

func TestBreakerOpensInAnOutage(t *testing.T) {
	cases := map[string]struct {
		status int
		opens  bool
	}{
		"done":           {http.StatusOK, false},
		"not this":       {http.StatusBadRequest, false},
		"changed":        {http.StatusPreconditionFailed, false},
		"one fails":      {http.StatusInternalServerError, false},
		"wrong password": {http.StatusForbidden, true},
		"too many":       {http.StatusTooManyRequests, true},
		"bad gateway":    {http.StatusBadGateway, true},
		"no backend":     {http.StatusServiceUnavailable, true},
		"slow backend":   {http.StatusGatewayTimeout, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			connected, s, status, _ := withBreaker(t, "")
			status.Store(int64(c.status))
			want := 5
			if c.opens {
				want = 1
			}
			var first, last error
			for i := range 5 {
				last = update(t.Context(), connected)
				if i == 0 {
					first = last
				}
			}
			if n := len(s.received()); n != want {
				t.Errorf("%d requests, want %d", n, want)
			}
			if !c.opens {
				return
			}
			// A call that the breaker rejects returns the same error as the call that opened it, with the time of the next
			// attempt.
			e, f := failure(t, first), failure(t, last)
			if f.Kind != e.Kind || f.Status != e.Status || f.Message != e.Message || !f.NotBefore.Equal(e.NotBefore) || e.NotBefore.IsZero() || e.NotSent || !f.NotSent || f.TransactionID != "" {
				t.Errorf("got %+v after %+v", f, e)
			}
		})
	}
}

// TestBreakerPausesGrow asserts that requests become less frequent in a long outage. After it, the breaker works as before.
func TestBreakerPausesGrow(t *testing.T) {
	c, s, status, w := withBreaker(t, "")
	status.Store(http.StatusBadGateway)
	asked := func(d time.Duration) int {
		before := len(s.received())
		for range d / (100 * time.Millisecond) {
			_ = update(t.Context(), c)
			w.advance(100 * time.Millisecond)
		}
		return len(s.received()) - before
	}
	if n := asked(3 * time.Second); n < 4 || n > 6 {
		t.Errorf("%d requests in the first three seconds", n)
	}
	if n := asked(10 * time.Minute); n < 300 || n > 400 {
		t.Errorf("%d requests in ten minutes, want one in two seconds", n)
	}
	status.Store(http.StatusOK)
	if n := asked(3 * time.Second); n < 10 {
		t.Errorf("%d requests when all is well again for a second", n)
	}
	status.Store(http.StatusForbidden)
	if n := asked(time.Minute); n < 6 || n > 12 {
		t.Errorf("%d requests in the first minute with a wrong password", n)
	}
	if n := asked(10 * time.Minute); n < 9 || n > 14 {
		t.Errorf("%d requests in ten minutes with a wrong password", n)
	}
	status.Store(http.StatusOK)
	_ = asked(time.Minute)
	status.Store(http.StatusBadGateway)
	if n := asked(3 * time.Second); n < 3 {
		t.Errorf("%d requests in the first three seconds of the next outage", n)
	}
}

func TestBreakerStaysOpenForRetryAfter(t *testing.T) {
	c, s, status, w := withBreaker(t, "1800")
	status.Store(http.StatusTooManyRequests)
	_ = update(t.Context(), c)
	w.advance(29 * time.Minute)
	e := failure(t, update(t.Context(), c))
	if len(s.received()) != 1 || e.NotBefore.Sub(w.read()) != time.Minute {
		t.Errorf("%d requests, retry at %s", len(s.received()), e.NotBefore)
	}
	w.advance(time.Minute)
	_ = update(t.Context(), c)
	if len(s.received()) != 2 {
		t.Errorf("%d requests after the time", len(s.received()))
	}
}

// TestBreakerHalfOpenAllowsOne asserts that the half-open breaker rejects other requests at once while one request is in flight.
func TestBreakerHalfOpenAllowsOne(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	var n atomic.Int64
	c, _, w := behindBreaker(t, func(out http.ResponseWriter, _ *http.Request) {
		if n.Add(1) == 1 {
			out.WriteHeader(http.StatusBadGateway)
			return
		}
		close(entered)
		<-leave
	})
	_ = update(t.Context(), c)
	w.advance(time.Second)
	done := make(chan error)
	go func() { done <- update(t.Context(), c) }()
	<-entered
	if e := failure(t, update(t.Context(), c)); !e.NotSent || n.Load() != 2 {
		t.Errorf("%d requests, %v", n.Load(), e)
	}
	close(leave)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestBreakerHalfOpenAllowsAnotherWhenTheFirstHangs asserts that a half-open request without a response blocks other requests
// for one more pause only, and not until its timeout.
func TestBreakerHalfOpenAllowsAnotherWhenTheFirstHangs(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	var n atomic.Int64
	c, _, w := behindBreaker(t, func(out http.ResponseWriter, _ *http.Request) {
		switch n.Add(1) {
		case 1:
			out.WriteHeader(http.StatusBadGateway)
		case 2:
			close(entered)
			<-leave
			out.WriteHeader(http.StatusBadGateway)
		}
	})
	_ = update(t.Context(), c)
	w.advance(client.MaxPause)
	done := make(chan error)
	go func() { done <- update(t.Context(), c) }()
	<-entered
	w.advance(client.MaxPause)
	if err := update(t.Context(), c); err != nil {
		t.Error(err)
	}
	close(leave)
	_ = failure(t, <-done) // This request was sent before the success, so that it must not open the breaker.
	if err := update(t.Context(), c); err != nil {
		t.Error(err)
	}
}

// TestBreakerStaysClosedWhenTheCallerGivesUp asserts that a request that the caller cancels does not open the breaker.
func TestBreakerStaysClosedWhenTheCallerGivesUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-TransactionId") == "first" {
			cancel()
			<-r.Context().Done()
		}
	})
	breaker := client.NewBreaker(0, nil)
	c := connect(t, s.URL, func(o *client.Options) { o.Breaker = breaker })
	if err := update(client.WithTransaction(ctx, "first"), c); err == nil {
		t.Error("no error")
	}
	if err := update(t.Context(), c); err != nil {
		t.Error(err)
	}
}

func TestBreakerBoundsRequestsInASecond(t *testing.T) {
	s := serve(t, func(out http.ResponseWriter, _ *http.Request) { out.WriteHeader(http.StatusOK) })
	breaker := client.NewBreaker(2, nil)
	c := connect(t, s.URL, func(o *client.Options) { o.Breaker = breaker })
	began := time.Now()
	for range 4 {
		if err := update(t.Context(), c); err != nil {
			t.Error(err)
		}
	}
	// Two requests are sent at once, and each of the others half a second after the previous one. A busy machine can only make
	// this longer.
	if took, n := time.Since(began), len(s.received()); n != 4 || took < 900*time.Millisecond {
		t.Errorf("%d requests in %s, want 4 in a second", n, took)
	}
}

// TestBreakerStaysOpenWhenAnOlderRequestSucceeds asserts that a request that was sent before the breaker opened does not close
// it. The Retry-After of the later response remains in effect.
func TestBreakerStaysOpenWhenAnOlderRequestSucceeds(t *testing.T) {
	slow, release := make(chan struct{}), make(chan struct{})
	c, s, w := behindBreaker(t, func(out http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			close(slow)
			<-release
			out.WriteHeader(http.StatusNoContent)
			return
		}
		out.Header().Set("Retry-After", "90")
		out.WriteHeader(http.StatusTooManyRequests)
	})
	done := make(chan error, 1)
	go func() { done <- remove(t.Context(), c) }()
	<-slow
	_ = failure(t, update(t.Context(), c))
	close(release)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	w.advance(80 * time.Second)
	_ = failure(t, update(t.Context(), c))
	if n := len(s.received()); n != 2 {
		t.Errorf("%d requests, want 2: A&AI has asked to be left alone", n)
	}
	w.advance(20 * time.Second)
	_ = failure(t, update(t.Context(), c))
	if n := len(s.received()); n != 3 {
		t.Errorf("%d requests, want 3", n)
	}
}

// TestBreakerStaysOpenForRetryAfterOfAnOlderRequest asserts that the breaker uses the Retry-After of a response whose request
// was sent before the breaker opened.
func TestBreakerStaysOpenForRetryAfterOfAnOlderRequest(t *testing.T) {
	slow, release := make(chan struct{}), make(chan struct{})
	c, s, w := behindBreaker(t, func(out http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			close(slow)
			<-release
			out.Header().Set("Retry-After", "90")
		}
		out.WriteHeader(http.StatusServiceUnavailable)
	})
	done := make(chan error, 1)
	go func() { done <- remove(t.Context(), c) }()
	<-slow
	_ = failure(t, update(t.Context(), c)) // This opens the breaker, for a short pause.
	close(release)
	_ = failure(t, <-done)
	w.advance(80 * time.Second)
	if e := failure(t, update(t.Context(), c)); len(s.received()) != 2 || e.NotBefore.Sub(w.read()) != 10*time.Second {
		t.Errorf("%d requests, want 2; to be asked again at %s", len(s.received()), e.NotBefore)
	}
}

// TestBreakerHalfOpenAllowsOneWhileAnOlderRequestEnds asserts that the end of an older request does not allow a second request
// while the half-open request is in flight.
func TestBreakerHalfOpenAllowsOneWhileAnOlderRequestEnds(t *testing.T) {
	old, probe := make(chan struct{}), make(chan struct{})
	releaseOld, releaseProbe := make(chan struct{}), make(chan struct{})
	c, s, w := behindBreaker(t, func(out http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodDelete:
			close(old)
			<-releaseOld
		case http.MethodGet:
			close(probe)
			<-releaseProbe
		}
		out.WriteHeader(http.StatusServiceUnavailable)
	})
	done := make(chan error, 2)
	go func() { done <- remove(t.Context(), c) }()
	<-old
	_ = failure(t, update(t.Context(), c)) // This opens the breaker.
	w.advance(client.MaxPause)
	go func() { _, _, err := c.GetK8sResource(t.Context(), key); done <- err }()
	<-probe
	close(releaseOld)
	_ = failure(t, <-done)
	_ = failure(t, update(t.Context(), c))
	if n := len(s.received()); n != 3 {
		t.Errorf("%d requests, want 3: one at a time finds out", n)
	}
	close(releaseProbe)
	_ = failure(t, <-done)
}

// TestBreakerIgnoresWriteThatIsNotSent asserts that a write that is not sent, because the process may not write, does not close
// the half-open breaker.
func TestBreakerIgnoresWriteThatIsNotSent(t *testing.T) {
	s := serve(t, func(out http.ResponseWriter, _ *http.Request) { out.WriteHeader(http.StatusServiceUnavailable) })
	w := newWatch()
	c := connect(t, s.URL, func(o *client.Options) {
		o.Breaker, o.Leads = client.NewBreaker(0, w.read), func() bool { return false }
	})
	if err := c.Probe(t.Context()); err == nil {
		t.Fatal("no error")
	}
	w.advance(client.MaxPause)
	if err := remove(t.Context(), c); !errors.Is(err, client.ErrNotLeading) {
		t.Errorf("got %v", err)
	}
	if err := c.Probe(t.Context()); err == nil || len(s.received()) != 1 {
		t.Errorf("%d requests although the breaker is open, %v", len(s.received()), err)
	}
}
