package deploy

import (
	"cmp"
	"slices"

	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// statusValue is how EMCO stores the status of a resource.
type statusValue struct{ Status appcontext.ResourceStatus }

// target returns an app in a cluster of the plan.
func (p *Plan) target(app, cluster string) Target {
	for _, a := range p.Apps {
		for _, t := range a.Targets {
			if a.Name == app && t.Cluster == cluster {
				return t
			}
		}
	}
	return Target{App: app, Cluster: cluster}
}

// place returns where the states of an app in a cluster are kept.
func (p *Plan) place(app, cluster string) appcontext.Handle {
	return appcontext.Place{ContextID: p.statusID(), App: app, Cluster: cluster}.Handle()
}

func (p *Plan) statusID() string { return cmp.Or(p.StatusID, p.ID) }

// missing returns the keys without which states have no place: those of an app and a cluster that the context under which
// states are kept does not have.
func (p *Plan) missing(app, cluster string) []appcontext.Write {
	var writes []appcontext.Write
	for _, w := range []appcontext.Write{
		{Handle: appcontext.ContextHandle(p.statusID()).Level("app/" + app), Value: app},
		{Handle: p.place(app, cluster), Value: cluster},
	} {
		if p.observed.absent(w.Handle) {
			writes = append(writes, w)
		}
	}
	return writes
}

// pending returns the keys that say that a resource is begun with. EMCO gives a resource that is missing the value "nil".
func (p *Plan) pending(app, cluster, name string) []appcontext.Write {
	h := p.place(app, cluster).Level("resource/" + name)
	var writes []appcontext.Write
	if p.observed.absent(h) {
		writes = append(writes, appcontext.Write{Handle: h, Value: "nil"})
	}
	return append(writes,
		appcontext.Write{Handle: h.Level("status"), Value: statusValue{appcontext.ResourcePending}},
		appcontext.Write{Handle: h.Level("reference"), Value: p.ID})
}

// Begin returns the keys that say that an app in a cluster is begun with.
func (p *Plan) Begin(app, cluster string) []appcontext.Write {
	writes := append(p.missing(app, cluster), appcontext.Write{Handle: p.place(app, cluster).Level("reference"), Value: p.ID})
	t := p.target(app, cluster)
	for _, r := range slices.Concat(t.Definitions, t.Resources) {
		if r.Status == "" { // Otherwise it was begun with before a restart, or is to be left as it is.
			writes = append(writes, p.pending(app, cluster, r.Name)...)
		}
	}
	return writes
}

// BeginHook returns the keys that say that an object of a hook is begun with.
func (p *Plan) BeginHook(s Step) []appcontext.Write {
	return append(p.missing(s.App, s.Cluster), p.pending(s.App, s.Cluster, s.Resource.Name)...)
}

// Result returns the keys that say what became of a resource. A problem is kept beside its status, in a key of our own.
func (p *Plan) Result(s Step, status appcontext.ResourceStatus, problem string) []appcontext.Write {
	r := p.place(s.App, s.Cluster).Level("resource/" + s.Resource.Name)
	h := r.Level("status")
	writes := []appcontext.Write{{Handle: h, Value: statusValue{status}}}
	if s.Verb == VerbDelete || s.Verb == VerbDeleteHook { // It may have been applied by another context.
		writes = append(writes, appcontext.Write{Handle: r.Level("reference"), Value: p.ID})
	}
	if problem != "" {
		return append(writes, appcontext.Write{Handle: h, Own: true, Value: problem})
	}
	return append(writes, appcontext.Write{Handle: h, Own: true})
}

// Reached returns the key that says how a cluster was found, in the context of the event.
func (p *Plan) Reached(app, cluster string, c appcontext.Connectivity) appcontext.Write {
	h := appcontext.Place{ContextID: p.ID, App: app, Cluster: cluster}.Handle()
	return appcontext.Write{Handle: h.Level("readystatus"), Value: c}
}
