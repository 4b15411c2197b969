package status

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/healthscope/healthscope/healthscope"
)

// EMCOComposite names the composite app of a deployment intent group, in the form of EMCO 22.12.
type EMCOComposite struct {
	// Project is the name of the project.
	Project string `json:"project,omitempty"`
	// CompositeApp is the name of the composite app.
	CompositeApp string `json:"compositeApp,omitempty"`
	// CompositeAppVersion is the version of the composite app.
	CompositeAppVersion string `json:"compositeAppVersion,omitempty"`
	// CompositeProfile is the name of the composite profile. Absent if the context does not contain it.
	CompositeProfile string `json:"compositeProfile,omitempty"`
}

// EMCOGroup is the status of a deployment intent group, in the form of EMCO 22.12.
type EMCOGroup struct {
	EMCOComposite
	EMCOCommon
	// Apps are the apps, sorted by name. An app without a resource in the response is omitted. Absent with `output=summary`.
	Apps []EMCOApp `json:"apps,omitempty"`
	// ChildContextIDs are the ids of the contexts that belong to the context of the group. Absent if there are none.
	ChildContextIDs []string `json:"ChildContextIDs,omitempty"`
}

// EMCONetwork is the status of the network intents of a cluster, in the form of EMCO 22.12.
type EMCONetwork struct {
	EMCOCommon
	// Cluster is the cluster. It is an empty object if the response has no resource, and with `output=summary`.
	Cluster EMCOCluster `json:"cluster"`
}

// EMCOCommon holds the fields that the status of a group and the status of network intents have in common, in the form of EMCO
// 22.12.
type EMCOCommon struct {
	// Name is the name of the deployment intent group, or of the cluster as `<provider>+<cluster>`.
	Name string `json:"name"`
	// States is the history of the actions of users.
	States EMCOHistory `json:"states"`
	// Status is the state of the context, as rsync writes it, such as `Instantiated`. Present only without the parameter `status`.
	Status string `json:"status,omitempty"`
	// DeployedStatus is the state of the context, as rsync writes it, such as `Instantiated`. Present only with the parameter
	// `status`.
	DeployedStatus string `json:"deployedStatus,omitempty"`
	// ReadyStatus is `Ready` if the response covers at least one resource, all covered resources of reported kinds are Ready, and
	// all objects that the response cannot list are Ready; otherwise `NotReady`. Present with `status=ready`, and in the status of a
	// group also with `type=cluster`.
	ReadyStatus string `enum:"Ready,NotReady" json:"readyStatus,omitempty"`
	// RsyncStatus is the number of resources by the result of rsync's work on them. Present only with `type=rsync`, the default, and
	// without the parameter `status`.
	RsyncStatus map[string]int `json:"rsyncStatus,omitempty" minimum:"1"`
	// ClusterStatus is the number of resources by their state in the cluster: `Ready`, `NotReady` or `NotPresent`. Present only with
	// `type=cluster` and without the parameter `status`.
	ClusterStatus map[string]int `json:"clusterStatus,omitempty" minimum:"1"`
	// DeployedCounts is the number of resources by the result of rsync's work on them. Present only with `status=deployed`.
	DeployedCounts map[string]int `json:"deployedCounts,omitempty" minimum:"1"`
	// ReadyCounts is the number of resources by their state in the cluster: `Ready`, `NotReady` or `NotPresent`. Present only with
	// `status=ready`.
	ReadyCounts map[string]int `json:"readyCounts,omitempty" minimum:"1"`
}

// EMCOHistory is the history of the actions of users.
type EMCOHistory struct {
	// StatusContextID is the id of the context under which bundles and states are stored. Empty if it is not recorded.
	StatusContextID string `json:"statusctxid"`
	// Actions are the actions of users, in the order in which they were recorded. Empty if no history is stored in etcd.
	Actions []EMCOAction `json:"actions"`
}

// EMCOAction is an action of a user.
type EMCOAction struct {
	// State is the kind of the action, such as `Created`, `Instantiated` or `Terminated`.
	State string `json:"state"`
	// Instance is the id of the context that the action created or applied to. Empty for an action without a context.
	Instance string `json:"instance"`
	// Time is the time of the action.
	Time string `format:"date-time" json:"time"`
	// Revision is the revision of the group after the action: 0 before it is instantiated, 1 after that, and one more after each
	// update and rollback.
	Revision int64 `json:"revision"`
}

// EMCOApp is an app of a composite app.
type EMCOApp struct {
	// Name is the name of the app.
	Name string `json:"name"`
	// Clusters are the clusters of the app, sorted by name. A cluster without a resource in the response is omitted.
	Clusters []EMCOCluster `json:"clusters"`
}

