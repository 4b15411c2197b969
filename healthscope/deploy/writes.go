package deploy

import (
	"cmp"

	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// statusValue is how EMCO stores the status of a resource.
type statusValue struct{ Status appcontext.ResourceStatus }

// placeOf returns where the states of an app in a cluster are kept.
func (p *Plan) placeOf(app, cluster string) appcontext.Handle {
	return appcontext.Place{ContextID: p.statusID(), App: app, Cluster: cluster}.Handle()
}

func (p *Plan) statusID() string { return cmp.Or(p.StatusID, p.ID) }

// missing returns the keys without which states have no place: those of an app and a cluster that the context under which
// states are kept does not have.
func (p *Plan) missing(app, cluster string) []appcontext.Write {
	var writes []appcontext.Write
	for _, w := range []appcontext.Write{
		{Handle: appcontext.ContextHandle(p.statusID()).Level("app/" + app), Value: app},
		{Handle: p.placeOf(app, cluster), Value: cluster},
	} {
		if p.observed.absent(w.Handle) {
			writes = append(writes, w)
		}
	}
	return writes
}

// pending returns the keys that say that a resource is begun with. EMCO gives a resource that is missing the value "nil".
func (p *Plan) pending(app, cluster, name string) []appcontext.Write {
	h := p.placeOf(app, cluster).Level("resource/" + name)
	status := h.Level("status")
	var writes []appcontext.Write
	if p.observed.absent(h) {
		writes = append(writes, appcontext.Write{Handle: h, Value: "nil"})
	}
	if !p.observed.absent(status) { // There may be a problem beside it.
		writes = append(writes, appcontext.Write{Handle: status, Own: true})
	}
	return append(writes,
		appcontext.Write{Handle: status, Value: statusValue{appcontext.ResourcePending}},
		appcontext.Write{Handle: h.Level("reference"), Value: p.ID})
}

// Begin returns the keys that say that an app in a cluster, or an object of a hook there, is begun with.
func (p *Plan) Begin(s Step) []appcontext.Write {
	writes := p.missing(s.App, s.Cluster)
	if s.Verb == VerbHook {
		return append(writes, p.pending(s.App, s.Cluster, s.Resource.Name)...)
	}
	if s.sequence.brings {
		writes = append(writes, appcontext.Write{Handle: p.placeOf(s.App, s.Cluster).Level("reference"), Value: p.ID})
	}
	for _, r := range s.sequence.pending {
		writes = append(writes, p.pending(s.App, s.Cluster, r.Name)...)
	}
	return writes
}

// Result returns the keys that say what became of a resource. A problem is kept beside its status, in a key of our own;
// hadProblem is true when there may be one from before.
func (p *Plan) Result(s Step, status appcontext.ResourceStatus, problem string, hadProblem bool) []appcontext.Write {
	h := p.placeOf(s.App, s.Cluster).Level("resource/" + s.Resource.Name).Level("status")
	writes := []appcontext.Write{{Handle: h, Value: statusValue{status}}}
	switch {
	case problem != "":
		writes = append(writes, appcontext.Write{Handle: h, Own: true, Value: problem})
	case hadProblem:
		writes = append(writes, appcontext.Write{Handle: h, Own: true})
	}
	return writes
}

// Reached returns the key that says how a cluster was found, in the context of the event.
func (p *Plan) Reached(app, cluster string, c appcontext.Connectivity) appcontext.Write {
	h := appcontext.Place{ContextID: p.ID, App: app, Cluster: cluster}.Handle()
	return appcontext.Write{Handle: h.Level("readystatus"), Value: c}
}
