package appcontext

import "strings"

// App is an app in a Snapshot.
type App struct {
	level
	context string
}

// Name returns the app's name.
func (a App) Name() string { return a.name() }

// BundleName returns the name of the ResourceBundleStates that the app has in its clusters, which is also the value of
// their label emco/deployment-id: the context's id, a hyphen, the app's name.
func (a App) BundleName() string { return a.context + "-" + a.Name() }

// Dependency returns the instruction on what the app waits for, as it is written.
func (a App) Dependency() (string, error) { return a.text(partInstruction, partDependency) }

// Clusters returns the app's clusters in the order of their keys.
func (a App) Clusters() []Cluster {
	var clusters []Cluster
	for _, l := range a.entries(nil, partCluster) {
		clusters = append(clusters, Cluster{l})
	}
	return clusters
}

// Cluster returns the cluster with a name, <provider>+<cluster>, and whether it is there.
func (a App) Cluster(name string) (Cluster, bool) {
	l, ok := a.entry(partCluster, name)
	return Cluster{l}, ok
}

func (a App) problems() []error {
	_, dependency := a.Dependency()
	errs := []error{dependency}
	for _, c := range a.Clusters() {
		errs = append(errs, c.problems()...)
	}
	return errs
}

// Cluster is a cluster of an app in a Snapshot.
type Cluster struct{ level }

// Name returns the cluster's name, <provider>+<cluster>.
func (c Cluster) Name() string { return c.name() }

// Split returns provider and cluster, and whether the name consists of these two. EMCO passes over clusters whose name
// does not.
func (c Cluster) Split() (provider, cluster string, ok bool) { return splitPair(c.Name()) }

// Group returns the number of the anyOf group that the cluster is a candidate of; empty when it is in none.
func (c Cluster) Group() (string, error) { return c.text(partGroup) }

// Connectivity returns how rsync found the cluster when it last did something there; empty when that is not recorded.
func (c Cluster) Connectivity() (Connectivity, error) {
	text, err := c.text("readystatus")
	return Connectivity(text), err
}

// Reference returns the id of the context that last handled the cluster; empty when that is not recorded.
func (c Cluster) Reference() (string, error) { return c.text("reference") }

// ResourcesReady says whether rsync found all resources ready, and whether it has said so at all.
func (c Cluster) ResourcesReady() (ready, known bool, err error) { return c.flag("resourcesready") }

// Bundle returns the status of the app's ResourceBundleState in the cluster, in JSON; empty when none has been seen.
func (c Cluster) Bundle() (string, error) { return c.text(partStatus) }

// BundleRevision returns the revision of etcd at which Bundle was last written; 0 when there is none.
func (c Cluster) BundleRevision() int64 { return c.Revision(partStatus) }

// ResourceOrder returns the names in the instruction that orders the resources; nil when there is none.
func (c Cluster) ResourceOrder() ([]string, error) { return c.order("resorder", partResource) }

// ResourceDependency returns the instruction on the resources' dependencies, as it is written.
func (c Cluster) ResourceDependency() (string, error) {
	return c.text(partResource, partInstruction, partDependency)
}

// Resources returns the resources in the order of the instruction, then those that it does not name, in the order of
// their keys. An order that cannot be read counts as none.
func (c Cluster) Resources() []Resource {
	order, err := c.ResourceOrder()
	if err != nil {
		order = nil
	}
	var resources []Resource
	for _, l := range c.entries(order, partResource) {
		resources = append(resources, Resource{l})
	}
	return resources
}

// Resource returns the resource with a name, <object>+<Kind>, and whether it is there.
func (c Cluster) Resource(name string) (Resource, bool) {
	l, ok := c.entry(partResource, name)
	return Resource{l}, ok && name != partInstruction
}

func (c Cluster) problems() []error {
	_, group := c.Group()
	_, connectivity := c.Connectivity()
	_, reference := c.Reference()
	_, _, ready := c.ResourcesReady()
	_, bundle := c.Bundle()
	_, order := c.ResourceOrder()
	_, dependency := c.ResourceDependency()
	errs := []error{group, connectivity, reference, ready, bundle, order, dependency}
	for _, r := range c.Resources() {
		errs = append(errs, r.problems()...)
	}
	return errs
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

// Ready says whether rsync found the resource ready, and whether it has said so at all.
func (r Resource) Ready() (ready, known bool, err error) { return r.flag("resready") }

// Succeeded says whether rsync found that the resource, a hook or a job, has succeeded, and whether it has said so at all.
func (r Resource) Succeeded() (succeeded, known bool, err error) { return r.flag("ressuccess") }

// Definition returns the object as rsync has read it back from the cluster; empty when it has not.
func (r Resource) Definition() (string, error) { return r.text("definition") }

func (r Resource) problems() []error {
	_, body := r.Body()
	_, status := r.Status()
	_, reference := r.Reference()
	_, _, ready := r.Ready()
	_, _, succeeded := r.Succeeded()
	_, definition := r.Definition()
	return []error{body, status, reference, ready, succeeded, definition}
}

// splitPair splits a name at its only plus sign.
func splitPair(name string) (first, second string, ok bool) {
	first, second, ok = strings.Cut(name, "+")
	return first, second, ok && first != "" && second != "" && !strings.Contains(second, "+")
}