// EMCOCluster is an app in a cluster.
type EMCOCluster struct {
	// ClusterProvider is the name of the cluster's provider.
	ClusterProvider string `json:"clusterProvider,omitempty"`
	// Cluster is the name of the cluster, without its provider.
	Cluster string `json:"cluster,omitempty"`
	// ReadyStatus is the result of rsync's last attempt to reach the cluster: `Available` or `Retrying`; `Unknown` if rsync has
	// recorded none. Present only without the parameter `status`.
	ReadyStatus string `json:"readyStatus,omitempty"`
	// Connectivity is the result of rsync's last attempt to reach the cluster: `Available` or `Retrying`; `Unknown` if rsync has
	// recorded none. Present only with the parameter `status`.
	Connectivity string `json:"connectivity,omitempty"`
	// Resources are the resources of the app in this cluster: first those in the context, sorted by name and kind, then those that
	// are only in the cluster, sorted by group, kind, namespace and name.
	Resources []EMCOResource `json:"resources,omitempty"`
}

// EMCOResource is an object that exists in a cluster, or that is expected there.
type EMCOResource struct {
	// GVK is the group, version and kind of the resource. Group and version are those in the context if they are known.
	GVK GVK `json:"GVK"`
	// Name is the name of the object.
	Name string `json:"name,omitempty"`
	// Detail is the Kubernetes object without confidential data, as it is in the cluster; if it is not in the cluster, and with
	// `type=rsync` or `status=deployed`, as it is in the context. Present only with `output=detail`, and if the object is available.
	Detail json.RawMessage `json:"detail,omitempty"`
	// RsyncStatus is the result of rsync's work on the resource, such as `Applied`. Present only with `type=rsync`, the default, and
	// without the parameter `status`.
	RsyncStatus string `json:"rsyncStatus,omitempty"`
	// ClusterStatus is `Ready`, `NotReady` or `NotPresent`. Present only with `type=cluster` and without the parameter `status`.
	// Absent also if the monitor does not report the kind, or the bundle is too large to list the object.
	ClusterStatus string `json:"clusterStatus,omitempty"`
	// DeployedStatus is the result of rsync's work on the resource, such as `Applied`. Present only with `status=deployed`.
	DeployedStatus string `json:"deployedStatus,omitempty"`
	// ReadyStatus is `Ready`, `NotReady` or `NotPresent`. Present only with `status=ready`. Absent also if the monitor does not
	// report the kind, or the bundle is too large to list the object.
	ReadyStatus string `json:"readyStatus,omitempty"`
}

// EMCOApps lists the names of the apps of a deployment intent group.
type EMCOApps struct {
	EMCOComposite
	// Name is the name of the deployment intent group.
	Name string `json:"name"`
	// Apps are the names of the apps, sorted.
	Apps []string `json:"apps"`
}

// EMCOClusters lists the names of the clusters of the apps of a deployment intent group.
type EMCOClusters struct {
	EMCOComposite
	// Name is the name of the deployment intent group.
	Name string `json:"name"`
	// ClustersByApp are the clusters of each app, sorted by the name of the app.
	ClustersByApp []EMCOAppClusters `json:"clustersByApp"`
}

// EMCOAppClusters lists the names of the clusters of an app.
type EMCOAppClusters struct {
	// App is the name of the app.
	App string `json:"app"`
	// Clusters are the clusters of the app, sorted by name.
	Clusters []EMCOClusterName `json:"clusters"`
}

// EMCOClusterName is the name of a cluster.
type EMCOClusterName struct {
	// ClusterProvider is the name of the cluster's provider.
	ClusterProvider string `json:"clusterProvider"`
	// Cluster is the name of the cluster, without its provider.
	Cluster string `json:"cluster"`
}

// EMCOResources lists the names of the resources of the apps of a deployment intent group.
type EMCOResources struct {
	EMCOComposite
	// Name is the name of the deployment intent group.
	Name string `json:"name"`
	// ResourcesByApp are the resources of each app in each cluster, sorted by the names of app and cluster.
	ResourcesByApp []EMCOAppResources `json:"resourcesByApp"`
}

// EMCOAppResources lists the names of the resources of an app in a cluster.
type EMCOAppResources struct {
	// App is the name of the app.
	App string `json:"app"`
	// ClusterProvider is the name of the cluster's provider.
	ClusterProvider string `json:"clusterProvider"`
	// Cluster is the name of the cluster, without its provider.
	Cluster string `json:"cluster"`
	// Resources are the resources, in the same order as in the status.
	Resources []EMCOResourceName `json:"resources"`
}

