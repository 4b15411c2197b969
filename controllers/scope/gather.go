package scope

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/kubevela"
)

// finding is what one reference of a scope leads to, or one bundle that a selector or a label of the scope has found.
type finding struct {
	// app is the app the members belong to.
	app string
	// ref is the reference, filled in with what was found.
	ref corev1alpha2.WorkloadReference
	// origin is where in KubeVela's Applications the reference leads; nil when it leads to none.
	origin *origin
	// links are the app's links into the inventory.
	links *corev1alpha2.InventoryLinks
	// missing is the result of a reference to a bundle if it leads nowhere.
	missing healthscope.Result
	// results are raw and still to be judged: references that lead nowhere, and objects that are referred to directly.
	results []healthscope.Result
	// members are judged: those of bundles. clusters has the cluster of each bundle that they are from.
	members  []*healthscope.Member
	clusters []string
	// unlisted counts what the bundles do not name.
	unlisted map[fleet.BundleKey]healthscope.Summary
	// component is the component of OAM that an object belongs to, and workloadStatus the status of an object that no rule can judge, as JSON.
	component, workloadStatus string
	// byComponent is true when a bundle is that of an Application of KubeVela: its members are in the apps of their components, unless the scope says which app they are in.
	byComponent bool
	// truncated is true when a bundle does not name all its resources.
	truncated bool
	// partial are clusters in which there may be more resources than those that are named.
	partial []string
	// aside is true for a second answer on an object that another finding has: it is no reference of the scope.
	aside bool
}

// gathered is the input of decide.
type gathered struct {
	findings []finding
	// carriedOver is what the scope's status counts in clusters that have not been read.
	carriedOver []carriedOver
	// arrivals is how many clusters had been read for the first time before.
	arrivals uint64
	// looks are what the scope has looked at.
	looks looks
	// pods is what the pods of workloads that are referred to directly say of these, as far as they have been looked at.
	pods seenPods
	// stale are the states of clusters that are not Connected.
	stale map[string]fleet.ClusterState
	// hints say of apps, by name, that their selectors match workloads and no bundle.
	hints map[string]string
	// probing is whether the probes that the scope asks for are made.
	probing probing
	// settling is for how long the scope is to wait, at most, for what is being read for the first time; zero means that it need not.
	settling time.Duration
}

// bundles is the part of fleet.View that a scope reads.
type bundles interface {
	Cluster() string
	Clusters() []string
	State(cluster string) (fleet.ClusterState, bool)
	Unreadable() map[string]fleet.ClusterState
	Arrivals() uint64
	CompleteFor(cluster, namespace string) bool
	Named(namespace, name string) []*fleet.Bundle
	Select(namespace string, selector labels.Selector) []*fleet.Bundle
}

// lookup finds an object that is referred to directly.
type lookup func(cluster string, gvk schema.GroupVersionKind, name types.NamespacedName) fleet.Lookup

// selection finds the objects of a kind that a selector matches.
type selection func(cluster string, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) fleet.Selection

// gatherer collects what belongs to one scope.
type gatherer struct {
	scope     *corev1alpha2.HealthScope
	bundles   bundles
	lookup    lookup
	selection selection
	// trusted are the namespaces whose Applications may lead to other namespaces.
	trusted []string
	// contexts returns what AppContexts require; nil when there are none.
	contexts Contexts
	// probes are the HTTP probes of Services; nil when there are none.
	probes Probes
	now    time.Time
	out    gathered
	apps   []gatheredApp
	// unreadableThen are the clusters that could not be read when gathering began. One may have been read since, after its bundles were looked for.
	unreadableThen map[string]fleet.ClusterState
	// followed are the kinds of objects that are looked at.
	followed sets.Set[schema.GroupVersionKind]
	// versionsOf are the versions of components by kind, as far as they have been looked for.
	versionsOf map[fleet.Kind]map[version][]fleet.Lookup
	// back are the scopes of the namespace whose references lead back to this one, each with the next scope on its way.
	back map[string]string
}

