package deploy

import (
	"slices"

	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// observed is what is known of resources before the work of an event. Statuses that were written before the revision begun
// are of an earlier event, and those that another context has written since are of its event: a program that is killed may
// leave several events begun.
type observed struct {
	Contexts

	begun int64
}

// find returns a resource in a context.
func find(s *appcontext.Snapshot, app, cluster, name string) (appcontext.Resource, bool) {
	if s == nil {
		return appcontext.Resource{}, false
	}
	a, ok := s.App(app)
	if !ok {
		return appcontext.Resource{}, false
	}
	c, ok := a.Cluster(cluster)
	if !ok {
		return appcontext.Resource{}, false
	}
	return c.Resource(name)
}

// status returns what etcd says of a resource, if it was written by the event that is being handled. An update takes what is
// applied as its own, too.
func (o observed) status(app, cluster string, r Resource) (appcontext.ResourceStatus, error) {
	stored, ok := find(o.Status, app, cluster, r.Name)
	if !ok {
		return "", nil
	}
	status, err := stored.Status()
	if err != nil {
		return "", err
	}
	by, err := stored.Reference()
	switch {
	case err != nil:
		return "", err
	case stored.Revision("status") > o.begun && by == o.Acted.ID():
		return status, nil
	case o.Other != nil && status == appcontext.ResourceApplied && o.same(by, app, cluster, r):
		return status, nil
	default:
		return "", nil
	}
}

// same reports whether the context by which a resource was applied has it byte by byte as it is to be. Of a context that has not
// been read that is not known.
func (o observed) same(by, app, cluster string, r Resource) bool {
	for _, s := range []*appcontext.Snapshot{o.Other, o.Acted, o.Status} {
		if s.ID() == by {
			applied, ok := find(s, app, cluster, r.Name)
			if !ok {
				return false
			}
			body, err := applied.Body()
			return err == nil && body == r.Body
		}
	}
	return false
}

// absent returns whether there is nothing at a handle of the context under which states are kept.
func (o observed) absent(h appcontext.Handle) bool {
	if o.Status == nil {
		return false
	}
	_, ok := o.Status.Stored(h)
	return !ok
}

// Update returns the steps that bring what a plan wants into clusters where the context before has brought something, without
// those that are done and those whose outcome is there. It runs no hooks, as EMCO's does not.
func (p *Plan) Update() *Progress {
	return p.bring(func(t Target) *lane {
		t.Hooks = nil
		return t.instantiation()
	})
}

// Removal returns the steps that delete what a plan wants and the context after it, in its own plan, does not. The bundle of
// an app goes with its last resource in a cluster.
func (p *Plan) Removal(after *Plan) *Progress {
	work := &Progress{}
	for _, a := range p.Apps {
		for _, t := range a.Targets {
			if l := t.removal(after.target(t.App, t.Cluster)); len(l.steps) > 0 || l.refused {
				work.targets = append(work.targets, l)
			}
		}
	}
	return work
}

// removal returns the steps that delete what is not in the same app and cluster of the context after.
func (t Target) removal(after Target) *lane {
	l := &lane{app: t.App}
	kept := slices.Concat(after.Definitions, after.Resources)
	for _, r := range slices.Backward(t.Resources) {
		if !slices.ContainsFunc(kept, func(k Resource) bool { return k.Name == r.Name }) {
			l.add(t, VerbDelete, r)
		}
	}
	if len(kept) == 0 {
		l.steps = append(l.steps, Step{Verb: VerbDeleteBundle, App: t.App, Cluster: t.Cluster})
	}
	return l.resume()
}
