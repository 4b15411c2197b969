package fleet

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

func TestProbe(t *testing.T) {
	t.Parallel()
	answer := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/readyz" || r.Header.Get("Authorization") != "Bearer let-me-in" {
				t.Errorf("asked for %s", r.URL)
			}
			w.WriteHeader(status)
		}
	}
	cases := map[string]struct {
		server http.HandlerFunc
		want   string
	}{
		"ready":        {answer(http.StatusOK), ""},
		"no right":     {answer(http.StatusForbidden), ""},
		"unauthorized": {answer(http.StatusUnauthorized), "401 Unauthorized"},
		"overloaded":   {answer(http.StatusTooManyRequests), ""},
		"not ready":    {answer(http.StatusInternalServerError), "it is not ready: /readyz answers 500"},
		"none behind":  {answer(http.StatusBadGateway), "502"},
		"silent":       {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "no answer in time"},
		"broken":       {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(tc.server)
			defer server.Close()
			config := &rest.Config{Host: server.URL, BearerToken: "let-me-in"}
			client, err := rest.HTTPClientFor(config)
			if err != nil {
				t.Fatal(err)
			}
			limit := time.Minute
			if name == "silent" {
				limit = 20 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			err = Access{Config: config, Client: client}.CheckReady(ctx)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), server.URL)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// TestPausesBetweenProbes: a cluster that is lost is probed again soon. The pauses for a cluster that has never been reached
// grow. Clusters are not probed in step.
func TestPausesBetweenProbes(t *testing.T) {
	t.Parallel()
	for _, longest := range []time.Duration{maxProbePause, maxConnectPause} {
		pauses, pause := retries(longest), time.Duration(0)
		for i := range 20 {
			if pause = pauses.Step(); pause > longest || pause < time.Second || i == 0 && pause > 5*time.Second/4 {
				t.Errorf("of at most %s, pause %d is %s", longest, i, pause)
			}
		}
		if pause < longest*4/5 {
			t.Errorf("the last pause is %s, want up to %s", pause, longest)
		}
	}
}

// roundTripper is a transport that is a function.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestPauseBetweenFailedProbes: a cluster that has answered any request is probed again soon, although no probe has succeeded yet.
func TestPauseBetweenFailedProbes(t *testing.T) {
	t.Parallel()
	for hasAnswered, longest := range map[bool]time.Duration{false: maxConnectPause, true: maxProbePause} {
		synctest.Test(t, func(t *testing.T) {
			c := silent(clock.RealClock{})
			if hasAnswered {
				c.answered()
			}
			var last time.Time
			var pause time.Duration
			c.Client = &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
				pause, last = time.Since(last), time.Now()
				return nil, errors.New("no route")
			})}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			c.runProbes(ctx)
			if pause > longest || pause < longest*4/5 {
				t.Errorf("answered before: %t; the last pause is %s, want up to %s", hasAnswered, pause, longest)
			}
		})
	}
}
