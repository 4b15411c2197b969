package status

import (
	"cmp"
	"maps"
	"slices"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// Requirements are the resources that must exist in clusters because rsync has applied them for a context. They are immutable
// and safe for concurrent use. The zero value requires nothing.
type Requirements struct{ resources map[AppInCluster][]resource }

// Requirements returns the resources that rsync has applied, or failed to apply, and has not deleted since. It omits hooks, which
// are temporary, and resources whose version is not known. A context requires nothing before rsync starts, nor when it is being
// terminated. actions are the recorded actions of users.
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

// Equal reports whether both require the same resources.
func (r Requirements) Equal(o Requirements) bool {
	return maps.EqualFunc(r.resources, o.resources, slices.Equal[[]resource])
}

// Missing returns the required resources of an app that are not in its bundles. bundles holds the members of the bundles by cluster; a
// cluster without an entry has no bundle. A bundle lists only objects in its own namespace, of kinds that its monitor follows, so
// Missing omits all other resources.
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
