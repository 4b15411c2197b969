package fleet

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
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
		"ready":         {answer(http.StatusOK), ""},
		"no right":      {answer(http.StatusForbidden), ""},
		"unauthorized":  {answer(http.StatusUnauthorized), ""},
		"overloaded":    {answer(http.StatusTooManyRequests), ""},
		"not ready":     {answer(http.StatusInternalServerError), "it is not ready: /readyz answers 500"},
		"nobody behind": {answer(http.StatusBadGateway), "502"},
		"silent":        {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "no answer in time"},
		"broken":        {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
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
			limit := 10 * time.Second
			if name == "silent" {
				limit = 20 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			err = probe(ctx, config, client, "")
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), server.URL)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// A cluster that is away is asked again soon, and one that never was there ever more seldom; nobody asks in step with others.
func TestPauses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reach   Reachability
		known   bool
		longest time.Duration
	}{
		"suspected": {Connected, true, time.Second}, "away": {Unreachable, true, 10 * time.Second}, "never there": {Unreachable, false, time.Minute},
	} {
		var p pauses
		var last time.Duration
		for i := range 20 {
			last = p.next(tc.reach, tc.known)
			if i == 0 && last > time.Second || last > tc.longest || last < 700*time.Millisecond {
				t.Errorf("%s: pause %d is %s", name, i, last)
			}
		}
		if last < tc.longest*3/4 {
			t.Errorf("%s: the last pause is %s", name, last)
		}
	}
}
