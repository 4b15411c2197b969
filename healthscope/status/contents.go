package status

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/rules"
)

// stateUnreadable is the state of a resource whose state in the context cannot be read.
const stateUnreadable = "Unknown"

// maxProblems is the maximum number of problems in a document.
const maxProblems = 20

// AppInCluster is an app in a cluster.
type AppInCluster struct {
	// App is the name of the app.
	App string
	// Cluster is the name of the cluster, <provider>+<cluster>.
	Cluster string
}

// Contents is the decoded form of contexts: the resources that are expected in each cluster, and what rsync did with them.
// It is immutable and safe for concurrent use. Decode the contexts once for each revision, and build all documents from the
// result.
type Contents struct {
	id             string
	state          appcontext.State
	profile        string
	children       []string
	apps           []app
	appsInClusters map[AppInCluster]*appInCluster
	problems       []problem
}

// problem is something in a context that cannot be read.
type problem struct {
	// location is the app in a cluster that has the problem; the zero value for a problem of the whole context.
	location AppInCluster
	text     string
}

type app struct {
	name     string
	clusters []*appInCluster
}

// appInCluster is an app in a cluster.
type appInCluster struct {
	AppInCluster

	provider, cluster string
	// bundle is the name of the app's ResourceBundleStates.
	bundle string
	// saved is the cluster in the context under which the app's bundle is saved; the zero value if no bundle is saved.
	saved    appcontext.Cluster
	hasSaved bool
	// savedBundle is that bundle, decoded; nil until SavedBundle decodes it or Decode reuses an earlier one.
	savedBundle atomic.Pointer[Bundle]
	// connectivity is the last result of rsync's attempts to reach the cluster. retrying is true while rsync cannot reach it and retries.
	connectivity appcontext.Connectivity
	retrying     bool
	resources    []resource
	// matched is the matching of the resources with the members of the last report; nil before the first report.
	matched atomic.Pointer[matching]
}

// resource is an object that is expected in a cluster.
type resource struct {
	identity

	// rsync is the state that rsync gives the resource, in EMCO's words.
	rsync string
	// defaultNamespace is the namespace of the resource if its object does not name one.
	defaultNamespace string
	// hook is true for a resource that the resource order does not name: a hook, which is temporary, or a CRD.
	hook   bool
	stored appcontext.Resource
}

// Decode reads the contexts of a view. It reads the expected resources from Context, and their states from StatusContext,
// where EMCO keeps the states after an update. It returns nil for a view without a context. previous, which may be nil, is
// the result for an earlier revision: Decode reuses what has not changed since, instead of parsing it again.
//
// Decode does not omit resources that it cannot read: it lists them as Unknown, and the document names the problems.
func Decode(view appcontext.View, previous *Contents) *Contents {
	if view.Context == nil {
		return nil
	}
	d := decoder{Contents: &Contents{id: view.Context.ID(), appsInClusters: map[AppInCluster]*appInCluster{}},
		status: view.StatusContext, parsed: map[string]identity{}}
	if previous != nil {
		d.previous = previous.appsInClusters
	}
	if d.status == nil {
		d.status = view.Context
		d.problemf("the context that keeps the states is not there any more: states are those of context %q itself", d.id)
	}
	state, err := view.Context.Status()
	d.checkError(err, view.Context.Handle().Level("status"))
	d.state = state
	stopped, err := view.Context.StopFlag()
	d.checkError(err, view.Context.Handle().Level("stopflag"))
	d.finished = stopped || finishedStates[state]
	meta, err := view.Context.Meta()
	d.checkError(err, view.Context.Handle().Level("meta"))
	d.namespace, d.profile, d.children = meta.Namespace, meta.CompositeProfile, meta.ChildContextIDs
	_, err = view.Context.AppOrder()
	d.checkError(err, view.Context.Handle().Level("app/instruction/order"))
	for _, a := range view.Context.Apps() {
		d.decodeApp(a)
	}
	slices.SortFunc(d.problems, func(a, b problem) int { return strings.Compare(a.text, b.text) })
	return d.Contents
}

// decoder is the working state of Decode.
type decoder struct {
	*Contents

	previous map[AppInCluster]*appInCluster
	// status is the context that holds the states.
	status    *appcontext.Snapshot
	namespace string
	// finished is true when rsync no longer works on the context, even if some of its operations failed.
	finished bool
	// location is the app in a cluster that is being decoded.
	location AppInCluster
	// parsed holds the identities of objects by their text, because most objects are the same in many clusters.
	parsed map[string]identity
}

func (d *decoder) problemf(format string, args ...any) {
	d.problems = append(d.problems, problem{d.location, fmt.Sprintf(format, args...)})
}

