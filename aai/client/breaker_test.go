package client_test

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/client"
)

// response is what A&AI answers to a request, and how long that takes.
type response struct {
	takes      time.Duration
	status     int
	retryAfter string
}

// attempt is a write that a client tries.
type attempt struct {
	// at is the time of the attempt, and givesUp the time after which its caller cancels it.
	at, givesUp time.Duration
	// follows is true if the process does not lead.
	follows bool
	// sent reports whether the request is sent. If it is not, then notBefore is the time in the error; zero for any.
	sent      bool
	notBefore time.Duration
}

// TestBreaker asserts which requests a breaker lets through. The first pause is 160 to 200 ms, the second 320 to 400 ms.
func TestBreaker(t *testing.T) {
	const ms, s, m = time.Millisecond, time.Second, time.Minute
	cases := map[string]struct {
		responses []response // in the order of the requests; the last one is repeated
		attempts  []attempt
		outages   uint64
	}{
		"it opens for a pause": {
			[]response{{status: 502}},
			[]attempt{{at: 0, sent: true}, {at: 150 * ms}, {at: 200 * ms, sent: true}, {at: 500 * ms}, {at: 600 * ms, sent: true}},
			1,
		},
		"it closes after a success": {
			[]response{{status: 502}, {status: 200}},
			[]attempt{{at: 0, sent: true}, {at: 200 * ms, sent: true}, {at: 201 * ms, sent: true}, {at: 202 * ms, sent: true}},
			1,
		},
		"it stays open for the Retry-After": {
			[]response{{status: 429, retryAfter: "1800"}},
			[]attempt{{at: 0, sent: true}, {at: 29 * m, notBefore: 30 * m}, {at: 30 * m, sent: true}},
			1,
		},
		"half-open, it lets one request through": {
			[]response{{status: 502}, {takes: s, status: 200}},
			[]attempt{{at: 0, sent: true}, {at: 200 * ms, sent: true}, {at: 500 * ms}, {at: 1201 * ms, sent: true}},
			1,
		},
		"half-open, it lets another one through when the first hangs, whose failure then does not count": {
			[]response{{status: 502}, {takes: 10 * s, status: 502}, {status: 200}},
			[]attempt{{at: 0, sent: true}, {at: 200 * ms, sent: true}, {at: 600 * ms, sent: true}, {at: 10201 * ms, sent: true}},
			1,
		},
		"half-open, it lets one request through though an older one ends": {
			[]response{{takes: s, status: 503}, {status: 503}, {takes: s, status: 503}},
			[]attempt{{at: 0, sent: true}, {at: 100 * ms, sent: true}, {at: 900 * ms, sent: true}, {at: 1050 * ms}},
			1,
		},
		"a request from before it opened does not close it": {
			[]response{{takes: s, status: 200}, {status: 429, retryAfter: "90"}},
			[]attempt{{at: 0, sent: true}, {at: 100 * ms, sent: true}, {at: 80 * s}, {at: 91 * s, sent: true}},
			1,
		},
		"the Retry-After of a request from before it opened counts": {
			[]response{{takes: s, status: 503, retryAfter: "90"}, {status: 503}},
			[]attempt{{at: 0, sent: true}, {at: 950 * ms, sent: true}, {at: 80 * s, notBefore: 91 * s}, {at: 91 * s, sent: true}},
			1,
		},
		"a shorter Retry-After of such a request does not": {
			[]response{{takes: s, status: 503, retryAfter: "30"}, {status: 503, retryAfter: "90"}},
			[]attempt{{at: 0, sent: true}, {at: 500 * ms, sent: true}, {at: 80 * s, notBefore: 90*s + 500*ms}},
			1,
		},
		"a request that the caller cancels does not open it": {
			[]response{{takes: 10 * s, status: 200}},
			[]attempt{{at: 0, givesUp: s, sent: true}, {at: s + ms, sent: true}},
			0,
		},
		"a write that is not sent, because the process may not write, does not close it": {
			[]response{{status: 503}},
			[]attempt{{at: 0, sent: true}, {at: 200 * ms, follows: true}, {at: 300 * ms}},
			1,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { check(t, c.responses, c.attempts, c.outages) })
		})
	}
}