// gatheredApp is one app of a scope while it is being gathered.
type gatheredApp struct {
	specApp

	// byLabel is true for an app that is not in the spec, but in labels of bundles.
	byLabel bool
	// bundles are the bundles that have been found for the app.
	bundles map[fleet.BundleKey]struct{}
	// bundleRefs are those findings of the app, by index, that are of its references to bundles.
	bundleRefs []int
}

// finding returns what a reference of the app leads to, before anything is found.
func (a *gatheredApp) finding(ref corev1alpha2.WorkloadReference) finding {
	return finding{app: a.Name, links: a.Inventory, ref: ref}
}

// appNamed returns the index of the app with a name. An app that the spec does not have is added.
func (g *gatherer) appNamed(name string) int {
	at := slices.IndexFunc(g.apps, func(a gatheredApp) bool { return a.Name == name })
	if at < 0 {
		at = len(g.apps)
		g.apps = append(g.apps, gatheredApp{specApp: specApp{ScopeApp: corev1alpha2.ScopeApp{Name: name}}, byLabel: true, bundles: map[fleet.BundleKey]struct{}{}})
	}
	return at
}

// findingsOf returns what has been found for an app.
func (g *gatherer) findingsOf(app *gatheredApp) iter.Seq[*finding] {
	return func(yield func(*finding) bool) {
		for i := range g.out.findings {
			if f := &g.out.findings[i]; f.app == app.Name && !yield(f) {
				return
			}
		}
	}
}

func (g *gatherer) gather() gathered {
	g.out.arrivals, g.out.looks, g.unreadableThen = g.bundles.Arrivals(), looks{}, g.bundles.Unreadable()
	g.followed, g.versionsOf = sets.New[schema.GroupVersionKind](), map[fleet.Kind]map[version][]fleet.Lookup{}
	for gvk := range references(g.scope) { // They come before what objects lead to.
		if gvk.GroupKind() != bundleKind {
			g.follows(gvk)
		}
	}
	for _, app := range appsOf(&g.scope.Spec) {
		g.apps = append(g.apps, gatheredApp{specApp: app, bundles: map[fleet.BundleKey]struct{}{}})
	}
	g.checkSelection(&g.apps[0], "spec.clusters", g.scope.Spec.Clusters)
	for i := range g.apps {
		app := &g.apps[i]
		g.checkSelection(app, fmt.Sprintf("clusters of app %q", app.Name), app.Clusters)
		for i, ref := range app.WorkloadReferences {
			g.ref(app, ref, app.origin(i))
		}
		if app.Selector != nil {
			g.selected(app)
		}
		if app.WorkloadSelector != nil {
			g.selectedWorkloads(app)
		}
	}
	g.labelled()
	g.probed()
	g.carryOver()
	for i := range g.apps {
		g.expected(&g.apps[i])
	}
	for i := range g.apps {
		g.expectedResources(&g.apps[i])
	}
	g.addMissing()
	g.out.stale = g.staleClusters()
	return g.out
}

// ref follows a reference.
func (g *gatherer) ref(app *gatheredApp, ref corev1alpha2.WorkloadReference, from *origin) {
	gvk, problem := parseRef(g.scope.Namespace, ref)
	at := objectAt{fleet.Kind{Cluster: cmp.Or(ref.Cluster, g.bundles.Cluster()), GroupVersionKind: gvk}, types.NamespacedName{Namespace: g.scope.Namespace, Name: ref.Name}}
	switch {
	case problem != nil:
		g.addFrom(app, ref, from, *problem)
	case gvk.GroupKind() == bundleKind:
		g.bundleRef(app, ref)
	case gvk == kubevela.ApplicationKind:
		g.applicationRef(app, ref, from, at)
	default:
		g.objectRef(app, ref, from, at)
	}
}

