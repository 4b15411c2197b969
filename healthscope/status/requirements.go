package status

import (
	"cmp"
	"maps"
	"slices"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// Requirements are the resources that must be in clusters because a context has brought them there. They never change, and
// are safe for concurrent use. The zero value requires nothing.
type Requirements struct{ resources map[AppInCluster][]resource }

// Requirements returns what rsync has applied, or was refused, and has not deleted since. Hooks come and go and are not among
// it. A context with which rsync has not begun requires nothing, nor does one that is to go: actions are what users did,
// as far as that is recorded.
func (c *Contents) Requirements(actions []appcontext.Action) Requirements {
	required := Requirements{resources: map[AppInCluster][]resource{}}
	if c == nil || c.state == "" || c.state == appcontext.StateCreated || lifecycleOf(c.id, c.state, actions).deleting {
		return required
	}
	for at, p := range c.appsInClusters {
		for _, r := range p.resources {
			done := r.rsync == string(appcontext.ResourceApplied) || r.rsync == string(appcontext.ResourceFailed)
			if !done || r.hook || r.version == "" {
				continue
			}
			r.stored = appcontext.Resource{} // It would keep the context in memory.
			required.resources[at] = append(required.resources[at], r)
		}
	}
	return required
}

// Equal reports whether the same is required.
func (r Requirements) Equal(o Requirements) bool {
	return maps.EqualFunc(r.resources, o.resources, slices.Equal[[]resource])
}

// Missing returns what is required of an app and is not in its bundles, whose members are given by cluster; a cluster that is
// not given has no bundle. A bundle names what is in its own namespace, and kinds that its monitor follows: nothing else is missed.
func (r Requirements) Missing(app, namespace string, bundles map[string][]healthscope.Member) []healthscope.Key {
	var missing []healthscope.Key
	for at, resources := range r.resources {
		if at.App != app {
			continue
		}
		found := matchMembers(resources, bundles[at.Cluster])
		for i := range resources {
			required := &resources[i]
			if found.memberIndexes[i] < 0 && found.followed[i] && cmp.Or(required.namespace, required.defaultNamespace, namespace) == namespace {
				missing = append(missing, healthscope.Key{Cluster: at.Cluster, Group: required.group, Kind: required.kind, Namespace: namespace, Name: required.name})
			}
		}
	}
	slices.SortFunc(missing, healthscope.Key.Compare)
	return missing
}