// check makes the attempts, and checks which of them are sent and how often the breaker was opened.
func check(t *testing.T, responses []response, attempts []attempt, outages uint64) {
	t.Helper()
	sent, leads, start := 0, true, time.Now()
	c := connect(t, "", through(inProcess(func(w http.ResponseWriter, r *http.Request) {
		answer := responses[min(sent, len(responses)-1)]
		sent++
		select {
		case <-time.After(answer.takes):
		case <-r.Context().Done():
		}
		w.Header().Set("Retry-After", answer.retryAfter)
		w.WriteHeader(answer.status)
	})), func(o *client.Options) {
		o.Breaker, o.Timeout, o.Leads = client.NewBreaker(0, nil), time.Hour, func() bool { return leads }
	})
	for _, a := range attempts {
		<-time.After(time.Until(start.Add(a.at)))
		ctx, cancel := context.WithTimeout(t.Context(), cmp.Or(a.givesUp, time.Hour))
		defer cancel()
		before, ended := sent, make(chan error, 1)
		leads = !a.follows
		go func() { ended <- update(ctx, c) }()
		synctest.Wait()
		if (sent > before) != a.sent {
			t.Errorf("after %s: sent %t, want %t", a.at, sent > before, a.sent)
		}
		if a.sent {
			continue
		}
		e := failure(t, <-ended)
		if !e.NotSent || errors.Is(e, client.ErrNotLeading) != a.follows || a.notBefore != 0 && e.NotBefore.Sub(start) != a.notBefore {
			t.Errorf("after %s: got %v, not before %s", a.at, e, e.NotBefore.Sub(start))
		}
	}
	if n := c.Outages(); n != outages {
		t.Errorf("%d outages, want %d", n, outages)
	}
}

func TestBreakerOpensInAnOutage(t *testing.T) {
	cases := map[int]bool{200: false, 400: false, 412: false, 500: false, 403: true, 408: true, 429: true, 502: true, 503: true, 504: true}
	for status, opens := range cases {
		t.Run(http.StatusText(status), func(t *testing.T) {
			sent := 0
			c := connect(t, "", through(inProcess(func(w http.ResponseWriter, _ *http.Request) {
				sent++
				w.WriteHeader(status)
			})), func(o *client.Options) { o.Breaker = client.NewBreaker(0, stopped) })
			first, second := update(t.Context(), c), update(t.Context(), c)
			if !opens {
				if sent != 2 {
					t.Errorf("%d requests, want 2", sent)
				}
				return
			}
			// A call that the breaker rejects returns the same error as the call that opened it, with the time of the next
			// attempt.
			e, f := failure(t, first), failure(t, second)
			if sent != 1 || f.Kind != e.Kind || f.Status != e.Status || f.Message != e.Message || !f.NotBefore.Equal(e.NotBefore) || !e.NotBefore.After(stopped()) || e.NotSent || !f.NotSent || f.TransactionID != "" || f.Op != e.Op || f.URI != e.URI {
				t.Errorf("%d requests, got %+v after %+v", sent, f, e)
			}
		})
	}
}

// stopped is a clock that stands still, so that a breaker stays open.
func stopped() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }

// TestBreakerPausesGrow asserts that requests become less frequent in a long outage. After it, the breaker works as before.
func TestBreakerPausesGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent, status := 0, http.StatusBadGateway
		c := connect(t, "", through(inProcess(func(w http.ResponseWriter, _ *http.Request) {
			sent++
			w.WriteHeader(status)
		})), func(o *client.Options) { o.Breaker = client.NewBreaker(0, nil) })
		for _, phase := range []struct {
			name        string
			status      int
			lasts       time.Duration
			least, most int // requests, of one attempt every 100 ms
		}{
			{"the first seconds of an outage", 502, 3 * time.Second, 4, 6},
			{"later, one in two seconds", 502, 10 * time.Minute, 300, 400},
			{"all is well", 200, 3 * time.Second, 10, 30},
			{"the first minute with a wrong password", 403, time.Minute, 6, 12},
			{"later, one in a minute", 403, 10 * time.Minute, 9, 14},
			{"all is well again", 200, time.Minute, 0, 600},
			{"the first seconds of the next outage", 502, 3 * time.Second, 3, 6},
		} {
			sent, status = 0, phase.status
			for range phase.lasts / (100 * time.Millisecond) {
				_ = update(t.Context(), c)
				<-time.After(100 * time.Millisecond)
			}
			if sent < phase.least || sent > phase.most {
				t.Errorf("%s: %d requests, want %d to %d", phase.name, sent, phase.least, phase.most)
			}
		}
		if n := c.Outages(); n != 3 {
			t.Errorf("%d outages, want 3", n)
		}
	})
}

func TestBreakerBoundsRequestsInASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, "", through(inProcess(func(http.ResponseWriter, *http.Request) {})), func(o *client.Options) { o.Breaker = client.NewBreaker(2, nil) })
		start := time.Now()
		for range 4 {
			if err := update(t.Context(), c); err != nil {
				t.Error(err)
			}
		}
		// Two requests are sent at once, and each of the others half a second after the previous one.
		if took := time.Since(start); took != time.Second {
			t.Errorf("four requests take %s, want a second", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if e := failure(t, update(ctx, c)); !e.NotSent || e.Kind != aai.Retry || e.Err == nil {
			t.Errorf("a request for which there is no time left: %v", e)
		}
	})
}
