package status

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/rules"
)

// stateUnreadable is the word for a state in the context that cannot be read, or that nothing is known of.
const stateUnreadable = "Unknown"

// maxProblems is how many places a document names at most that cannot be read.
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
	bodies         map[appcontext.Handle]body
	problems       []problem
}

// problem is something in a context that cannot be read.
type problem struct {
	// location is the place it belongs to; the zero value for what is of the whole context.
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
	// saved is where the bundle is saved that was seen there; the zero value if nowhere.
	saved    appcontext.Cluster
	hasSaved bool
	// savedBundle is that bundle, decoded; nil before it has been asked for.
	savedBundle atomic.Pointer[Bundle]
	// connectivity is how rsync found the cluster last. retrying is true while rsync cannot reach it, and tries again.
	connectivity appcontext.Connectivity
	retrying     bool
	resources    []resource
	// matched is how the resources match the members of the last report; nil before the first.
	matched atomic.Pointer[matching]
}

// resource is an object that is expected in a cluster.
type resource struct {
	identity

	// rsync is what rsync did with it, in EMCO's word.
	rsync string
	// defaultNamespace is the namespace where it goes if it does not say so itself.
	defaultNamespace string
	// hook is true for what the order of the resources leaves out: hooks, which come and go, and definitions of kinds.
	hook   bool
	stored appcontext.Resource
}

// body is what an object in a context is, as of a revision of etcd.
type body struct {
	revision int64
	identity identity
	ok       bool
}

// Decode reads the contexts of a view: what is expected from Context, and what rsync did about it from StatusContext,
// under which EMCO keeps that after an update. It returns nil for a view without a context. previous, which may be nil, is
// what was decoded of an earlier revision: what has not changed since is taken from there instead of being parsed again.
//
// Decode does not omit resources that it cannot read: it lists them as Unknown, and the document names the problems.
func Decode(view appcontext.View, previous *Contents) *Contents {
	if view.Context == nil {
		return nil
	}
	d := decoder{Contents: &Contents{id: view.Context.ID(), appsInClusters: map[AppInCluster]*appInCluster{}, bodies: map[appcontext.Handle]body{}},
		previous: previous, status: view.StatusContext, parsed: map[string]body{}}
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

	previous *Contents
	// status is the context with the states.
	status    *appcontext.Snapshot
	namespace string
	// finished is true when rsync does nothing about the context any more, even if something could not be done.
	finished bool
	// location is the place that is being decoded.
	location AppInCluster
	// parsed is what the texts of objects say.
	parsed map[string]body
}

func (d *decoder) problemf(format string, args ...any) {
	d.problems = append(d.problems, problem{d.location, fmt.Sprintf(format, args...)})
}