// EMCOResourceName is the name of a resource.
type EMCOResourceName struct {
	// Name is the name of the object.
	Name string `json:"name"`
	// GVK is the group, version and kind of the object.
	GVK GVK `json:"GVK"`
}

// The words of EMCO 22.12 for the state of an object in a cluster, and for a cluster for which rsync has written nothing.
const (
	emcoReady      = "Ready"
	emcoNotReady   = "NotReady"
	emcoNotPresent = "NotPresent"
	emcoUnknown    = "Unknown"
)

// emcoBuilder builds one document in the dialect of EMCO 22.12.
type emcoBuilder struct {
	builder

	apps   []EMCOApp
	counts map[string]int
	// listed is the number of resources that the document lists, or would list if it were not a summary. incomplete is true when
	// there are unlisted objects that are not known to be Ready.
	listed     int
	incomplete bool
}

// Answer returns the document for a query: a Document, or a document in the dialect of EMCO 22.12. It fails when a parameter of
// that dialect does not fit the subject or its context.
func Answer(in Input, q Query) (any, error) {
	if q.EMCO == nil {
		return New(in, q), nil
	}
	if err := in.checkEMCO(q); err != nil {
		return nil, err
	}
	e := emcoBuilder{builder: builder{Input: in, query: q}, apps: []EMCOApp{}, counts: map[string]int{}}
	if in.Contents != nil {
		e.lifecycle = lifecycleOf(in.ContextID, in.Contents.state, in.Info.Actions)
		e.listApps()
	}
	if q.EMCO.List != "" {
		return e.names(), nil
	}
	apps := e.apps
	if q.Output == OutputSummary {
		apps = nil
	}
	if in.Subject.Cluster == "" {
		group := EMCOGroup{EMCOComposite: e.composite(), EMCOCommon: e.common(), Apps: apps}
		if in.Contents != nil {
			group.ChildContextIDs = in.Contents.children
		}
		return group, nil
	}
	network := EMCONetwork{EMCOCommon: e.common()}
	if q.EMCO.Status == "" {
		network.ReadyStatus = ""
	}
	if len(apps) > 0 {
		network.Cluster = apps[0].Clusters[0] // isAbout selects only one app in one cluster.
	}
	return network, nil
}

// checkEMCO returns an error for a filter that EMCO 22.12 rejects once it knows the context. It also rejects a query for names about a
// cluster, because EMCO does not list the names of its network intents.
func (in Input) checkEMCO(q Query) error {
	if in.Subject.Cluster != "" {
		if q.EMCO.List != "" {
			return newParameterError(q.EMCO.List, "", "is only for deployment intent groups", "no "+q.EMCO.List)
		}
		return nil
	}
	for _, name := range q.Apps {
		if in.Contents != nil && !slices.ContainsFunc(in.Contents.apps, func(a app) bool { return a.name == name }) {
			return errors.New("Filter app " + name + " not in list of apps for composite app " + in.Subject.CompositeApp) // EMCO's words.
		}
	}
	return nil
}

// listApps lists the apps that the query selects.
func (e *emcoBuilder) listApps() {
	for _, a := range e.Contents.apps {
		wire := EMCOApp{Name: a.name}
		for _, p := range a.clusters {
			if !isSelected(e.Subject, e.query, p.AppInCluster) {
				continue
			}
			if c := e.listCluster(p); len(c.Resources) > 0 {
				wire.Clusters = append(wire.Clusters, c)
			}
		}
		if len(wire.Clusters) > 0 {
			e.apps = append(e.apps, wire)
		}
	}
	slices.SortFunc(e.apps, func(a, b EMCOApp) int { return strings.Compare(a.Name, b.Name) })
}

// listCluster lists an app in a cluster.
func (e *emcoBuilder) listCluster(p *appInCluster) EMCOCluster {
	c := EMCOCluster{ClusterProvider: p.provider, Cluster: p.cluster}
	connectivity := cmp.Or(string(p.connectivity), emcoUnknown)
	if e.query.EMCO.Status == "" {
		c.ReadyStatus = connectivity
	} else {
		c.Connectivity = connectivity
	}
	rows := e.listedRows(e.rows(p))
	for i := range rows {
		c.Resources = append(c.Resources, e.resource(&rows[i]))
	}
	if unlisted := e.view.Unlisted; len(e.query.Resources) == 0 && unlisted.Ready < unlisted.Total {
		e.incomplete = true
	}
	return c
}

