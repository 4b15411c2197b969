package inventory

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/mapping"
	"github.com/healthscope/healthscope/aai/sync"
	"github.com/healthscope/healthscope/controllers/scope"
)

// statuses are the desired statuses of modules. The empty status means that the status is unknown, and that the module stays as it is.
type statuses map[aai.VFModule]aai.OperationalStatus

// add adds the status that one app gives a module; the module gets the worst of all.
func (s statuses) add(m aai.VFModule, status aai.OperationalStatus) {
	if before, ok := s[m]; ok {
		status = mapping.Worse(before, status)
	}
	s[m] = status
}

// modulesOf returns what a scope says of the modules that its apps name, as far as it may link to them.
func (i *inputs) modulesOf(name types.NamespacedName, apps []scope.LinkedApp) statuses {
	if len(apps) == 0 {
		return nil
	}
	reported := statuses{}
	for _, app := range apps {
		if m, ok := mapping.Module(name.Namespace, app.Links.GenericVNFID, app.Links.VFModuleID, i.mapping); ok {
			reported.add(m, mapping.OperationalStatus(app.Summary))
		}
	}
	return reported
}

// changedVNFs returns, sorted, the VNFs of the modules whose statuses differ.
func changedVNFs(before, after statuses) []string {
	changed := map[string]bool{}
	for _, each := range []statuses{before, after} {
		for m := range each {
			was, had := before[m]
			status, has := after[m]
			if had != has || was != status {
				changed[m.GenericVNFID] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(changed))
}

// desiredModules returns what the modules of a VNF are to be, and the scopes that name them.
func (i *inputs) desiredModules(v string) (desired statuses, scopes []types.NamespacedName) {
	i.mu.Lock()
	defer i.mu.Unlock()
	desired = statuses{}
	for name, s := range i.scopes {
		named := false
		for m, status := range s.modules {
			if m.GenericVNFID == v {
				named = true
				desired.add(m, status)
			}
		}
		if named {
			scopes = append(scopes, name)
		}
	}
	maps.DeleteFunc(desired, func(_ aai.VFModule, status aai.OperationalStatus) bool { return status == "" })
	slices.SortFunc(scopes, compareNames)
	return desired, scopes
}

// vnfs returns, sorted, the VNFs of which a scope names modules; with an empty name those of all scopes.
func (i *inputs) vnfs(name types.NamespacedName) []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	found := map[string]bool{}
	for by, s := range i.scopes {
		for m := range s.modules {
			if name == (types.NamespacedName{}) || name == by {
				found[m.GenericVNFID] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// moduleStatus is the sync status of the modules of a VNF.
type moduleStatus struct {
	condition

	objects map[aai.VFModule]objectStatus
}

// recordModulesPass stores the outcome of a pass over the modules of a VNF, and notifies the scopes that name them if the explanation of a module has changed.
func (s *Status) recordModulesPass(v string, names []types.NamespacedName, r sync.ModuleReport, err error, now time.Time) {
	if s.updateModules(v, r, err, now) {
		s.notifyAll(names)
	}
}

// updateModules stores the outcome of a pass, and reports whether the explanation of a module has changed.
func (s *Status) updateModules(v string, r sync.ModuleReport, err error, now time.Time) (changed bool) {
	var missing aai.Problem
	for _, o := range r.Modules {
		if o.Reason == sync.ReasonMissingDependency {
			missing = aai.ProblemVNF
		}
	}
	m := &moduleStatus{condition: newCondition(err, missing), objects: make(map[aai.VFModule]objectStatus, len(r.Modules))}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.vnfs[v]
	if before == nil {
		before = &moduleStatus{}
	}
	for id, o := range r.Modules {
		m.objects[id] = newObjectStatus(o, before.objects[id], now)
	}
	if s.vnfs[v] = m; len(m.objects) == 0 && m.problem == "" {
		delete(s.vnfs, v)
	}
	for _, objects := range []map[aai.VFModule]objectStatus{m.objects, before.objects} {
		for id := range objects {
			changed = changed || !maps.Equal(m.explain(id), before.explain(id))
		}
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

// explainModules explains why modules that apps of the scope name are not as they should be. They are not counted: the numbers are those of resources.
func (s *Status) explainModules(why explanations, name types.NamespacedName, members []scope.AppMember) {
	if len(s.vnfs) == 0 {
		return
	}
	for _, p := range members {
		if p.Links == nil {
			continue
		}
		id, ok := mapping.Module(name.Namespace, p.Links.GenericVNFID, p.Links.VFModuleID, s.inputs.mapping)
		if m := s.vnfs[id.GenericVNFID]; ok && m != nil {
			for reason, message := range m.explain(id) {
				why.addf(reason, "%s", message)
			}
		}
	}
}