// checkError adds a problem for a value that cannot be read. The problem omits the value and the error, because they may contain a secret.
func (d *decoder) checkError(err error, at appcontext.Handle) {
	if err != nil {
		d.problemf("the value at %q cannot be read", at)
	}
}

func (d *decoder) decodeApp(a appcontext.App) {
	result := app{name: a.Name()}
	states, _ := d.status.App(a.Name())
	clusters := a.Clusters()
	result.clusters = make([]*appInCluster, 0, len(clusters))
	for _, c := range clusters {
		d.location = AppInCluster{a.Name(), c.Name()}
		p := &appInCluster{AppInCluster: d.location, bundle: states.BundleName()}
		var ok bool
		if p.provider, p.cluster, ok = c.Split(); !ok {
			p.provider, p.cluster = "", c.Name()
			d.problemf("the name of cluster %q at %q is not <provider>+<cluster>", c.Name(), c.Handle())
		}
		saved, _ := states.Cluster(c.Name())
		if _, reported := saved.Value("status"); reported {
			p.setSaved(saved, d.previous[d.location])
		}
		var err error
		p.connectivity, err = c.Connectivity()
		d.checkError(err, c.Handle().Level("readystatus"))
		p.retrying = p.connectivity == appcontext.ConnectivityRetrying && !d.finished
		resources := c.Resources()
		inOrder := orderOf(c)
		p.resources = make([]resource, 0, len(resources))
		for _, r := range resources {
			if d.belongsToOtherContext(r) {
				continue
			}
			stored, _ := saved.Resource(r.Name())
			result := d.decodeResource(r, stored)
			result.hook = len(inOrder) > 0 && !inOrder[r.Name()]
			p.resources = append(p.resources, result)
		}
		if len(p.resources) == 0 && len(resources) > 0 {
			continue // All its resources belong to another context, and so does its bundle.
		}
		if p.retrying {
			d.markRetrying(p.resources)
		}
		slices.SortFunc(p.resources, func(a, b resource) int { return strings.Compare(a.stored.Name(), b.stored.Name()) })
		result.clusters = append(result.clusters, p)
		d.appsInClusters[p.AppInCluster] = p
	}
	d.apps = append(d.apps, result)
}

// setSaved sets the level whose bundle is saved, and keeps what was decoded of it before, if it has not changed since.
func (p *appInCluster) setSaved(saved appcontext.Cluster, old *appInCluster) {
	p.saved, p.hasSaved = saved, true
	if old != nil && old.hasSaved && old.saved.Handle() == saved.Handle() && old.saved.Revision("status") == saved.Revision("status") {
		p.savedBundle.Store(old.savedBundle.Load())
	}
}

// orderOf returns the names in the resource order of a cluster; none if the order cannot be read.
func orderOf(c appcontext.Cluster) map[string]bool {
	names, _ := c.ResourceOrder()
	inOrder := make(map[string]bool, len(names))
	for _, name := range names {
		inOrder[name] = true
	}
	return inOrder
}

// belongsToOtherContext reports whether a resource belongs to another context. For a resource that an update adds, EMCO writes a
// placeholder to the context that holds the states. The placeholder stays there when the update is rolled back.
func (d *decoder) belongsToOtherContext(r appcontext.Resource) bool {
	if raw, _ := r.Value(); string(raw) != `"`+placeholder+`"` {
		return false
	}
	reference, err := r.Reference()
	return err == nil && reference != "" && reference != d.id
}

// finishedStates are the states in which rsync has given up, or has deleted everything.
var finishedStates = map[appcontext.State]bool{
	appcontext.StateTerminated: true, appcontext.StateInstantiateFailed: true, appcontext.StateTerminateFailed: true, appcontext.StateUpdateFailed: true,
}

// markRetrying sets the state Retrying on the resources in a cluster that rsync cannot reach and has not yet applied or deleted.
// rsync itself records Retrying only for the cluster.
func (d *decoder) markRetrying(resources []resource) {
	for i := range resources {
		r := &resources[i]
		deleting := d.state == appcontext.StateTerminating && r.rsync == string(appcontext.ResourceApplied)
		if deleting || r.rsync == string(appcontext.ResourcePending) {
			r.rsync = string(appcontext.ResourceRetrying)
		}
	}
}

