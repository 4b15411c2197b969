package deploy

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// observed is what is known of resources before the work of an event. Statuses that were written before the revision begun
// are of an earlier event, and those that another context has written since are of its event.
type observed struct {
	Contexts

	begun int64
	// bodies has each object once, by its value in etcd: most are the same in all clusters.
	bodies map[string]string
}

// body returns the object of a resource.
func (o observed) body(r appcontext.Resource) (string, error) {
	raw, _ := r.Value()
	if body, isKnown := o.bodies[string(raw)]; isKnown {
		return body, nil
	}
	body, err := r.Body()
	if err == nil {
		o.bodies[string(raw)] = body
	}
	return body, err
}

// stored returns in a context the resource that is wanted in the context of the event.
func (o observed) stored(s *appcontext.Snapshot, app, cluster string, wanted appcontext.Resource) (appcontext.Resource, bool) {
	switch s {
	case o.Acted:
		return wanted, true
	case nil:
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
	return c.Resource(wanted.Name())
}

// find enters in a resource what etcd says of it. wanted is the resource in the context of the event.
func (o observed) find(app, cluster string, wanted appcontext.Resource, r *Resource) error {
	have, ok := o.stored(o.Status, app, cluster, wanted)
	if !ok {
		return nil
	}
	status, err := have.Status()
	if err != nil {
		return err
	}
	by, err := have.Reference()
	if err != nil {
		return err
	}
	if have.Revision("status") > o.begun && by == o.Acted.ID() {
		r.Status = status
	}
	r.There = status == appcontext.ResourceApplied && o.same(by, app, cluster, wanted)
	return nil
}

// same reports whether the context by which a resource was applied has it byte by byte as it is to be. Of a context that has not
// been read that is not known.
func (o observed) same(by, app, cluster string, wanted appcontext.Resource) bool {
	for _, s := range append([]*appcontext.Snapshot{o.Acted, o.Status}, o.Others...) {
		if s.ID() == by {
			applied, ok := o.stored(s, app, cluster, wanted)
			if !ok {
				return false
			}
			have, _ := applied.Value()
			want, _ := wanted.Value()
			return bytes.Equal(have, want)
		}
	}
	return false
}

// kept returns what other contexts of the deployment have.
func (c Contexts) kept() (map[place][]string, error) {
	kept := map[place][]string{}
	for _, s := range c.Others {
		for _, a := range s.Apps() {
			for _, cluster := range a.Clusters() {
				names, err := namesOf(cluster)
				if err != nil {
					return nil, fmt.Errorf("context %q: app %q: cluster %q: %w", s.ID(), a.Name(), cluster.Name(), err)
				}
				at := place{a.Name(), cluster.Name()}
				kept[at] = append(kept[at], names...)
			}
		}
	}
	return kept, nil
}

// namesOf returns the names of the resources that a context has of an app in a cluster. Others may be there whose states it keeps.
func namesOf(c appcontext.Cluster) ([]string, error) {
	names, err := c.ResourceOrder()
	if err != nil || names == nil {
		return nil, err
	}
	hooks, err := readHooks(c)
	for _, more := range hooks {
		names = append(names, more...)
	}
	return names, err
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
	return p.bring(func(t Target) *sequence {
		t.Hooks = nil
		return t.instantiation(func(r Resource) bool { return r.There })
	})
}

// Removal returns the steps that delete what a plan wants and no other context of the deployment that is to be there. It runs no
// hooks. The bundle of an app goes with its last resource in a cluster.
func (p *Plan) Removal() *Progress {
	return p.remove(func(t Target) Target {
		t.Hooks = nil
		return t
	})
}

// Updated returns the apps in their clusters with what Update applies, and with what it leaves as it is because it is there.
func (p *Plan) Updated() (applied, left []Target) {
	for _, t := range p.Targets() {
		applied = append(applied, t.without(func(r Resource) bool { return r.There }))
		left = append(left, t.without(func(r Resource) bool { return !r.There }))
	}
	return applied, left
}

// Removed returns the apps in their clusters with what Removal deletes.
func (p *Plan) Removed() []Target {
	var removed []Target
	for _, t := range p.Targets() {
		kept := p.kept[place{t.App, t.Cluster}]
		removed = append(removed, t.without(func(r Resource) bool { return r.isDefinition() || slices.Contains(kept, r.Name) }))
	}
	return removed
}

// without returns an app in a cluster without some of its resources, and without hooks.
func (t Target) without(out func(Resource) bool) Target {
	t.Hooks = nil
	t.Definitions = slices.DeleteFunc(slices.Clone(t.Definitions), out)
	t.Resources = slices.DeleteFunc(slices.Clone(t.Resources), out)
	return t
}
