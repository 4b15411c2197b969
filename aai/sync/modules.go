package sync

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/semaphore"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/client"
	"github.com/healthscope/healthscope/aai/plan"
)

// moduleMaxAge is the maximum age of the observed state of a module before a change. A&AI does not compare versions for it, and changes of others
// must not be overwritten without having been read.
const moduleMaxAge = 5 * time.Second

// StatusWriteEvent is a write of a module's operational-status, for the audit.
type StatusWriteEvent struct {
	plan.StatusChange
	// TransactionID is the X-TransactionId of the request.
	TransactionID string
	// Err is why the write failed, or why its result is not known; nil when A&AI has acknowledged it.
	Err error
}

// ModuleReport is the outcome of a pass over the modules of a VNF.
type ModuleReport struct {
	// Modules is the sync status of each desired module.
	Modules map[aai.VFModule]ObjectStatus
	// Written is the number of modules that this pass has changed.
	Written int
	// NextPass is when there will be something to do even if nothing changes.
	NextPass time.Time
}

// moduleState is the state about the modules of a VNF between passes. It belongs to the pass that holds sem.
type moduleState struct {
	// resync is true when a resync was requested.
	resync atomic.Bool
	sem    *semaphore.Weighted
	// observed are the modules in A&AI, as last read or written. readAt is the time of the last read; zero when a read is due.
	observed map[aai.VFModule]aai.VFModuleStatus
	readAt   time.Time
	// resynced is the time of the last read that was due.
	resynced time.Time
	// rejected are the modules whose change A&AI has rejected.
	rejected map[aai.VFModule]rejection
}

// rejection is a status of a module that A&AI has rejected, with the error.
type rejection struct {
	to  aai.OperationalStatus
	err error
}

// SyncModules makes one pass over the modules of a VNF. It sets the operational-status of existing modules to the desired one if it differs. It
// changes no other module and no other field, and creates no module. It looks for a module that does not exist again after the
// DependencyInterval.
//
// Errors are those of Sync.
func (s *Syncer) SyncModules(ctx context.Context, vnfID string, desired map[aai.VFModule]aai.OperationalStatus) (ModuleReport, error) {
	for m := range desired {
		if m.GenericVNFID != vnfID {
			return ModuleReport{}, fmt.Errorf("cannot synchronize the modules of generic-vnf %q: module %q is of another", vnfID, m)
		}
	}
	state := stateOf(s, s.vnfs, vnfID, newModuleState)
	if err := state.sem.Acquire(ctx, 1); err != nil {
		return ModuleReport{}, fmt.Errorf("cannot synchronize the modules of generic-vnf %q: %w", vnfID, err)
	}
	defer state.sem.Release(1)
	p := &modulePass{Syncer: s, moduleState: state, vnf: vnfID, desired: desired, now: s.options.Clock(), failed: map[aai.VFModule]error{}}
	if len(desired) > 0 {
		p.run(ctx)
	} else { // What is kept of VNFs that come and go would grow and grow.
		s.mu.Lock()
		delete(s.vnfs, vnfID)
		s.mu.Unlock()
	}
	s.prober.report(p.haltErr)
	return p.report(), p.err()
}

// ResyncModules makes the next pass over the modules of a VNF read them again, and retry rejected changes.
func (s *Syncer) ResyncModules(vnfID string) {
	stateOf(s, s.vnfs, vnfID, newModuleState).resync.Store(true)
}

func newModuleState() *moduleState {
	return &moduleState{sem: semaphore.NewWeighted(1), rejected: map[aai.VFModule]rejection{}}
}

// modulePass is one pass over the modules of a VNF.
type modulePass struct {
	*Syncer
	*moduleState

	vnf     string
	desired map[aai.VFModule]aai.OperationalStatus
	now     time.Time
	// failed are the modules whose change failed with an error that may be temporary.
	failed  map[aai.VFModule]error
	written int
	// haltErr is why the pass ended early.
	haltErr error
}

// run makes the pass. It reads the modules again before a write if the observed state is older than moduleMaxAge.
func (p *modulePass) run(ctx context.Context) {
	if p.haltErr = p.prober.check(ctx); p.haltErr != nil {
		return
	}
	if p.resync.Swap(false) {
		p.resynced = time.Time{}
	}
	if p.resynced.IsZero() || !p.now.Before(p.nextResync(p.resynced)) {
		clear(p.rejected)
		if p.readAll(ctx); p.haltErr == nil {
			p.resynced = p.now
		}
	}
	changes, missing := p.pendingChanges()
	stale := len(changes) > 0 && p.now.Sub(p.readAt) > moduleMaxAge || len(missing) > 0 && p.now.Sub(p.readAt) >= DependencyInterval
	versionUnknown := slices.ContainsFunc(changes, func(c plan.StatusChange) bool { return c.ResourceVersion == "" })
	if p.haltErr == nil && (p.readAt.IsZero() || stale || versionUnknown) {
		p.readAll(ctx)
		changes, _ = p.pendingChanges()
	}
	for _, c := range changes {
		if p.haltErr != nil {
			return
		}
		p.change(ctx, c)
	}
}