// decodeResource decodes an expected object. states holds its state; it is empty if the status context does not have the object.
func (d *decoder) decodeResource(r, states appcontext.Resource) resource {
	decoded := resource{identity: d.identify(r), rsync: string(appcontext.ResourcePending), defaultNamespace: d.namespace, stored: r}
	object, kind, ok := r.Split()
	if !ok {
		object = r.Name()
		d.problemf("the name of resource %q at %q is not <name>+<Kind>", r.Name(), r.Handle())
	}
	decoded.name = object
	if decoded.kind == "" {
		decoded.kind = kind
	}
	state, err := states.Status()
	d.checkError(err, states.Handle().Level("status"))
	switch {
	case err != nil:
		decoded.rsync = stateUnreadable
	case state != "":
		decoded.rsync = string(state)
	}
	return decoded
}

// identify returns the identity of an object in a context; empty if the object cannot be read.
func (d *decoder) identify(r appcontext.Resource) identity {
	found, ok := d.previousIdentity(r)
	if !ok {
		text, err := r.Body()
		if found, ok = d.parsed[text]; !ok && err == nil {
			found = identify(text)
			d.parsed[text] = found
		}
	}
	if found.version == "" {
		d.problemf("the object at %q cannot be read", r.Handle())
		return identity{}
	}
	return found
}

// previousIdentity returns the identity of an object that has not changed since the contexts were decoded before.
func (d *decoder) previousIdentity(r appcontext.Resource) (identity, bool) {
	old := d.previous[d.location]
	if old == nil {
		return identity{}, false
	}
	i, ok := slices.BinarySearchFunc(old.resources, r.Name(), func(b resource, name string) int { return strings.Compare(b.stored.Name(), name) })
	if !ok || old.resources[i].stored.Handle() != r.Handle() || old.resources[i].stored.Revision() != r.Revision() {
		return identity{}, false
	}
	return old.resources[i].identity, true
}

// Expected is an app in a cluster that a document covers, and where its bundle is found.
type Expected struct {
	AppInCluster

	// BundleName is the name of the ResourceBundleState that the app has in the cluster, <context>-<app>, and the value of
	// its label emco/deployment-id.
	BundleName string
	// Saved is the key in the context under which the status of that bundle is saved; empty when it is not saved.
	Saved appcontext.Handle
	// SavedRevision is the revision of etcd at which that status was saved.
	SavedRevision int64
}

// isAbout reports whether the document of a subject covers an app in a cluster. The document of a cluster covers only its
// network intents, even if the context has more, because a user who may read one cluster may not read another.
func isAbout(s appcontext.DeploymentRef, at AppInCluster) bool {
	return s.Cluster == "" || at == AppInCluster{appcontext.NetworkIntents, s.Provider + "+" + s.Cluster}
}

// isSelected reports whether a query about a subject selects an app in a cluster.
func isSelected(s appcontext.DeploymentRef, q Query, at AppInCluster) bool {
	return isAbout(s, at) && filterMatches(q.Apps, at.App) && filterMatches(q.Clusters, at.Cluster)
}

// problemsOf returns the problems of a subject, at most maxProblems.
func (c *Contents) problemsOf(s appcontext.DeploymentRef) []string {
	var found []string
	for _, p := range c.problems {
		if p.location == (AppInCluster{}) || isAbout(s, p.location) {
			found = append(found, p.text)
		}
	}
	if more := len(found) - maxProblems + 1; more > 1 {
		found = append(found[:maxProblems-1], fmt.Sprintf("%d more", more))
	}
	return found
}

// Expected returns the apps in clusters for which the document of a query about a subject needs a Report, in the order of the document.
// A query that does not use the clusters, such as type=rsync without health, needs none.
func (c *Contents) Expected(s appcontext.DeploymentRef, q Query) []Expected {
	if c == nil || !q.usesClusters() {
		return nil
	}
	var expected []Expected
	for _, a := range c.apps {
		for _, p := range a.clusters {
			if !isSelected(s, q, p.AppInCluster) {
				continue
			}
			e := Expected{AppInCluster: p.AppInCluster, BundleName: p.bundle}
			if p.hasSaved {
				e.Saved, e.SavedRevision = p.saved.Handle().Level("status"), p.saved.Revision("status")
			}
			expected = append(expected, e)
		}
	}
	return expected
}

// SavedBundle returns the bundle that is saved in the context for an app in a cluster, as DecodeBundle returns it; nil when there
// is none. It decodes the bundle once for each revision, with the rules of the first call. When the rules change, call Decode
// again, without previous.
func (c *Contents) SavedBundle(p AppInCluster, user rules.UserRules) *Bundle {
	at, ok := c.appsInClusters[p]
	if !ok || !at.hasSaved {
		return nil
	}
	if known := at.savedBundle.Load(); known != nil {
		return known
	}
	text, _ := at.saved.Bundle() // What cannot be read is malformed.
	at.savedBundle.CompareAndSwap(nil, DecodeBundle(p.Cluster, text, user))
	return at.savedBundle.Load()
}
