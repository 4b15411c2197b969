package deploy

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// observed is the known state of resources before the work of an event. Statuses from before beginRevision belong to an earlier
// event, and those that another context has written since belong to its event.
type observed struct {
	Contexts

	beginRevision int64
	// bodies caches the objects by their values in etcd: most are the same in all clusters.
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

// resourceIn returns the counterpart in a context of a resource that is wanted in the context of the event.
func (o observed) resourceIn(s *appcontext.Snapshot, app, cluster string, wanted appcontext.Resource) (appcontext.Resource, bool) {
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

// readStatus sets Status and UpToDate of a resource from etcd. wanted is the resource in the context of the event.
func (o observed) readStatus(app, cluster string, wanted appcontext.Resource, r *Resource) error {
	have, ok := o.resourceIn(o.Status, app, cluster, wanted)
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
	if have.Revision("status") > o.beginRevision && by == o.Acted.ID() {
		r.Status = status
	}
	r.UpToDate = status == appcontext.ResourceApplied && o.isUnchanged(by, app, cluster, wanted)
	return nil
}

// isUnchanged reports whether the context that applied a resource has exactly the wanted value. It returns false for a context that
// has not been read.
func (o observed) isUnchanged(by, app, cluster string, wanted appcontext.Resource) bool {
	for _, s := range append([]*appcontext.Snapshot{o.Acted, o.Status}, o.Others...) {
		if s.ID() == by {
			applied, ok := o.resourceIn(s, app, cluster, wanted)
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

// retained returns the names of the resources of the other contexts, by app and cluster.
func (c Contexts) retained() (map[appInCluster][]string, error) {
	retained := map[appInCluster][]string{}
	for _, s := range c.Others {
		for _, a := range s.Apps() {
			for _, cluster := range a.Clusters() {
				names, err := resourceNames(cluster)
				if err != nil {
					return nil, fmt.Errorf("context %q: app %q: cluster %q: %w", s.ID(), a.Name(), cluster.Name(), err)
				}
				target := appInCluster{a.Name(), cluster.Name()}
				retained[target] = append(retained[target], names...)
			}
		}
	}
	return retained, nil
}

// resourceNames returns the names of the resources that a context has of an app in a cluster. Others may be there whose states it keeps.
func resourceNames(c appcontext.Cluster) ([]string, error) {
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

// isAbsent reports whether a handle of the status context has no value.
func (o observed) isAbsent(h appcontext.Handle) bool {
	if o.Status == nil {
		return false
	}
	_, ok := o.Status.Stored(h)
	return !ok
}

// Updated returns the targets with the resources that Update applies, and with those that it leaves because they are as desired.
func (p *Plan) Updated() (applied, left []Target) {
	for _, t := range p.Targets() {
		applied = append(applied, t.without(func(r Resource) bool { return r.UpToDate }))
		left = append(left, t.without(func(r Resource) bool { return !r.UpToDate }))
	}
	return applied, left
}

// Removed returns the targets with the resources that Removal deletes.
func (p *Plan) Removed() []Target {
	var removed []Target
	for _, t := range p.Targets() {
		retained := p.retained[appInCluster{t.App, t.Cluster}]
		removed = append(removed, t.without(func(r Resource) bool { return r.isDefinition() || slices.Contains(retained, r.Name) }))
	}
	return removed
}

// without returns a target without hooks and without the resources for which exclude is true.
func (t Target) without(exclude func(Resource) bool) Target {
	t.Hooks = nil
	t.Definitions = slices.DeleteFunc(slices.Clone(t.Definitions), exclude)
	t.Resources = slices.DeleteFunc(slices.Clone(t.Resources), exclude)
	return t
}
