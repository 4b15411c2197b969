package sync_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/client"
	aaisync "github.com/healthscope/healthscope/aai/sync"
)

// TestFormerLeaderWritesNothing asserts that a former leader writes nothing, as if it had been frozen before a write while
// another replica took over.
func TestFormerLeaderWritesNothing(t *testing.T) {
	w := withModules(t, "a")
	leads := true
	w.leads = func() bool { return leads }
	w.connect("http://aai.example", w, nil)
	w.sync(document("a", "Ready"), document("b", "Ready"))
	leads = false
	for range 2 {
		requests := w.requests(func() {
			_, err := w.trySync(document("a", "Failed"))
			if e := failure(t, err, aai.Retry); !e.NotSent {
				t.Errorf("got %v", e)
			}
			if _, err = w.modules(statuses{"a": in}); err == nil {
				t.Error("no error for modules")
			}
		})
		if n := len(writes(requests)); n > 0 {
			t.Errorf("%d writes: %v", n, requests)
		}
	}
	w.expectStored(map[string][]string{"a": {"hs/status=Ready"}, "b": {"hs/status=Ready"}})
	leads = true // No other replica has taken over.
	w.sync(document("a", "Failed"))
	w.expectStored(map[string][]string{"a": {"hs/status=Failed"}})
}

// TestLeadershipIsCheckedAfterRateLimit has a replica that loses the lead while a write waits for the rate limit.
func TestLeadershipIsCheckedAfterRateLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t)
		var frozen atomic.Bool
		w.leads = func() bool { return !frozen.Load() }
		w.connect("http://aai.example", w, client.NewBreaker(1, w.clock))
		w.sync(document("a", "Ready"))
		time.AfterFunc(1500*time.Millisecond, func() { frozen.Store(true) })
		w.expect([]string{"GET a"}, func() {
			if _, err := w.trySync(document("a", "Failed")); err == nil {
				t.Error("no error")
			}
		})
	})
}

// TestNewLeaderResyncsAfterTakeover has a last write of the previous leader that arrives after the first list.
func TestNewLeaderResyncsAfterTakeover(t *testing.T) {
	const takeover = 30 * time.Second
	w := start(t)
	w.restart(func(o *aaisync.Options) { o.Takeover, o.Audit = takeover, nil })
	begin, a := w.clock(), document("a", "Ready")
	w.advance(time.Second)
	if r := w.sync(a); !r.NextPass.Equal(begin.Add(takeover)) {
		t.Errorf("the next pass is to begin at %s, want %s after the start", r.NextPass, takeover)
	}
	w.others("patch", key("a").Path(), map[string]any{"labels": []string{"hs/status=Failed"}})
	w.advance(takeover)
	w.expectSync([]string{"GET", "UPDATE a"}, a)
	w.advance(takeover)
	w.expectSync(nil, a)
}
