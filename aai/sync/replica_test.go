package sync_test

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"pgregory.net/rapid"

	"github.com/healthscope/healthscope/aai/plan"
	aaisync "github.com/healthscope/healthscope/aai/sync"
)

// replica is one of several processes that lead in turn. Its requests wait while it is frozen.
type replica struct {
	*world

	frozen sync.Mutex
	// leads becomes false as soon as another replica may lead.
	leads atomic.Bool
	// depart is called before each request, unless it is nil.
	depart func()
}

// RoundTrip sends a request to A&AI.
func (r *replica) RoundTrip(request *http.Request) (*http.Response, error) {
	r.frozen.Lock()
	if r.depart != nil {
		r.depart()
	}
	r.frozen.Unlock()
	return r.world.RoundTrip(request)
}

// lead makes a new replica the leader. It has no state.
func (h *history) lead() *replica {
	r := &replica{world: h.world}
	r.leads.Store(true)
	h.leads = r.leads.Load
	h.connect("http://aai.example", r, h.breaker) // A process does not know which pause A&AI has requested from another process.
	h.restart(func(o *aaisync.Options) { o.Takeover = 30 * time.Second })
	return r
}

// takeover freezes a leader between two of its requests. Meanwhile another replica leads, with another desired document. Then
// the first one continues with its next request, which it has already begun to send.
func (h *history) takeover(t *rapid.T) {
	if !h.replicated {
		t.Skip("it has one replica")
	}
	first := h.lead()
	after := rapid.IntRange(0, 4).Draw(t, "after")
	freeze := rapid.SampledFrom([]time.Duration{15 * time.Second, time.Hour}).Draw(t, "frozen for")
	id, status := anyID(t), rapid.SampledFrom([]string{"Ready", "Failed"}).Draw(t, "status")
	first.depart = func() {
		if after--; after != -1 {
			return
		}
		first.leads.Store(false)
		h.advance(freeze)
		h.desiring.Lock()
		h.lead()
		h.desired[key(id)] = document(id, status)
		h.desiring.Unlock()
		_, _ = h.world.pass(t.Context(), h.desired, plan.Guards{})
	}
	h.pass(t, plan.Guards{})
	first.frozen.Lock()
	defer first.frozen.Unlock()
	first.depart = nil
	h.lanes.mu.Lock()
	defer h.lanes.mu.Unlock()
	h.lanes.overlaps = nil // Requests of both replicas may overlap.
}