// pendingChanges returns the changes to make, without those that A&AI has rejected, and the modules that do not exist.
func (p *modulePass) pendingChanges() (changes []plan.StatusChange, missing []aai.VFModule) {
	changes, missing = plan.Modules(p.desired, p.observed)
	return slices.DeleteFunc(changes, func(c plan.StatusChange) bool {
		r, rejected := p.rejected[c.Module]
		return rejected && r.to == c.To
	}), missing
}

// readAll reads the modules of the VNF.
func (p *modulePass) readAll(ctx context.Context) {
	observed, err := p.options.Client.ListVFModules(ctx, p.vnf)
	if err != nil {
		p.haltErr = err
		return
	}
	p.observed, p.readAt = observed, p.now
}

// change changes a module.
func (p *modulePass) change(ctx context.Context, c plan.StatusChange) {
	id := uuid.NewString()
	err := p.options.Client.SetOperationalStatus(client.WithTransaction(ctx, id), c.Module, c.To, c.ResourceVersion)
	if aai.NotSent(err) {
		p.haltErr = err
		return
	}
	p.options.AuditStatus(StatusWriteEvent{StatusChange: c, TransactionID: id, Err: err})
	if err == nil {
		p.observed[c.Module] = aai.VFModuleStatus{Status: c.To} // A&AI does not tell the new version.
		p.written++
		return
	}
	switch aai.KindOf(err) {
	case aai.Rejected:
		p.rejected[c.Module] = rejection{to: c.To, err: err}
	case aai.Misconfigured:
		p.haltErr = err
	case aai.Retry, aai.Conflict, aai.MissingDependency:
		p.readAt = time.Time{} // Whether it was done is not known.
		p.failed[c.Module] = err
		if isOutage(err) {
			p.haltErr = err
		}
	}
}

// report returns the outcome of the pass.
func (p *modulePass) report() ModuleReport {
	r := ModuleReport{Modules: map[aai.VFModule]ObjectStatus{}, Written: p.written, NextPass: p.nextResync(p.resynced)}
	for m := range p.desired {
		r.Modules[m] = p.statusOf(m)
		if next := p.readAt.Add(DependencyInterval); r.Modules[m].Reason == ReasonMissingDependency && next.Before(r.NextPass) {
			r.NextPass = next
		}
	}
	return r
}

// statusOf returns the sync status of a module.
func (p *modulePass) statusOf(m aai.VFModule) ObjectStatus {
	want := p.desired[m]
	have, exists := p.observed[m]
	err := p.failed[m]
	if r, rejected := p.rejected[m]; rejected && r.to == want {
		return ObjectStatus{State: Failed, Reason: ReasonRejected, Message: r.err.Error()}
	}
	switch {
	case err != nil:
		return ObjectStatus{State: Pending, Reason: ReasonUnavailable, Message: err.Error()}
	case exists && have.Status == want:
		return ObjectStatus{State: Synced}
	case p.haltErr != nil:
		return notTried(p.haltErr)
	case !exists:
		return ObjectStatus{State: Pending, Reason: ReasonMissingDependency, Message: fmt.Sprintf("generic-vnf %q has no vf-module %q", m.GenericVNFID, m.ID)}
	default:
		return ObjectStatus{State: Pending, Reason: ReasonNotTried}
	}
}

// err returns the error of the pass: the error that halted it, or else that of a change that failed because A&AI is unavailable.
func (p *modulePass) err() error {
	err := p.haltErr
	if failed := slices.SortedFunc(maps.Keys(p.failed), aai.VFModule.Compare); err == nil && len(failed) > 0 {
		if err = p.failed[failed[0]]; aai.KindOf(err) != aai.Retry {
			err = conflictAsRetry(err)
		}
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("cannot synchronize the modules of generic-vnf %q: %w", p.vnf, err)
}

// notTried is the status of what had no turn because a pass was halted.
func notTried(haltErr error) ObjectStatus {
	return ObjectStatus{State: Pending, Reason: ReasonNotTried, Message: haltErr.Error()}
}
