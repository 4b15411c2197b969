package sync

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/client"
	"github.com/healthscope/healthscope/aai/plan"
)

// moduleMaxAge is how old the knowledge of a module may be when it is changed: A&AI compares no version then, and what others have set must not be overwritten unseen.
const moduleMaxAge = 5 * time.Second

// WrittenStatus is a write of a module's operational-status, for the audit.
type WrittenStatus struct {
	plan.StatusChange
	// TransactionID is the X-TransactionId of the request.
	TransactionID string
	// Err is why it was not done, or why it is not known; nil when A&AI has acknowledged it.
	Err error
}

// ModuleReport is the outcome of a pass over the modules of a VNF.
type ModuleReport struct {
	// Modules is the standing of each desired module.
	Modules map[aai.VFModule]Object
	// Written counts the modules that this pass has changed.
	Written int
	// NextPass is when there will be something to do even if nothing changes.
	NextPass time.Time
}

// moduleMemory is what is remembered about the modules of a VNF between passes. It belongs to the pass that holds turn.
type moduleMemory struct {
	// due is true when a resync was asked for.
	due  atomic.Bool
	turn chan struct{}
	// known are the modules that A&AI has, as they were read or written last, and read is when they were read; zero when they are to be read again.
	known map[aai.VFModule]aai.VFModuleStatus
	read  time.Time
	// resynced is when they were read because that was due.
	resynced time.Time
	// refused are the modules that A&AI will not change to a status, and why.
	refused map[aai.VFModule]refusal
}

// refusal says why A&AI will not change a module to a status.
type refusal struct {
	to  aai.OperationalStatus
	err error
}

// SyncModules makes one pass over the modules of a VNF: it gives those that A&AI has the desired operational-status, where
// they have another one, and leaves all other modules, and all else of these, alone. It creates none. A module that does
// not exist waits, and is looked for again after the DependencyInterval.
//
// Errors are those of Sync.
func (s *Syncer) SyncModules(ctx context.Context, vnfID string, desired map[aai.VFModule]aai.OperationalStatus) (ModuleReport, error) {
	for m := range desired {
		if m.GenericVNFID != vnfID {
			return ModuleReport{}, fmt.Errorf("cannot synchronize the modules of generic-vnf %q: module %q is of another", vnfID, m)
		}
	}
	memory := s.moduleMemory(vnfID)
	select {
	case memory.turn <- struct{}{}:
		defer func() { <-memory.turn }()
	case <-ctx.Done():
		return ModuleReport{}, fmt.Errorf("cannot synchronize the modules of generic-vnf %q: %w", vnfID, ctx.Err())
	}
	p := &modulePass{syncer: s, moduleMemory: memory, vnf: vnfID, desired: desired, now: s.options.Clock(), failed: map[aai.VFModule]error{}}
	if len(desired) > 0 {
		p.run(ctx)
	} else { // What is kept of VNFs that come and go would grow and grow.
		s.mu.Lock()
		delete(s.vnfs, vnfID)
		s.mu.Unlock()
	}
	s.probing.learn(p.halt)
	return p.report(), p.err()
}

// ResyncModules makes the next pass over the modules of a VNF read them again, and try again what was given up.
func (s *Syncer) ResyncModules(vnfID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.vnfs[vnfID]; m != nil { // Else the next pass reads them anyway.
		m.due.Store(true)
	}
}

// moduleMemory returns what is remembered about the modules of a VNF.
func (s *Syncer) moduleMemory(vnfID string) *moduleMemory {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.vnfs[vnfID]
	if m == nil {
		m = &moduleMemory{turn: make(chan struct{}, 1), refused: map[aai.VFModule]refusal{}}
		s.vnfs[vnfID] = m
	}
	return m
}

// modulePass is one pass over the modules of a VNF.
type modulePass struct {
	*moduleMemory

	syncer  *Syncer
	vnf     string
	desired map[aai.VFModule]aai.OperationalStatus
	now     time.Time
	// failed are the modules that could not be changed, in a way that may pass.
	failed  map[aai.VFModule]error
	written int
	// halt is why the pass ended early.
	halt error
}

