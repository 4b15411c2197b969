package status

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/healthscope/healthscope/healthscope"
)

// EMCOComposite names the composite app of a deployment intent group, as EMCO 22.12 does.
type EMCOComposite struct {
	// Project is the project.
	Project string `json:"project,omitempty"`
	// CompositeApp is the composite app.
	CompositeApp string `json:"compositeApp,omitempty"`
	// CompositeAppVersion is its version.
	CompositeAppVersion string `json:"compositeAppVersion,omitempty"`
	// CompositeProfile is the composite profile; absent where the context does not name it.
	CompositeProfile string `json:"compositeProfile,omitempty"`
}

// EMCOGroup is the status of a deployment intent group, as EMCO 22.12 answers it.
type EMCOGroup struct {
	EMCOComposite
	EMCOCommon
	// Apps are sorted by their names. One without a resource in the answer is left out.
	Apps []EMCOApp `json:"apps,omitempty"`
	// ChildContextIDs are contexts that belong to that of the group.
	ChildContextIDs []string `json:"ChildContextIDs,omitempty"`
}

// EMCONetwork is the status of the network intents of a cluster, as EMCO 22.12 answers it.
type EMCONetwork struct {
	EMCOCommon
	// Cluster is the cluster; empty without a resource in the answer.
	Cluster EMCOCluster `json:"cluster"`
}

// EMCOCommon is what the answers of EMCO 22.12 have in common.
type EMCOCommon struct {
	// Name is the name of the group, or of the cluster: <provider>+<cluster>.
	Name string `json:"name"`
	// States is what users did.
	States EMCOHistory `json:"states"`
	// Status is the state of the context, as rsync keeps it; without the parameter `status` only.
	Status string `json:"status,omitempty"`
	// DeployedStatus is the same, with it.
	DeployedStatus string `json:"deployedStatus,omitempty"`
	// ReadyStatus is Ready when every object that counts is; with status=ready, and for groups with type=cluster.
	ReadyStatus string `enum:"Ready,NotReady" json:"readyStatus,omitempty"`
	// RsyncStatus counts the resources by what rsync did with them; with type=rsync.
	RsyncStatus map[string]int `json:"rsyncStatus,omitempty" minimum:"1"`
	// ClusterStatus counts them by Ready, NotReady and NotPresent; with type=cluster.
	ClusterStatus map[string]int `json:"clusterStatus,omitempty" minimum:"1"`
	// DeployedCounts is as RsyncStatus; with status=deployed.
	DeployedCounts map[string]int `json:"deployedCounts,omitempty" minimum:"1"`
	// ReadyCounts is as ClusterStatus; with status=ready.
	ReadyCounts map[string]int `json:"readyCounts,omitempty" minimum:"1"`
}

// EMCOHistory is what users did, in the order in which they did it.
type EMCOHistory struct {
	// StatusContextID is the context under which bundles and states are kept; empty when that is not recorded.
	StatusContextID string `json:"statusctxid"`
	// Actions are empty where no history is kept in etcd.
	Actions []EMCOAction `json:"actions"`
}

// EMCOAction is something that a user did.
type EMCOAction struct {
	// State is what, such as Created, Instantiated or Terminated.
	State string `json:"state"`
	// Instance is the context that came of it, or that it was about; empty when there is none.
	Instance string `json:"instance"`
	// Time is when.
	Time string `format:"date-time" json:"time"`
	// Revision counts what the group was brought to.
	Revision int64 `json:"revision"`
}

// EMCOApp is an app of a composite app.
type EMCOApp struct {
	// Name is its name.
	Name string `json:"name"`
	// Clusters are sorted by their names. One without a resource in the answer is left out.
	Clusters []EMCOCluster `json:"clusters"`
}

// EMCOCluster is an app in a cluster.
type EMCOCluster struct {
	// ClusterProvider is the name of the cluster's provider.
	ClusterProvider string `json:"clusterProvider,omitempty"`
	// Cluster is the name of the cluster itself.
	Cluster string `json:"cluster,omitempty"`
	// ReadyStatus is how rsync found the cluster when it last did something there: Available, Retrying or Unknown. Without the parameter `status` only.
	ReadyStatus string `json:"readyStatus,omitempty"`
	// Connectivity is the same, with it.
	Connectivity string `json:"connectivity,omitempty"`
	// Resources are those in the context, sorted by name and kind, then those that are in the cluster only, by group, kind, namespace and name.
	Resources []EMCOResource `json:"resources,omitempty"`
}