// bundleRef follows a reference to a bundle into every cluster, or into one.
func (g *gatherer) bundleRef(app *gatheredApp, ref corev1alpha2.WorkloadReference) {
	missing := bundleResult(cmp.Or(ref.Cluster, g.bundles.Cluster()), g.scope.Namespace, ref.Name)
	if ref.Cluster != "" {
		if r, cannot := g.cannotBeIn(app, missing); cannot {
			g.add(app, ref, r)
			return
		}
	}
	missing.Message = fmt.Sprintf("ResourceBundleState %q does not exist in namespace %q", ref.Name, g.scope.Namespace)
	found := app.finding(ref)
	var uids []types.UID
	for _, b := range g.bundlesNamed(ref.Name) {
		if ref.Cluster != "" && b.Cluster != ref.Cluster {
			continue
		}
		if problem := g.mismatch(app, ref, b); problem != "" {
			missing.Message = problem
			continue
		}
		uids = append(uids, b.UID)
		app.bundles[b.BundleKey] = struct{}{}
		found.addBundle(b)
	}
	if len(uids) == 1 {
		found.ref.UID = uids[0]
	}
	if len(uids) == 0 && (ref.Cluster != "" || len(g.scope.Spec.ExpectedClusters) == 0) {
		found.missing = missing
	}
	app.bundleRefs = append(app.bundleRefs, len(g.out.findings))
	g.out.findings = append(g.out.findings, found)
}

// mismatch returns why a bundle that has the name in a reference is not the one that is meant; it is empty when the bundle is.
func (g *gatherer) mismatch(app *gatheredApp, ref corev1alpha2.WorkloadReference, b *fleet.Bundle) string {
	switch {
	case !g.takesFrom(app, b.Cluster):
		return fmt.Sprintf("ResourceBundleState %q is in cluster %q, which bundles are not taken from", ref.Name, b.Cluster)
	case ref.UID != "" && b.UID != ref.UID:
		return anotherUID(bundleResult(b.Cluster, b.Namespace, b.Name), string(b.UID))
	}
	return ""
}

// known reports whether the hub knows a cluster.
func (g *gatherer) known(cluster string) bool {
	_, known := g.state(cluster)
	return known
}

// state returns what is known of a cluster itself, and false when it is not known.
func (g *gatherer) state(cluster string) (fleet.ClusterState, bool) {
	g.out.looks[lookAtCluster(cluster)] = nil
	if s, away := g.unreadableThen[cluster]; away {
		return s, true
	}
	return g.bundles.State(cluster)
}

// add adds a finding with results that are still to be judged, and returns it. The next finding may move it.
func (g *gatherer) add(app *gatheredApp, ref corev1alpha2.WorkloadReference, results ...healthscope.Result) *finding {
	return g.addFrom(app, ref, nil, results...)
}

// addFrom adds such a finding of one of KubeVela's Applications, if from is not nil.
func (g *gatherer) addFrom(app *gatheredApp, ref corev1alpha2.WorkloadReference, from *origin, results ...healthscope.Result) *finding {
	for i := range results {
		results[i].Cluster = cmp.Or(results[i].Cluster, g.bundles.Cluster())
	}
	found := app.finding(ref)
	found.origin, found.results = from, results
	if from != nil {
		found.component = from.component
	}
	g.out.findings = append(g.out.findings, found)
	return &g.out.findings[len(g.out.findings)-1]
}

// missing returns the result of an object that does not exist, or whose cluster cannot be read.
func (g *gatherer) missing(r healthscope.Result) healthscope.Result {
	g.await(r.Cluster)
	if state, unseen := g.unreadable(r.Cluster); unseen {
		return unreadableResult(r, state, "")
	}
	r.State, r.Reason = healthscope.NotPresent, healthscope.ReasonNotFound
	return r
}

// addMissing adds the missing bundle to each reference that leads nowhere.
func (g *gatherer) addMissing() {
	for i := range g.out.findings {
		if f := &g.out.findings[i]; f.missing.Name != "" && f.empty() {
			f.results = append(f.results, g.missing(f.missing))
		}
	}
}