// run does the pass. A change of others must not be overwritten unseen, so what is known must be fresh before a write.
func (p *modulePass) run(ctx context.Context) {
	if p.halt = p.syncer.probing.check(ctx); p.halt != nil {
		return
	}
	o := p.syncer.options
	if p.due.Swap(false) {
		p.resynced = time.Time{}
	}
	if p.resynced.IsZero() || !p.now.Before(o.nextRead(p.resynced, p.syncer.alone)) {
		clear(p.refused)
		if p.readAll(ctx); p.halt == nil {
			p.resynced = p.now
		}
	}
	changes, missing := p.todo()
	stale := len(changes) > 0 && p.now.Sub(p.read) > moduleMaxAge || len(missing) > 0 && p.now.Sub(p.read) >= o.DependencyInterval
	unknown := slices.ContainsFunc(changes, func(c plan.StatusChange) bool { return c.ResourceVersion == "" })
	if p.halt == nil && (p.read.IsZero() || stale || unknown) {
		p.readAll(ctx)
		changes, _ = p.todo()
	}
	for _, c := range changes {
		if p.halt != nil {
			return
		}
		p.change(ctx, c)
	}
}

// todo returns what is to be changed, except what A&AI has refused, and which modules it does not have.
func (p *modulePass) todo() (changes []plan.StatusChange, missing []aai.VFModule) {
	changes, missing = plan.Modules(p.desired, p.known)
	return slices.DeleteFunc(changes, func(c plan.StatusChange) bool {
		r, refused := p.refused[c.Module]
		return refused && r.to == c.To
	}), missing
}

// readAll reads the modules of the VNF.
func (p *modulePass) readAll(ctx context.Context) {
	list, err := p.syncer.options.Client.ListVFModules(ctx, p.vnf)
	if err != nil {
		p.halt = err
		return
	}
	p.known, p.read = make(map[aai.VFModule]aai.VFModuleStatus, len(list)), p.now
	for id, status := range list {
		p.known[aai.VFModule{GenericVNFID: p.vnf, ID: id}] = status
	}
}

// change changes a module.
func (p *modulePass) change(ctx context.Context, c plan.StatusChange) {
	id := uuid.NewString()
	err := p.syncer.options.Client.SetOperationalStatus(client.WithTransaction(ctx, id), c.Module, c.To, c.ResourceVersion)
	if notSent(err) {
		p.halt = err
		return
	}
	p.syncer.options.AuditStatus(WrittenStatus{StatusChange: c, TransactionID: id, Err: err})
	if err == nil {
		p.known[c.Module] = aai.VFModuleStatus{Status: c.To} // A&AI does not tell the new version.
		p.written++
		return
	}
	switch aai.KindOf(err) {
	case aai.Rejected:
		p.refused[c.Module] = refusal{to: c.To, err: err}
	case aai.Misconfigured:
		p.halt = err
	case aai.Retry, aai.Conflict, aai.MissingDependency:
		p.read = time.Time{} // Whether it was done is not known.
		p.failed[c.Module] = err
		if outage(err) {
			p.halt = err
		}
	}
}

// report returns the outcome of the pass.
func (p *modulePass) report() ModuleReport {
	r := ModuleReport{Modules: map[aai.VFModule]Object{}, Written: p.written, NextPass: p.syncer.options.nextRead(p.resynced, p.syncer.alone)}
	for m := range p.desired {
		r.Modules[m] = p.standing(m)
		if next := p.read.Add(p.syncer.options.DependencyInterval); r.Modules[m].Reason == ReasonMissingDependency && next.Before(r.NextPass) {
			r.NextPass = next
		}
	}
	return r
}

// standing says how far a module is.
func (p *modulePass) standing(m aai.VFModule) Object {
	want := p.desired[m]
	have, exists := p.known[m]
	err := p.failed[m]
	if r, refused := p.refused[m]; refused && r.to == want {
		return Object{State: Failed, Reason: ReasonRejected, Message: r.err.Error()}
	}
	switch {
	case err != nil:
		return Object{State: Pending, Reason: ReasonUnavailable, Message: err.Error()}
	case exists && have.Status == want:
		return Object{State: Synced}
	case p.halt != nil:
		return Object{State: Pending, Reason: ReasonNotTried, Message: p.halt.Error()}
	case !exists:
		return Object{State: Pending, Reason: ReasonMissingDependency, Message: fmt.Sprintf("generic-vnf %q has no vf-module %q", m.GenericVNFID, m.ID)}
	default:
		return Object{State: Pending, Reason: ReasonNotTried}
	}
}

// err returns the error of the pass: what halted it, or else what failed for want of A&AI.
func (p *modulePass) err() error {
	err := p.halt
	if failed := slices.SortedFunc(maps.Keys(p.failed), aai.VFModule.Compare); err == nil && len(failed) > 0 {
		if err = p.failed[failed[0]]; aai.KindOf(err) != aai.Retry {
			err = keepsChanging(err)
		}
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("cannot synchronize the modules of generic-vnf %q: %w", p.vnf, err)
}
