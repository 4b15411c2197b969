package inventory

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/mapping"
	"github.com/healthscope/healthscope/aai/sync"
	"github.com/healthscope/healthscope/controllers/scope"
)

// moduleStatus is the sync status of the modules of a VNF.
type moduleStatus struct {
	condition

	objects map[aai.VFModule]objectStatus
}

// recordModulesPass stores the outcome of a pass over the modules of a VNF, and notifies the scopes that name them if the explanation of a module has changed.
func (s *Status) recordModulesPass(v vnf, names []types.NamespacedName, r sync.ModuleReport, err error, now time.Time) {
	if s.updateModules(v, r, err, now) {
		s.notifyAll(names)
	}
}

// updateModules stores the outcome of a pass, and reports whether the explanation of a module has changed.
func (s *Status) updateModules(v vnf, r sync.ModuleReport, err error, now time.Time) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.vnfs[v]
	if before == nil {
		before = &moduleStatus{}
	}
	var missing aai.Problem
	for _, o := range r.Modules {
		if o.Reason == sync.ReasonMissingDependency {
			missing = aai.ProblemVNF
		}
	}
	m := &moduleStatus{condition: newCondition(err, missing), objects: make(map[aai.VFModule]objectStatus, len(r.Modules))}
	for id, o := range r.Modules {
		m.objects[id] = newObjectStatus(o, before.objects[id], now)
		changed = changed || !maps.Equal(m.explain(id), before.explain(id))
	}
	for id := range before.objects {
		changed = changed || !maps.Equal(m.explain(id), before.explain(id))
	}
	if s.vnfs[v] = m; len(m.objects) == 0 && m.problem == "" {
		delete(s.vnfs, v)
	}
	return changed
}

// explain says why a module is not as it should be. There is no explanation when it is, or when no scope names it.
func (m *moduleStatus) explain(id aai.VFModule) explanations {
	why := explanations{}
	if o := m.objects[id]; o.State == sync.Pending || o.State == sync.Failed {
		if m.reason != "" {
			why.addf(m.reason, "%s", m.message)
		}
		why.addf(reasonOf(o.ObjectStatus), "operational-status of vf-module %q: %s", id, unsyncedMessage(o.ObjectStatus))
	}
	return why
}

// addModules explains in a report why modules that apps of the scope name are not as they should be. They are not counted: the numbers are those of resources.
func (s *Status) addModules(r *report, name types.NamespacedName, members []scope.AppMember) {
	if len(s.vnfs) == 0 {
		return
	}
	for _, p := range members {
		if p.Links == nil {
			continue
		}
		id, ok := mapping.Module(name.Namespace, p.Links.GenericVNFID, p.Links.VFModuleID, s.inputs.mapping)
		m := s.vnfs[vnf(id.GenericVNFID)]
		if !ok || m == nil {
			continue
		}
		for reason, message := range m.explain(id) {
			r.why.addf(reason, "%s", message)
		}
	}
}

// unsyncedMessage returns why an object is not synced.
func unsyncedMessage(o sync.ObjectStatus) string {
	if o.Message == "" { // It was added after the last pass began, or that pass ended before trying it.
		return "waits for its turn"
	}
	return o.Message
}
