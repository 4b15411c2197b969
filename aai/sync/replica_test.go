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

// replica is one of several processes that lead in turn. Its requests stand still while it is frozen.
type replica struct {
	*world

	frozen sync.Mutex
	// leads is false as soon as another one may lead.
	leads atomic.Bool
	// depart is called before each request, unless it is nil.
	depart func()
}

// RoundTrip carries a request to A&AI.
func (r *replica) RoundTrip(request *http.Request) (*http.Response, error) {
	r.frozen.Lock()
	if r.depart != nil {
		r.depart()
	}
	r.frozen.Unlock()
	return r.world.RoundTrip(request)
}

// lead makes another replica the leader, which knows nothing yet.
func (h *history) lead() *replica {
	r := &replica{world: h.world}
	r.leads.Store(true)
	h.leads = r.leads.Load
	h.connect("http://aai.example", r, h.breaker) // What A&AI has asked of a process is not known to another one.
	h.restart()
	h.syncer = aaisync.New(aaisync.Options{Client: h.client, Clock: h.clock, Plan: h.plan, Audit: h.audit, Takeover: 30 * time.Second})
	return r
}

// takeover freezes a leader between two of its requests, lets another one lead meanwhile, for which something else is desired,
// and thaws the first, whose next request has left it already.
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
	h.lanes.overlaps = nil // Requests of both replicas may meet.
}
