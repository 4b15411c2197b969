package deploy

import (
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

func (p *Plan) place(app, cluster string) appcontext.Handle {
	return appcontext.Place{ContextID: p.ID, App: app, Cluster: cluster}.Handle()
}

// Begin returns the keys that say that an app in a cluster is begun with.
func (p *Plan) Begin(app, cluster string) []appcontext.Write {
	at, t := p.place(app, cluster), p.target(app, cluster)
	writes := []appcontext.Write{{Handle: at.Level("reference"), Value: p.ID}}
	for _, r := range slices.Concat(t.Definitions, t.Resources) {
		if r.Status != "" { // It was begun with before a restart.
			continue
		}
		h := at.Level("resource/" + r.Name)
		writes = append(writes,
			appcontext.Write{Handle: h.Level("status"), Value: statusValue{appcontext.ResourcePending}},
			appcontext.Write{Handle: h.Level("reference"), Value: p.ID})
	}
	return writes
}

// BeginHook returns the keys that say that an object of a hook is begun with.
func (p *Plan) BeginHook(s Step) []appcontext.Write {
	h := p.place(s.App, s.Cluster).Level("resource/" + s.Resource.Name)
	return []appcontext.Write{{Handle: h.Level("status"), Value: statusValue{appcontext.ResourcePending}}, {Handle: h.Level("reference"), Value: p.ID}}
}

// Result returns the keys that say what became of a resource. A problem is kept beside its status, in a key of our own.
func (p *Plan) Result(s Step, status appcontext.ResourceStatus, problem string) []appcontext.Write {
	h := p.place(s.App, s.Cluster).Level("resource/" + s.Resource.Name).Level("status")
	writes := []appcontext.Write{{Handle: h, Value: statusValue{status}}}
	if problem != "" {
		return append(writes, appcontext.Write{Handle: h, Own: true, Value: problem})
	}
	return append(writes, appcontext.Write{Handle: h, Own: true})
}

// Reached returns the key that says how a cluster was found.
func (p *Plan) Reached(app, cluster string, c appcontext.Connectivity) appcontext.Write {
	return appcontext.Write{Handle: p.place(app, cluster).Level("readystatus"), Value: c}
}
