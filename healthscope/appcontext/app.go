package appcontext

import "strings"

// App is an app in a Snapshot.
type App struct{ level }

// Name returns the app's name.
func (a App) Name() string { return a.name() }

// BundleName returns the name of the ResourceBundleStates that the app has in its clusters, which is also the value of
// their label emco/deployment-id: the context's id, a hyphen, the app's name.
func (a App) BundleName() string { return a.snapshot.id + "-" + a.Name() }

// Clusters returns the app's clusters in the order of their keys.
func (a App) Clusters() []Cluster { return listOf[Cluster](a.children(nil, partCluster)) }

// Cluster returns the cluster with a name, <provider>+<cluster>, and whether it is there.
func (a App) Cluster(name string) (Cluster, bool) {
	l, ok := a.child(partCluster, name)
	return Cluster{l}, ok
}

// Cluster is a cluster of an app in a Snapshot.
type Cluster struct{ level }

// Name returns the cluster's name, <provider>+<cluster>.
func (c Cluster) Name() string { return c.name() }

// Split returns provider and cluster, and whether the name consists of these two. EMCO passes over clusters whose name
// does not.
func (c Cluster) Split() (provider, cluster string, ok bool) { return splitPair(c.Name()) }

// Connectivity returns how rsync found the cluster when it last did something there; empty when that is not recorded.
func (c Cluster) Connectivity() (Connectivity, error) {
	text, err := c.text("readystatus")
	return Connectivity(text), err
}

// Bundle returns the status of the app's ResourceBundleState in the cluster, in JSON; empty when none has been seen. It is at the
// level "status".
func (c Cluster) Bundle() (string, error) { return c.text(partStatus) }

// ResourceOrder returns the names in the instruction that orders the resources; nil when there is none.
func (c Cluster) ResourceOrder() ([]string, error) { return c.order("resorder", partResource) }

// Resources returns the resources in the order of the instruction, then those that it does not name, in the order of
// their keys. An order that cannot be read counts as none.
func (c Cluster) Resources() []Resource {
	order, _ := c.ResourceOrder()
	return listOf[Resource](c.children(order, partResource))
}

// Resource returns the resource with a name, <object>+<Kind>, and whether it is there.
func (c Cluster) Resource(name string) (Resource, bool) {
	l, ok := c.child(partResource, name)
	return Resource{l}, ok && name != partInstruction
}

// Resource is a resource of an app in a cluster in a Snapshot.
type Resource struct{ level }

// Name returns the resource's name in the context, <object>+<Kind>.
func (r Resource) Name() string { return r.name() }

// Split returns the object's name and kind, and whether the name consists of these two. EMCO's status passes over
// resources whose name does not.
func (r Resource) Split() (object, kind string, ok bool) { return splitPair(r.Name()) }

// Body returns the Kubernetes object as it was added, in YAML or JSON. In the status context of a group that was updated
// it is "nil" for what the update has added.
func (r Resource) Body() (string, error) { return r.text() }

// Status returns what rsync did with the resource; empty when it has not begun, which EMCO counts as Pending.
func (r Resource) Status() (ResourceStatus, error) {
	text, err := r.status(partStatus)
	return ResourceStatus(text), err
}

// Reference returns the id of the context that last handled the resource; empty when that is not recorded.
func (r Resource) Reference() (string, error) { return r.text("reference") }

// listOf returns levels as apps, clusters or resources.
func listOf[T ~struct{ level }](levels []level) []T {
	list := make([]T, len(levels))
	for i, l := range levels {
		list[i] = T{l}
	}
	return list
}

// splitPair splits a name at its only plus sign.
func splitPair(name string) (first, second string, ok bool) {
	first, second, ok = strings.Cut(name, "+")
	return first, second, ok && first != "" && second != "" && !strings.Contains(second, "+")
}
