package sync

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/client"
	"github.com/healthscope/healthscope/aai/plan"
)

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

// SyncModules makes one pass over the modules of a VNF: it reads them, and sets the operational-status of existing modules to the desired one if
// it differs. It changes no other module and no other field, and creates no module. A module that does not exist is due again after the
// DependencyInterval. Nothing is kept between passes: A&AI does not compare versions of modules, so changes of others must be read first.
//
// Errors are those of Sync. The caller must not begin a pass over a VNF while another one is under way.
func (s *Syncer) SyncModules(ctx context.Context, vnfID string, desired map[aai.VFModule]aai.OperationalStatus) (ModuleReport, error) {
	for m := range desired {
		if m.GenericVNFID != vnfID {
			return ModuleReport{}, fmt.Errorf("cannot synchronize the modules of generic-vnf %q: module %q is of another", vnfID, m)
		}
	}
	now := s.options.Clock()
	r := ModuleReport{Modules: make(map[aai.VFModule]ObjectStatus, len(desired)), NextPass: s.nextResync(now)}
	if len(desired) == 0 {
		return r, nil
	}
	current, haltErr := map[aai.VFModule]aai.VFModuleStatus{}, s.prober.check(ctx)
	if haltErr == nil {
		current, haltErr = s.options.Client.ListVFModules(ctx, vnfID)
	}
	for m, want := range desired {
		switch have, exists := current[m]; {
		case haltErr != nil:
			r.Modules[m] = notTried(haltErr)
		case !exists:
			r.Modules[m] = ObjectStatus{State: Pending, Reason: ReasonMissingDependency, Message: fmt.Sprintf("generic-vnf %q has no vf-module %q", m.GenericVNFID, m.ID)}
			r.NextPass = now.Add(DependencyInterval)
		case have.Status == want:
			r.Modules[m] = ObjectStatus{State: Synced}
		}
	}
	var failed error
	if haltErr == nil {
		changes, _ := plan.Modules(desired, current)
		failed, haltErr = s.changeModules(ctx, changes, &r)
	}
	s.prober.report(haltErr)
	if haltErr != nil {
		failed = haltErr
	}
	if failed != nil {
		return r, fmt.Errorf("cannot synchronize the modules of generic-vnf %q: %w", vnfID, failed)
	}
	return r, nil
}

// changeModules makes the changes until one fails so that others would fail too, which is haltErr. failed is the first other error that may be
// temporary.
func (s *Syncer) changeModules(ctx context.Context, changes []plan.StatusChange, r *ModuleReport) (failed, haltErr error) {
	for _, c := range changes {
		if haltErr != nil {
			r.Modules[c.Module] = notTried(haltErr)
			continue
		}
		err := s.changeModule(ctx, c)
		switch kind := aai.KindOf(err); {
		case err == nil:
			r.Written++
			r.Modules[c.Module] = ObjectStatus{State: Synced}
		case aai.NotSent(err) || kind == aai.Misconfigured:
			haltErr = err
			r.Modules[c.Module] = notTried(err)
		case kind == aai.Rejected:
			r.Modules[c.Module] = ObjectStatus{State: Failed, Reason: ReasonRejected, Message: err.Error()}
		default:
			r.Modules[c.Module] = ObjectStatus{State: Pending, Reason: ReasonUnavailable, Message: err.Error()}
			if kind != aai.Retry {
				err = conflictAsRetry(err)
			}
			if failed == nil {
				failed = err
			}
			if isOutage(err) {
				haltErr = err
			}
		}
	}
	return failed, haltErr
}

// changeModule changes a module.
func (s *Syncer) changeModule(ctx context.Context, c plan.StatusChange) error {
	id := uuid.NewString()
	err := s.options.Client.SetOperationalStatus(client.WithTransaction(ctx, id), c.Module, c.To, c.ResourceVersion)
	if !aai.NotSent(err) {
		s.options.AuditStatus(StatusWriteEvent{StatusChange: c, TransactionID: id, Err: err})
	}
	return err
}

// notTried is the status of what had no turn because a pass was halted.
func notTried(haltErr error) ObjectStatus {
	return ObjectStatus{State: Pending, Reason: ReasonNotTried, Message: haltErr.Error()}
}
