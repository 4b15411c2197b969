package api

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
)

// TestACallerMayHaveSoManyStreams asserts that a caller can have at most maxStreamsOfOne open streams, and new ones after it
// closes some.
func TestACallerMayHaveSoManyStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		guard := rights{may: map[string][]Access{"greedy": nil, "modest": nil}}
		h := newHandler(Options{Scopes: manyScopes(), Guard: guard})
		watch := func(ctx context.Context, token string) *httptest.ResponseRecorder {
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/scopes?watch=true", nil)
			r.Header = bearer(token)
			return serve(h, r)
		}
		var open sync.WaitGroup
		ctx, closeAll := context.WithCancel(t.Context())
		for range maxStreamsOfOne {
			open.Go(func() {
				if got := watch(ctx, "greedy"); got.Code != http.StatusOK {
					t.Errorf("status %d: %s", got.Code, got.Body)
				}
			})
		}
		synctest.Wait()
		if got := len(h.requests); got != 0 {
			t.Errorf("streams take part in the limit of requests: %d", got)
		}
		got := watch(stopping(t.Context()), "greedy")
		checkProblem(t, got.Body.Bytes(), http.StatusTooManyRequests, `user "caller-greedy" has 32 streams open already`)
		if got := watch(stopping(t.Context()), "modest"); got.Code != http.StatusOK {
			t.Errorf("another caller is answered with status %d: %s", got.Code, got.Body)
		}
		closeAll()
		open.Wait()
		if got := watch(stopping(t.Context()), "greedy"); got.Code != http.StatusOK {
			t.Errorf("after all are closed: status %d: %s", got.Code, got.Body)
		}
		if len(h.streams.byCaller) != 0 || h.streams.total != 0 {
			t.Errorf("something is held of streams that are over: %v, %d", h.streams.byCaller, h.streams.total)
		}
	})
}

func TestStreamsHaveALimit(t *testing.T) {
	h := newHandler(Options{Scopes: manyScopes()})
	for range maxStreams {
		if _, err := h.streams.open(""); err != nil {
			t.Fatal(err)
		}
	}
	got := get(t, h, "/scopes?watch=true", nil)
	checkProblem(t, got.Body.Bytes(), http.StatusServiceUnavailable, "streams are open already")
	for range maxRequests {
		acquire(h.requests)
	}
	got = get(t, h, "/scopes", nil)
	checkProblem(t, got.Body.Bytes(), http.StatusServiceUnavailable, "requests are under way already")
	if got := get(t, h, "/healthz", nil); got.Code != http.StatusOK {
		t.Errorf("a busy server seems dead: %d", got.Code)
	}
}
