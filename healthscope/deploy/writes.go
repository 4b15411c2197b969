package deploy

import (
	"cmp"

	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// statusValue is the stored form of the status of a resource, as in EMCO.
type statusValue struct{ Status appcontext.ResourceStatus }

// clusterHandle returns where the states of an app in a cluster are kept.
func (p *Plan) clusterHandle(app, cluster string) appcontext.Handle {
	return appcontext.AppInCluster{ContextID: p.statusID(), App: app, Cluster: cluster}.Handle()
}

func (p *Plan) statusID() string { return cmp.Or(p.StatusID, p.ID) }

// missingWrites returns the writes of the app's and the cluster's own keys that the status context does not have: states are kept
// below them.
func (p *Plan) missingWrites(app, cluster string) []appcontext.Write {
	var writes []appcontext.Write
	for _, w := range []appcontext.Write{
		{Handle: appcontext.ContextHandle(p.statusID()).Level("app/" + app), Value: app},
		{Handle: p.clusterHandle(app, cluster), Value: cluster},
	} {
		if p.isAbsent(w.Handle) {
			writes = append(writes, w)
		}
	}
	return writes
}

// pendingWrites returns the writes that set a resource to Pending. A resource that is missing gets the value "nil", as in EMCO.
func (p *Plan) pendingWrites(app, cluster, name string) []appcontext.Write {
	h := p.clusterHandle(app, cluster).Level("resource/" + name)
	status := h.Level("status")
	var writes []appcontext.Write
	if p.isAbsent(h) {
		writes = append(writes, appcontext.Write{Handle: h, Value: "nil"})
	}
	if !p.isAbsent(status) { // There may be a problem beside it.
		writes = append(writes, appcontext.Write{Handle: status, Sidecar: true})
	}
	return append(writes,
		appcontext.Write{Handle: status, Value: statusValue{appcontext.ResourcePending}},
		appcontext.Write{Handle: h.Level("reference"), Value: p.ID})
}

// Begin returns the writes that record that the work of an app in a cluster, or of an object of a hook there, begins.
func (p *Plan) Begin(s Step) []appcontext.Write {
	writes := p.missingWrites(s.App, s.Cluster)
	if s.Verb == VerbHook {
		return append(writes, p.pendingWrites(s.App, s.Cluster, s.Resource.Name)...)
	}
	if s.sequence.applies {
		writes = append(writes, appcontext.Write{Handle: p.clusterHandle(s.App, s.Cluster).Level("reference"), Value: p.ID})
	}
	for _, r := range s.sequence.pending {
		writes = append(writes, p.pendingWrites(s.App, s.Cluster, r.Name)...)
	}
	return writes
}

// Result returns the keys that say what became of a resource. A problem is kept beside its status, in a key of our own;
// hadProblem is true when there may be one from before.
func (p *Plan) Result(s Step, status appcontext.ResourceStatus, problem string, hadProblem bool) []appcontext.Write {
	h := p.clusterHandle(s.App, s.Cluster).Level("resource/" + s.Resource.Name).Level("status")
	writes := []appcontext.Write{{Handle: h, Value: statusValue{status}}}
	switch {
	case problem != "":
		writes = append(writes, appcontext.Write{Handle: h, Sidecar: true, Value: problem})
	case hadProblem:
		writes = append(writes, appcontext.Write{Handle: h, Sidecar: true})
	}
	return writes
}

// Read returns the write that stores an object that was read, in the context of the event.
func (p *Plan) Read(s Step, object string) appcontext.Write {
	h := appcontext.AppInCluster{ContextID: p.ID, App: s.App, Cluster: s.Cluster}.Handle()
	return appcontext.Write{Handle: h.Level("resource/" + s.Resource.Name).Level("definition"), Value: object}
}

// ConnectivityWrite returns the key that says how a cluster was found, in the context of the event.
func (p *Plan) ConnectivityWrite(app, cluster string, c appcontext.Connectivity) appcontext.Write {
	h := appcontext.AppInCluster{ContextID: p.ID, App: app, Cluster: cluster}.Handle()
	return appcontext.Write{Handle: h.Level("readystatus"), Value: c}
}

// isAbsent reports whether a handle of the status context has no value.
func (p *Plan) isAbsent(h appcontext.Handle) bool {
	if p.contexts.Status == nil {
		return false
	}
	_, ok := p.contexts.Status.Stored(h)
	return !ok
}
