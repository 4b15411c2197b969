package sync_test

import (
	"testing"
	"time"

	"github.com/healthscope/healthscope/aai"
	aaisync "github.com/healthscope/healthscope/aai/sync"
)

// TestAFrozenLeaderWritesNothing freezes a leader before it writes, while another replica takes over.
func TestAFrozenLeaderWritesNothing(t *testing.T) {
	w := withModules(t, "a")
	leads := true
	w.syncer = aaisync.New(aaisync.Options{Client: w.client, Clock: w.clock, Plan: w.plan, Leads: func() bool { return leads }})
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

// TestANewLeaderReadsAgainWhatItsPredecessorMayHaveWritten has the predecessor's last write arrive after the first reading.
func TestANewLeaderReadsAgainWhatItsPredecessorMayHaveWritten(t *testing.T) {
	w := start(t)
	const takeover = 30 * time.Second
	w.syncer = aaisync.New(aaisync.Options{Client: w.client, Clock: w.clock, Plan: w.plan, Takeover: takeover})
	begin := w.clock()
	w.advance(time.Second)
	if r := w.sync(document("a", "Ready")); !r.NextPass.Equal(begin.Add(takeover)) {
		t.Errorf("the next pass is to begin at %s, want %s after the start", r.NextPass, takeover)
	}
	w.others("PATCH", key("a").Path(), `{"labels":["hs/status=Failed"]}`)
	w.advance(takeover)
	w.expect([]string{"GET", "UPDATE a"}, func() { w.sync(document("a", "Ready")) })
	w.advance(takeover)
	w.expect(nil, func() { w.sync(document("a", "Ready")) })
}