// EMCOResource is an object in a cluster, or one that should be there.
type EMCOResource struct {
	// GVK is its group, version and kind, as the context has it.
	GVK GVK `json:"GVK"`
	// Name is its name.
	Name string `json:"name,omitempty"`
	// Detail is the object without what may not be shown; only if it was asked for.
	Detail json.RawMessage `json:"detail,omitempty"`
	// RsyncStatus is what rsync did with it; with type=rsync.
	RsyncStatus string `json:"rsyncStatus,omitempty"`
	// ClusterStatus is Ready, NotReady or NotPresent; with type=cluster. Absent when its kind is none that is reported.
	ClusterStatus string `json:"clusterStatus,omitempty"`
	// DeployedStatus is as RsyncStatus; with status=deployed.
	DeployedStatus string `json:"deployedStatus,omitempty"`
	// ReadyStatus is as ClusterStatus; with status=ready.
	ReadyStatus string `json:"readyStatus,omitempty"`
}

// EMCOApps names the apps of a deployment intent group.
type EMCOApps struct {
	EMCOComposite
	// Name is the name of the group.
	Name string `json:"name"`
	// Apps are their names, sorted.
	Apps []string `json:"apps"`
}

// EMCOClusters names the clusters of the apps of a deployment intent group.
type EMCOClusters struct {
	EMCOComposite
	// Name is the name of the group.
	Name string `json:"name"`
	// ClustersByApp are sorted by the names of the apps.
	ClustersByApp []EMCOAppClusters `json:"clustersByApp"`
}

// EMCOAppClusters names the clusters of an app.
type EMCOAppClusters struct {
	// App is the name of the app.
	App string `json:"app"`
	// Clusters are sorted by their names.
	Clusters []EMCOClusterName `json:"clusters"`
}

// EMCOClusterName names a cluster.
type EMCOClusterName struct {
	// ClusterProvider is the name of its provider.
	ClusterProvider string `json:"clusterProvider"`
	// Cluster is the name of the cluster itself.
	Cluster string `json:"cluster"`
}

// EMCOResources names the resources of the apps of a deployment intent group.
type EMCOResources struct {
	EMCOComposite
	// Name is the name of the group.
	Name string `json:"name"`
	// ResourcesByApp are sorted by the names of app and cluster.
	ResourcesByApp []EMCOAppResources `json:"resourcesByApp"`
}

// EMCOAppResources names the resources of an app in a cluster.
type EMCOAppResources struct {
	// App is the name of the app.
	App string `json:"app"`
	// ClusterProvider is the name of the cluster's provider.
	ClusterProvider string `json:"clusterProvider"`
	// Cluster is the name of the cluster itself.
	Cluster string `json:"cluster"`
	// Resources are in the order in which the status lists them.
	Resources []EMCOResourceName `json:"resources"`
}

// EMCOResourceName names an object.
type EMCOResourceName struct {
	// Name is its name.
	Name string `json:"name"`
	// GVK is its group, version and kind.
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
	// listed is the number of resources that the document lists, or would list if it were not a summary. incomplete is true when there are
	// unlisted objects that are not known to be Ready.
	listed     int
	incomplete bool
}