// empty reports whether nothing has been found, and nothing is carried over.
func (s *finding) empty() bool { return len(s.members)+len(s.results)+len(s.unlisted) == 0 }

// cannotBeIn returns the result of an object of an app whose cluster is not known, or not one that bundles are taken from,
// and whether it is such an object.
func (g *gatherer) cannotBeIn(app *gatheredApp, r healthscope.Result) (healthscope.Result, bool) {
	switch {
	case !g.known(r.Cluster):
		return inUnknownCluster(r), true
	case !g.takesFrom(app, r.Cluster):
		return unknownFor(r, healthscope.ReasonClusterExcluded, "bundles are not taken from cluster %q: clusters of the scope or of the app does not select it", r.Cluster), true
	}
	return r, false
}

// inUnknownCluster returns the result of an object whose cluster is not known.
func inUnknownCluster(r healthscope.Result) healthscope.Result {
	return unknownFor(r, healthscope.ReasonUnknownCluster, "no cluster %q is known", r.Cluster)
}

// unknownFor returns the result of an object that cannot be judged, for a reason.
func unknownFor(r healthscope.Result, reason healthscope.Reason, format string, args ...any) healthscope.Result {
	r.State, r.Reason, r.Message = healthscope.Unknown, reason, fmt.Sprintf(format, args...)
	return r
}

// anotherUID returns the message of an object that has another uid than the reference.
func anotherUID(r healthscope.Result, uid string) string {
	return fmt.Sprintf("%s %q is another one than the reference means: its uid is %s", r.Kind, r.Name, uid)
}

// addBundle adds a bundle's members, and the bundle itself where it cannot be read, is not filled, or is empty.
func (s *finding) addBundle(b *fleet.Bundle) {
	self := bundleResult(b.Cluster, b.Namespace, b.Name)
	self.UID = string(b.UID)
	switch {
	case len(b.Malformed) > 0:
		s.results = append(s.results, unknownFor(self, healthscope.ReasonMalformedBundle, "cannot read %s of the bundle", joinBounded(b.Malformed)))
	case !b.Observed:
		s.results = append(s.results, unknownFor(self, healthscope.ReasonNotObserved, "no monitor has filled the bundle yet"))
	case len(b.Members) == 0 && !b.Truncated:
		self.State, self.Reason, self.Message = healthscope.NotPresent, healthscope.ReasonNoResources, "no resource carries the bundle's label"
		s.results = append(s.results, self)
	}
	for i := range b.Members {
		s.members = append(s.members, &b.Members[i])
	}
	s.byComponent = s.byComponent || s.app == "" && b.Labels[corev1alpha2.LabelApplication] != ""
	s.clusters = append(s.clusters, b.Cluster)
	if b.Truncated {
		s.truncated, s.partial = true, append(s.partial, b.Cluster)
	}
	if b.Unlisted.Total > 0 {
		s.addUnlisted(b.BundleKey, b.Unlisted)
	}
}

// appOf returns the app of a member.
func (s *finding) appOf(m *healthscope.Member) string {
	if s.byComponent {
		return m.Labels[corev1alpha2.LabelComponent]
	}
	return s.app
}

// addUnlisted adds the number of resources that a bundle does not name.
func (s *finding) addUnlisted(bundle fleet.BundleKey, n healthscope.Summary) {
	if s.unlisted == nil {
		s.unlisted = map[fleet.BundleKey]healthscope.Summary{}
	}
	s.unlisted[bundle] = n
}

// resultOf returns the result of an object of which nothing but its name is known.
func resultOf(kind fleet.Kind, namespace, name string) healthscope.Result {
	return healthscope.Result{
		Key:     healthscope.Key{Cluster: kind.Cluster, Group: kind.Group, Kind: kind.Kind, Namespace: namespace, Name: name},
		Version: kind.Version,
	}
}