// resource returns a row as it is served, and counts it.
func (e *emcoBuilder) resource(r *row) EMCOResource {
	id := r.identity()
	wire := EMCOResource{GVK: id.gvk(), Name: id.name}
	word := r.rsync
	if e.query.Type == TypeCluster {
		word = emcoPresence(r, &e.view)
	}
	e.listed++
	if word != "" {
		e.counts[word]++
	}
	*shown(e.query, &wire.RsyncStatus, &wire.ClusterStatus, &wire.DeployedStatus, &wire.ReadyStatus) = word
	if e.query.Output == OutputDetail {
		wire.Detail = e.detail(r)
		if wire.Detail == nil && r.expected != nil && r.member == nil { // EMCO shows the expected object.
			wire.Detail = r.expected.object()
		}
	}
	return wire
}

// shown returns the one of the fields that the status of a query is in. The last two are those for the parameter status.
func shown[T any](q Query, rsync, cluster, deployed, ready *T) *T {
	switch {
	case q.EMCO.Status == statusReady:
		return ready
	case q.EMCO.Status == statusDeployed:
		return deployed
	case q.Type == TypeCluster:
		return cluster
	}
	return rsync
}

// emcoPresence returns the state of an object in EMCO's words. An object that is not known to be present is never Ready. The
// result is empty for an object of which nothing is known because its monitor does not follow the kind or its bundle is
// truncated.
func emcoPresence(r *row, v *view) string {
	switch {
	case r.presence == Present && r.member.State == healthscope.Ready:
		return emcoReady
	case r.presence == NotPresent:
		return emcoNotPresent
	case r.member != nil:
		return emcoNotReady
	}
	switch v.incomplete() {
	case "", ReasonNotListed:
		return ""
	default:
		return emcoNotPresent
	}
}

// composite returns the names of the composite app.
func (e *emcoBuilder) composite() EMCOComposite {
	s := e.Subject
	c := EMCOComposite{Project: s.Project, CompositeApp: s.CompositeApp, CompositeAppVersion: s.Version}
	if e.Contents != nil {
		c.CompositeProfile = e.Contents.profile
	}
	return c
}

// common returns the common part of the document. Before the first instantiation, and for a context that no longer exists, this is
// only the name and the history.
func (e *emcoBuilder) common() EMCOCommon {
	s := EMCOCommon{Name: newDocument(e.Input).Name, States: EMCOHistory{StatusContextID: e.Info.StatusContextID, Actions: []EMCOAction{}}}
	for _, a := range e.Info.Actions {
		s.States.Actions = append(s.States.Actions, EMCOAction{State: string(a.State), Instance: a.ContextID, Time: wireTime(a.Time), Revision: a.Revision})
	}
	if e.Contents == nil {
		return s
	}
	state := string(e.Contents.state)
	if e.query.EMCO.Status == "" {
		s.Status = state
	} else {
		s.DeployedStatus = state
	}
	if e.query.Type == TypeCluster {
		s.ReadyStatus = emcoNotReady
		if e.listed > 0 && !e.incomplete && e.counts[emcoNotReady]+e.counts[emcoNotPresent] == 0 {
			s.ReadyStatus = emcoReady
		}
	}
	*shown(e.query, &s.RsyncStatus, &s.ClusterStatus, &s.DeployedCounts, &s.ReadyCounts) = e.counts
	return s
}

// names returns the document for a query for names.
func (e *emcoBuilder) names() any {
	apps, clusters, resources := []string{}, []EMCOAppClusters{}, []EMCOAppResources{}
	for _, a := range e.apps {
		apps = append(apps, a.Name)
		ofApp := EMCOAppClusters{App: a.Name}
		for _, c := range a.Clusters {
			ofApp.Clusters = append(ofApp.Clusters, EMCOClusterName{c.ClusterProvider, c.Cluster})
			inCluster := EMCOAppResources{App: a.Name, ClusterProvider: c.ClusterProvider, Cluster: c.Cluster}
			for _, r := range c.Resources {
				inCluster.Resources = append(inCluster.Resources, EMCOResourceName{r.Name, r.GVK})
			}
			resources = append(resources, inCluster)
		}
		clusters = append(clusters, ofApp)
	}
	switch e.query.EMCO.List {
	case parameterApps:
		return EMCOApps{e.composite(), e.Subject.Group, apps}
	case parameterClusters:
		return EMCOClusters{e.composite(), e.Subject.Group, clusters}
	}
	return EMCOResources{e.composite(), e.Subject.Group, resources}
}