// Answer returns the document for a query: a Document, or a document in the dialect of EMCO 22.12. It fails when a parameter of that
// dialect does not fit the subject or its context.
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
	switch q.EMCO.List {
	case parameterApps:
		return EMCOApps{e.composite(), in.Subject.Group, e.appNames()}, nil
	case parameterClusters:
		return EMCOClusters{e.composite(), in.Subject.Group, e.clusterNames()}, nil
	case parameterResources:
		return EMCOResources{e.composite(), in.Subject.Group, e.resourceNames()}, nil
	}
	shown := e.apps
	if q.Output == OutputSummary {
		shown = nil
	}
	if in.Subject.Cluster == "" {
		group := EMCOGroup{EMCOComposite: e.composite(), EMCOCommon: e.common(), Apps: shown}
		if in.Contents != nil {
			group.ChildContextIDs = in.Contents.children
		}
		return group, nil
	}
	network := EMCONetwork{EMCOCommon: e.common()}
	if q.EMCO.Status == "" {
		network.ReadyStatus = ""
	}
	if len(shown) > 0 {
		network.Cluster = shown[0].Clusters[0] // isAbout selects only one app in one cluster.
	}
	return network, nil
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
	v := &e.view
	if e.query.usesClusters() {
		v.setReport(p, e.Reports[p.AppInCluster], e.lifecycle.terminated)
		e.incomplete = e.incomplete || len(e.query.Resources) == 0 && v.Unlisted.Ready < v.Unlisted.Total
	}
	c := EMCOCluster{ClusterProvider: p.provider, Cluster: p.cluster}
	connectivity := cmp.Or(string(p.connectivity), emcoUnknown)
	if e.query.EMCO.Status == "" {
		c.ReadyStatus = connectivity
	} else {
		c.Connectivity = connectivity
	}
	var objects map[healthscope.Key]map[string]any
	if e.query.Output == OutputDetail && e.query.Type != TypeRsync {
		objects = v.Bundle.objects()
	}
	rows := e.listedRows(e.rows(p, v))
	for i := range rows {
		c.Resources = append(c.Resources, e.resource(&rows[i], v, objects))
	}
	return c
}

// resource returns a row as it is served, and counts it.
func (e *emcoBuilder) resource(r *row, v *view, objects map[healthscope.Key]map[string]any) EMCOResource {
	id := r.identity()
	wire := EMCOResource{GVK: GVK{Group: id.group, Version: id.version, Kind: id.kind}, Name: id.name}
	word := r.rsync
	if e.query.Type == TypeCluster {
		word = emcoPresence(r, v)
	}
	e.listed++
	if word != "" {
		e.counts[word]++
	}
	switch {
	case e.query.EMCO.Status == statusReady:
		wire.ReadyStatus = word
	case e.query.EMCO.Status == statusDeployed:
		wire.DeployedStatus = word
	case e.query.Type == TypeCluster:
		wire.ClusterStatus = word
	default:
		wire.RsyncStatus = word
	}
	if e.query.Output == OutputDetail {
		wire.Detail = e.detail(r, objects)
		if wire.Detail == nil && r.expected != nil && r.member == nil { // EMCO shows the expected object.
			text, _ := r.expected.stored.Body()
			wire.Detail = encode(parseRedacted(text))
		}
	}
	return wire
}

// emcoPresence returns the state of an object in EMCO's words. An object that is not known to be present is never Ready. The result is empty
// for an object of which nothing is known because its monitor does not follow the kind or its bundle is truncated.
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
	switch {
	case e.query.EMCO.Status == statusReady:
		s.ReadyCounts = e.counts
	case e.query.EMCO.Status == statusDeployed:
		s.DeployedCounts = e.counts
	case e.query.Type == TypeCluster:
		s.ClusterStatus = e.counts
	default:
		s.RsyncStatus = e.counts
	}
	return s
}

func (e *emcoBuilder) appNames() []string {
	names := []string{}
	for _, a := range e.apps {
		names = append(names, a.Name)
	}
	return names
}

func (e *emcoBuilder) clusterNames() []EMCOAppClusters {
	all := []EMCOAppClusters{}
	for _, a := range e.apps {
		wire := EMCOAppClusters{App: a.Name}
		for _, c := range a.Clusters {
			wire.Clusters = append(wire.Clusters, EMCOClusterName{c.ClusterProvider, c.Cluster})
		}
		all = append(all, wire)
	}
	return all
}

func (e *emcoBuilder) resourceNames() []EMCOAppResources {
	all := []EMCOAppResources{}
	for _, a := range e.apps {
		for _, c := range a.Clusters {
			wire := EMCOAppResources{App: a.Name, ClusterProvider: c.ClusterProvider, Cluster: c.Cluster}
			for _, r := range c.Resources {
				wire.Resources = append(wire.Resources, EMCOResourceName{r.Name, r.GVK})
			}
			all = append(all, wire)
		}
	}
	return all
}