func bundleResult(cluster, namespace, name string) healthscope.Result {
	return resultOf(fleet.Kind{Cluster: cluster, GroupVersionKind: bundlesKind.GroupVersionKind}, namespace, name)
}

// objectRef follows a reference to any other object.
func (g *gatherer) objectRef(app *gatheredApp, ref corev1alpha2.WorkloadReference, from *origin, at objectAt) {
	found := g.object(at.Kind, at.NamespacedName)
	of := found.Result
	switch chain := g.cycle(at.Cluster, at.GroupKind(), ref.Name); {
	case ref.UID != "" && of.UID != "" && string(ref.UID) != of.UID:
		found = fleet.Lookup{Result: isAnother(of)}
	case chain != nil:
		found = fleet.Lookup{Result: inCycle(healthscope.Result{Key: of.Key, Version: of.Version, UID: of.UID}, chain)}
	}
	ref.UID = cmp.Or(ref.UID, types.UID(found.Result.UID))
	added := g.addFrom(app, ref, from, g.related(at.Kind, found)...)
	added.component, added.workloadStatus = cmp.Or(found.Labels.Get(corev1alpha2.LabelComponent), added.component), found.Status
}

// isAnother returns the result of an object that has another uid than the reference.
func isAnother(r healthscope.Result) healthscope.Result {
	return healthscope.Result{Key: r.Key, Version: r.Version, State: healthscope.NotPresent, Reason: healthscope.ReasonNotFound, Message: anotherUID(r, r.UID)}
}

// selected adds the bundles an app's selector matches, unless one of the app's references has led to them already.
func (g *gatherer) selected(app *gatheredApp) {
	selector, err := metav1.LabelSelectorAsSelector(app.Selector)
	if err != nil {
		g.addBadSelectorf(app, app.Name, "the app's selector cannot be read: %v", err)
		return
	}
	for _, b := range g.bundlesWith(selector) {
		if g.takesFrom(app, b.Cluster) {
			g.bundle(app, b)
		}
	}
	if len(app.bundles) == 0 {
		g.addHint(app, selector)
	}
}

// labelled adds the bundles that have a label of the scope, unless an app has them already.
// They join the app of their name, if the scope has one.
func (g *gatherer) labelled() {
	for _, selector := range []labels.Selector{
		labels.SelectorFromSet(labels.Set{corev1alpha2.LabelScopeName: g.scope.Name}),
		labels.SelectorFromSet(labels.Set{corev1alpha2.LabelScopePrefix + g.scope.Name: "true"}),
	} {
		for _, b := range g.bundlesWith(selector) {
			if slices.ContainsFunc(g.apps, func(a gatheredApp) bool { _, ok := a.bundles[b.BundleKey]; return ok }) {
				continue
			}
			if app := &g.apps[g.appNamed(b.App)]; g.takesFrom(app, b.Cluster) {
				g.bundle(app, b)
			}
		}
	}
}

// bundle adds a bundle that no reference names, unless the app has it already.
func (g *gatherer) bundle(app *gatheredApp, b *fleet.Bundle) {
	if _, ok := app.bundles[b.BundleKey]; ok {
		return
	}
	app.bundles[b.BundleKey] = struct{}{}
	found := app.finding(bundleReference(b.Name, b.Cluster))
	found.ref.UID = b.UID
	found.addBundle(b)
	g.out.findings = append(g.out.findings, found)
}

// bundlesNamed returns the bundles with a name.
func (g *gatherer) bundlesNamed(name string) []*fleet.Bundle {
	g.out.looks.addNamed(bundlesKind, g.scope.Namespace, name)
	return g.bundles.Named(g.scope.Namespace, name)
}

// bundlesWith returns the bundles that a selector matches.
func (g *gatherer) bundlesWith(selector labels.Selector) []*fleet.Bundle {
	g.out.looks.addSelected(bundlesKind, g.scope.Namespace, selector)
	return g.bundles.Select(g.scope.Namespace, selector)
}