// checkError notes a value that cannot be read. What is in it is not repeated: it may be a secret.
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
		saved, found := states.Cluster(c.Name())
		if _, reported := saved.Value("status"); found && reported {
			p.saved, p.hasSaved = saved, true
			d.reuseSavedBundle(p)
		}
		p.connectivity = d.connectivity(c)
		p.retrying = p.connectivity == appcontext.ConnectivityRetrying && !d.finished
		resources := c.Resources()
		inOrder := orderOf(c)
		p.resources = make([]resource, 0, len(resources))
		for _, r := range resources {
			if d.belongsToOtherContext(r) {
				continue
			}
			stored, _ := saved.Resource(r.Name())
			result := d.decodeResource(r, stored, found)
			result.hook = len(inOrder) > 0 && !inOrder[r.Name()]
			p.resources = append(p.resources, result)
		}
		if len(p.resources) == 0 && len(resources) > 0 {
			continue // All of it is of another context, and so is the bundle.
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

// reuseSavedBundle takes the bundle that is saved for a place from the earlier revision, if it was decoded then and has not changed.
func (d *decoder) reuseSavedBundle(p *appInCluster) {
	if d.previous == nil {
		return
	}
	old, ok := d.previous.appsInClusters[p.AppInCluster]
	if ok && old.hasSaved && old.saved.Handle() == p.saved.Handle() && old.saved.Revision("status") == p.saved.Revision("status") {
		p.savedBundle.Store(old.savedBundle.Load())
	}
}

// orderOf returns the names of the resources that the order of a cluster's resources names. One that cannot be read counts as none.
func orderOf(c appcontext.Cluster) map[string]bool {
	names, _ := c.ResourceOrder()
	inOrder := make(map[string]bool, len(names))
	for _, name := range names {
		inOrder[name] = true
	}
	return inOrder
}

// belongsToOtherContext reports whether a resource is kept here for another context: what an update adds, EMCO enters without its
// object in the context that keeps the states, and it stays there when the update is rolled back.
func (d *decoder) belongsToOtherContext(r appcontext.Resource) bool {
	if raw, _ := r.Value(); string(raw) != `"`+placeholder+`"` {
		return false
	}
	reference, err := r.Reference()
	return err == nil && reference != "" && reference != d.id
}

// finishedStates are the states in which rsync has given up, or is done with everything.
var finishedStates = map[appcontext.State]bool{
	appcontext.StateTerminated: true, appcontext.StateInstantiateFailed: true, appcontext.StateTerminateFailed: true, appcontext.StateUpdateFailed: true,
}

// connectivity returns how rsync found a cluster last.
func (d *decoder) connectivity(c appcontext.Cluster) appcontext.Connectivity {
	found, err := c.Connectivity()
	d.checkError(err, c.Handle().Level("readystatus"))
	return found
}

// markRetrying says of resources in a cluster that rsync cannot reach what rsync says only of the cluster: what is still to be done
// with them is being tried again.
func (d *decoder) markRetrying(resources []resource) {
	for i := range resources {
		r := &resources[i]
		deleting := d.state == appcontext.StateTerminating && r.rsync == string(appcontext.ResourceApplied)
		if deleting || r.rsync == string(appcontext.ResourcePending) {
			r.rsync = string(appcontext.ResourceRetrying)
		}
	}
}

// decodeResource decodes an expected object. states is where its state is, if found.
func (d *decoder) decodeResource(r, states appcontext.Resource, found bool) resource {
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
	if !found {
		return decoded
	}
	if raw, ok := states.Value("status"); ok {
		if word, usual := commonStates[string(raw)]; usual {
			decoded.rsync = word
			return decoded
		}
		state, err := states.Status()
		d.checkError(err, states.Handle().Level("status"))
		switch {
		case err != nil:
			decoded.rsync = stateUnreadable
		case state != "":
			decoded.rsync = string(state)
		}
	}
	return decoded
}

// commonStates are the values that states usually have, as they are stored. It saves decoding thousands of them.
var commonStates = func() map[string]string {
	usual := map[string]string{}
	for _, state := range []appcontext.ResourceStatus{
		appcontext.ResourcePending, appcontext.ResourceApplied, appcontext.ResourceFailed, appcontext.ResourceRetrying, appcontext.ResourceDeleted,
	} {
		usual[`{"Status":"`+string(state)+`"}`] = string(state)
	}
	return usual
}()

// identify says what an object in a context is. It is empty where that cannot be read.
func (d *decoder) identify(r appcontext.Resource) identity {
	cached, ok := d.previous.cachedBody(r.Handle())
	if revision := r.Revision(); !ok || cached.revision != revision {
		text, err := r.Body()
		cached = body{revision: revision}
		if err == nil {
			cached.identity, cached.ok = d.parse(text)
		}
	}
	if !cached.ok {
		d.problemf("the object at %q cannot be read", r.Handle())
	}
	d.bodies[r.Handle()] = cached
	return cached.identity
}

// parse calls identify once for each text: most objects go to many clusters unchanged.
func (d *decoder) parse(text string) (identity, bool) {
	cached, ok := d.parsed[text]
	if !ok {
		cached.identity, cached.ok = identify(text)
		d.parsed[text] = cached
	}
	return cached.identity, cached.ok
}

func (c *Contents) cachedBody(h appcontext.Handle) (body, bool) {
	if c == nil {
		return body{}, false
	}
	b, ok := c.bodies[h]
	return b, ok
}

// Expected is a place that a document is about, and where to look for what is there.
type Expected struct {
	AppInCluster

	// BundleName is the name of the ResourceBundleState that the app has in the cluster, <context>-<app>, and the value of
	// its label emco/deployment-id.
	BundleName string
	// Saved is where the status of that bundle is saved in the context; empty when none has been seen.
	Saved appcontext.Handle
	// SavedRevision is the revision of etcd at which it was saved.
	SavedRevision int64
}

// isAbout reports whether the document of a subject has a place in its context. That of a cluster has its network
// intents only, even if the context has more: who may ask about a cluster may not see another.
func isAbout(s appcontext.DeploymentRef, at AppInCluster) bool {
	return s.Cluster == "" || at == AppInCluster{appcontext.NetworkIntents, s.Provider + "+" + s.Cluster}
}

// isSelected reports whether the document of a query about a subject has a place.
func isSelected(s appcontext.DeploymentRef, q Query, at AppInCluster) bool {
	return isAbout(s, at) && filterMatches(q.Apps, at.App) && filterMatches(q.Clusters, at.Cluster)
}

// problemsOf names what of a subject cannot be read.
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

// Expected returns the places for which the document of a query about a subject needs a Report, in the order of the document.
// A query about rsync alone needs none.
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

// SavedBundle returns the bundle that is saved in the context for a place, as DecodeBundle returns it; nil when there is none. It
// is decoded once for each revision, with the rules of the first call: when the rules change, decode the contexts again, without
// the previous ones.
func (c *Contents) SavedBundle(p AppInCluster, user rules.UserRules) *Bundle {
	if c == nil {
		return nil
	}
	at, ok := c.appsInClusters[p]
	if !ok || !at.hasSaved {
		return nil
	}
	if known := at.savedBundle.Load(); known != nil {
		return known
	}
	text, err := at.saved.Bundle()
	if err != nil {
		text = ""
	}
	at.savedBundle.CompareAndSwap(nil, DecodeBundle(p.Cluster, text, user))
	return at.savedBundle.Load()
}
