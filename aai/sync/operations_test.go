package sync_test

import (
	"maps"
	"slices"
	"sync"

	"pgregory.net/rapid"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/simulator"
)

// operation is an operation of a third party in the middle of a pass, between two of its requests.
type operation struct {
	mu sync.Mutex
	// after is the number of requests before the operation, and do runs it. do is nil if there is no operation.
	after int
	do    func()
	// before holds the documents in A&AI before the pass, with the changes of others since then. existed holds their ids when
	// the pass began.
	before  map[string]map[string]any
	existed map[string]bool
}

// plan schedules an operation for the next pass.
func (d *operation) plan(after int, do func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.after, d.do = after, do
}

// begin records the documents in A&AI when a pass begins.
func (d *operation) begin(before map[string]map[string]any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.before, d.existed = before, map[string]bool{}
	for id := range before {
		d.existed[id] = true
	}
}

// end returns the documents in A&AI before the pass, with the changes of others since then. It cancels an operation that is
// still scheduled.
func (d *operation) end() map[string]map[string]any {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.do = nil
	return maps.Clone(d.before)
}

// arrive counts a request before A&AI receives it, and runs the operation when it is due.
func (d *operation) arrive() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.do == nil {
		return
	}
	if d.after--; d.after < 0 {
		d.do()
		d.do = nil
	}
}

// meanwhile runs a pass and an operation of a third party during it.
func (h *history) meanwhile(t *rapid.T) {
	id := anyID(t)
	do := rapid.SampledFrom([]func(string){h.remove, h.touch, h.label, h.own, h.move, h.tenantComesOrGoes, h.vnfGoes}).Draw(t, "operation")
	h.operation.plan(rapid.IntRange(0, 4).Draw(t, "after"), func() { do(id) })
	h.pass(t, anyGuards(t))
}

// act writes to a document if A&AI accepts that, and records it.
func (h *history) act(id, action string, body map[string]any) {
	if h.Act(simulator.Action{Action: action, URI: key(id).Path(), Body: body}) == nil {
		h.look(id)
	}
}

// remove deletes a document of any owner.
func (h *history) remove(id string) { h.act(id, "delete", nil) }

// touch gives a document another version.
func (h *history) touch(id string) {
	if _, ok := h.Get(key(id).Path()); ok {
		h.act(id, "patch", map[string]any{"name": "touched"})
	}
}

// label adds a label of others to a document.
func (h *history) label(id string) {
	if labels, ok := h.labels(id); ok {
		h.act(id, "patch", map[string]any{"labels": append(labels, "team=green")})
	}
}

// own creates a document of another owner, if its place was free when the pass began and still is.
func (h *history) own(id string) {
	if _, ok := h.Get(key(id).Path()); !ok && !h.operation.existed[id] {
		h.act(id, "put", foreign)
	}
}

// look records a document after an operation.
func (h *history) look(id string) {
	d, ok := h.Get(key(id).Path())
	if !ok {
		delete(h.operation.before, id)
	} else if h.operation.before != nil {
		h.operation.before[id] = d
	}
}

// move relates a document to another VNF.
func (h *history) move(id string) {
	d, _ := h.Get(key(id).Path())
	if _, ok := h.Get(aai.RelationshipToGenericVNF("vnf-2").Target()); !ok || !slices.Equal(targets(d), []string{"-> vnf-1"}) {
		return
	}
	if h.Act(simulator.Action{Action: "delete", URI: edgeOf(id), Body: edgeTo("vnf-1")}, simulator.Action{Action: "put", URI: edgeOf(id), Body: edgeTo("vnf-2")}) == nil {
		h.look(id)
	}
}

// tenantComesOrGoes deletes the tenant with all its documents, or creates it again.
func (h *history) tenantComesOrGoes(string) {
	if _, ok := h.Get(tenant.Path()); !ok {
		h.seed(simulator.Tenant(tenant.CloudOwner, tenant.CloudRegionID, tenant.TenantID))
		return
	}
	for id := range h.all() {
		h.remove(id)
	}
	// A&AI refuses this if a document has been created meanwhile.
	_ = h.Act(simulator.Action{Action: "delete", URI: tenant.Path()})
}

// vnfGoes deletes the VNF to which documents are related.
func (h *history) vnfGoes(string) {
	_ = h.Act(simulator.Action{Action: "delete", URI: aai.RelationshipToGenericVNF("vnf-1").Target()}) // It may already be deleted.
}
