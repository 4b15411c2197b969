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

// finding holds what one reference of a scope leads to, or one bundle that a selector or a label of the scope matches.
type finding struct {
	// app is the app the members belong to.
	app string
	// ref is the reference, filled in with what was found.
	ref corev1alpha2.WorkloadReference
	// origin is the place in KubeVela's Applications that the reference leads to; nil when it leads to none.
	origin *origin
	// links are the app's links into the inventory.
	links *corev1alpha2.InventoryLinks
	// missing is the result of a reference to a bundle if it leads nowhere.
	missing healthscope.Result
	// results have not been judged yet: references that lead nowhere, and objects that are referred to directly.
	results []healthscope.Result
	// members are the judged members of bundles. clusters holds the cluster of each of these bundles.
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
	// partial are clusters in which there may be more resources than the named ones.
	partial []string
	// duplicate is true for a second result on an object that another finding has; it is not a reference of the scope.
	duplicate bool
}

// gathered is the input of decide.
type gathered struct {
	findings []finding
	// carriedOver holds the counts of the scope's status in clusters that have not been read.
	carriedOver []carriedOver
	// firstSyncs is the number of clusters that had been read for the first time when gathering began.
	firstSyncs uint64
	// dependencies are the objects, kinds and clusters that the judgement depends on.
	dependencies dependencies
	// pods holds the diagnoses from the pods of workloads that are referred to directly.
	pods workloadDiagnoses
	// stale are the states of clusters that are not Connected.
	stale map[string]fleet.ClusterState
	// hints holds, by app, that its selector matches workloads and no bundle.
	hints map[string]string
	// probesCondition is the condition on the probes that the scope requests.
	probesCondition probesCondition
	// syncWait is the longest time that the scope waits for what is being read for the first time; zero means that it does not wait.
	syncWait time.Duration
}

// view is the part of fleet.View that a scope reads.
type view interface {
	Cluster() string
	Clusters() []string
	State(cluster string) (fleet.ClusterState, bool)
	Unreadable() map[string]fleet.ClusterState
	FirstSyncs() uint64
	CompleteFor(cluster, namespace string) bool
	Named(namespace, name string) []*fleet.Bundle
	Select(namespace string, selector labels.Selector) []*fleet.Bundle
}

// lookupFunc returns an object that is referred to directly.
type lookupFunc func(cluster string, gvk schema.GroupVersionKind, name types.NamespacedName) fleet.Lookup

// selectFunc returns the objects of a kind that a selector matches.
type selectFunc func(cluster string, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) fleet.Selection

// gatherer collects the resources that belong to one scope.
type gatherer struct {
	scope         *corev1alpha2.HealthScope
	view          view
	lookup        lookupFunc
	selectObjects selectFunc
	// trusted are the namespaces whose Applications may lead to other namespaces.
	trusted []string
	// contexts returns what AppContexts require; nil when there are none.
	contexts Contexts
	// probes are the HTTP probes of Services; nil when there are none.
	probes Probes
	now    time.Time
	out    gathered
	apps   []gatheredApp
	// unreadableAtStart are the clusters that could not be read when gathering began. A cluster may become readable after its bundles have been looked up.
	unreadableAtStart map[string]fleet.ClusterState
	// followedKinds are the kinds of objects that the scope follows.
	followedKinds sets.Set[schema.GroupVersionKind]
	// workloadVersions caches the versions of components, by kind.
	workloadVersions map[fleet.Kind]map[componentKey][]fleet.Lookup
	// referrerPaths are the scopes of the namespace whose references lead back to this one, each with the next scope on its path.
	referrerPaths map[string]string
}

// gatheredApp is one app of a scope while it is being gathered.
type gatheredApp struct {
	specApp

	// byLabel is true for an app that is not in the spec, but in labels of bundles.
	byLabel bool
	// bundles are the bundles that have been found for the app.
	bundles map[fleet.BundleKey]struct{}
	// bundleRefs are the indexes of the findings of the app's references to bundles.
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
	g.out.firstSyncs, g.out.dependencies, g.unreadableAtStart = g.view.FirstSyncs(), dependencies{}, g.view.Unreadable()
	g.followedKinds, g.workloadVersions = sets.New[schema.GroupVersionKind](), map[fleet.Kind]map[componentKey][]fleet.Lookup{}
	for gvk := range references(g.scope) { // The kinds of references take precedence over those that objects lead to.
		if gvk.GroupKind() != bundleKind.GroupKind() {
			g.followsKind(gvk)
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
			g.followRef(app, ref, app.origin(i))
		}
		if app.Selector != nil {
			g.addSelectedBundles(app)
		}
		if app.WorkloadSelector != nil {
			g.addSelectedWorkloads(app)
		}
	}
	g.addLabelledBundles()
	g.addProbed()
	g.carryOver()
	for i := range g.apps {
		g.addMissingBundles(&g.apps[i])
	}
	for i := range g.apps {
		g.addMissingResources(&g.apps[i])
	}
	g.addMissing()
	g.out.stale = g.staleClusters()
	return g.out
}

// followRef follows a reference.
func (g *gatherer) followRef(app *gatheredApp, ref corev1alpha2.WorkloadReference, from *origin) {
	gvk, problem := parseRef(g.scope.Namespace, ref)
	at := objectKey{fleet.Kind{Cluster: cmp.Or(ref.Cluster, g.view.Cluster()), GroupVersionKind: gvk}, types.NamespacedName{Namespace: g.scope.Namespace, Name: ref.Name}}
	switch {
	case problem != nil:
		g.addWithOrigin(app, ref, from, *problem)
	case gvk.GroupKind() == bundleKind.GroupKind():
		g.followBundleRef(app, ref)
	case gvk == kubevela.ApplicationKind:
		g.followApplicationRef(app, ref, from, at)
	default:
		g.followObjectRef(app, ref, from, at)
	}
}

// followBundleRef follows a reference to a bundle, into its cluster or into every cluster.
func (g *gatherer) followBundleRef(app *gatheredApp, ref corev1alpha2.WorkloadReference) {
	missing := bundleResult(cmp.Or(ref.Cluster, g.view.Cluster()), g.scope.Namespace, ref.Name)
	if ref.Cluster != "" {
		if r, excluded := g.excludedResult(app, missing); excluded {
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

// mismatch returns why a bundle with the name in a reference does not match the reference; empty when it does.
func (g *gatherer) mismatch(app *gatheredApp, ref corev1alpha2.WorkloadReference, b *fleet.Bundle) string {
	switch {
	case !g.selectsCluster(app, b.Cluster):
		return fmt.Sprintf("ResourceBundleState %q is in cluster %q, which bundles are not taken from", ref.Name, b.Cluster)
	case ref.UID != "" && b.UID != ref.UID:
		return uidMismatchMessage(bundleResult(b.Cluster, b.Namespace, b.Name), string(b.UID))
	}
	return ""
}

// isKnown reports whether the hub knows a cluster.
func (g *gatherer) isKnown(cluster string) bool {
	_, known := g.clusterState(cluster)
	return known
}

// clusterState returns the state of a cluster, and whether the hub knows the cluster.
func (g *gatherer) clusterState(cluster string) (fleet.ClusterState, bool) {
	g.out.dependencies[clusterDependency(cluster)] = nil
	if s, away := g.unreadableAtStart[cluster]; away {
		return s, true
	}
	return g.view.State(cluster)
}

// add adds a finding with results that are still to be judged, and returns it. The next finding may move it.
func (g *gatherer) add(app *gatheredApp, ref corev1alpha2.WorkloadReference, results ...healthscope.Result) *finding {
	return g.addWithOrigin(app, ref, nil, results...)
}

// addWithOrigin adds such a finding with its origin in one of KubeVela's Applications; nil means that it has none.
func (g *gatherer) addWithOrigin(app *gatheredApp, ref corev1alpha2.WorkloadReference, from *origin, results ...healthscope.Result) *finding {
	for i := range results {
		results[i].Cluster = cmp.Or(results[i].Cluster, g.view.Cluster())
	}
	found := app.finding(ref)
	found.origin, found.results = from, results
	if from != nil {
		found.component = from.component
	}
	g.out.findings = append(g.out.findings, found)
	return &g.out.findings[len(g.out.findings)-1]
}

// missingResult returns the result of an object that does not exist, or whose cluster cannot be read.
func (g *gatherer) missingResult(r healthscope.Result) healthscope.Result {
	g.waitForCluster(r.Cluster)
	if state, unreadable := g.unreadable(r.Cluster); unreadable {
		return unreadableResult(r, state, "")
	}
	r.State, r.Reason = healthscope.NotPresent, healthscope.ReasonNotFound
	return r
}

// addMissing adds the missing bundle to each reference that leads nowhere.
func (g *gatherer) addMissing() {
	for i := range g.out.findings {
		if f := &g.out.findings[i]; f.missing.Name != "" && f.empty() {
			f.results = append(f.results, g.missingResult(f.missing))
		}
	}
}

// empty reports whether nothing has been found, and nothing is carried over.
func (f *finding) empty() bool { return len(f.members)+len(f.results)+len(f.unlisted) == 0 }

// excludedResult returns the result of an object of an app whose cluster is not known or not selected, and whether it is such an object.
func (g *gatherer) excludedResult(app *gatheredApp, r healthscope.Result) (healthscope.Result, bool) {
	switch {
	case !g.isKnown(r.Cluster):
		return unknownClusterResult(r), true
	case !g.selectsCluster(app, r.Cluster):
		return unknownFor(r, healthscope.ReasonClusterExcluded, "bundles are not taken from cluster %q: clusters of the scope or of the app does not select it", r.Cluster), true
	}
	return r, false
}

// unknownClusterResult returns the result of an object whose cluster is not known.
func unknownClusterResult(r healthscope.Result) healthscope.Result {
	return unknownFor(r, healthscope.ReasonUnknownCluster, "no cluster %q is known", r.Cluster)
}

// unknownFor returns the result of an object that cannot be judged, for a reason.
func unknownFor(r healthscope.Result, reason healthscope.Reason, format string, args ...any) healthscope.Result {
	r.State, r.Reason, r.Message = healthscope.Unknown, reason, fmt.Sprintf(format, args...)
	return r
}

// uidMismatchMessage returns the message of an object that has another uid than the reference.
func uidMismatchMessage(r healthscope.Result, uid string) string {
	return fmt.Sprintf("%s %q is another one than the reference means: its uid is %s", r.Kind, r.Name, uid)
}

// addBundle adds a bundle's members, and the bundle itself where it cannot be read, is not filled, or is empty.
func (f *finding) addBundle(b *fleet.Bundle) {
	self := bundleResult(b.Cluster, b.Namespace, b.Name)
	self.UID = string(b.UID)
	switch {
	case len(b.Malformed) > 0:
		f.results = append(f.results, unknownFor(self, healthscope.ReasonMalformedBundle, "cannot read %s of the bundle", joinBounded(b.Malformed)))
	case !b.Observed:
		f.results = append(f.results, unknownFor(self, healthscope.ReasonNotObserved, "no monitor has filled the bundle yet"))
	case len(b.Members) == 0 && !b.Truncated:
		self.State, self.Reason, self.Message = healthscope.NotPresent, healthscope.ReasonNoResources, "no resource carries the bundle's label"
		f.results = append(f.results, self)
	}
	for i := range b.Members {
		f.members = append(f.members, &b.Members[i])
	}
	f.byComponent = f.byComponent || f.app == "" && b.Labels[corev1alpha2.LabelApplication] != ""
	f.clusters = append(f.clusters, b.Cluster)
	if b.Truncated {
		f.truncated, f.partial = true, append(f.partial, b.Cluster)
	}
	if b.Unlisted.Total > 0 {
		f.addUnlisted(b.BundleKey, b.Unlisted)
	}
}

// appOf returns the app of a member.
func (f *finding) appOf(m *healthscope.Member) string {
	if f.byComponent {
		return m.Labels[corev1alpha2.LabelComponent]
	}
	return f.app
}

// addUnlisted adds the number of resources that a bundle does not name.
func (f *finding) addUnlisted(bundle fleet.BundleKey, n healthscope.Summary) {
	if f.unlisted == nil {
		f.unlisted = map[fleet.BundleKey]healthscope.Summary{}
	}
	f.unlisted[bundle] = n
}

// resultOf returns the result of an object of which only the name is known.
func resultOf(kind fleet.Kind, namespace, name string) healthscope.Result {
	return healthscope.Result{
		Key:     healthscope.Key{Cluster: kind.Cluster, Group: kind.Group, Kind: kind.Kind, Namespace: namespace, Name: name},
		Version: kind.Version,
	}
}

func bundleResult(cluster, namespace, name string) healthscope.Result {
	return resultOf(fleet.Kind{Cluster: cluster, GroupVersionKind: bundleKind}, namespace, name)
}

// followObjectRef follows a reference to any other object.
func (g *gatherer) followObjectRef(app *gatheredApp, ref corev1alpha2.WorkloadReference, from *origin, at objectKey) {
	found := g.object(at.Kind, at.NamespacedName)
	of := found.Result
	switch chain := g.cycle(at.Cluster, at.GroupKind(), ref.Name); {
	case ref.UID != "" && of.UID != "" && string(ref.UID) != of.UID:
		found = fleet.Lookup{Result: uidMismatchResult(of)}
	case chain != nil:
		found = fleet.Lookup{Result: cycleResult(healthscope.Result{Key: of.Key, Version: of.Version, UID: of.UID}, chain)}
	}
	ref.UID = cmp.Or(ref.UID, types.UID(found.Result.UID))
	added := g.addWithOrigin(app, ref, from, g.relatedResults(at.Kind, found)...)
	added.component, added.workloadStatus = cmp.Or(found.Labels.Get(corev1alpha2.LabelComponent), added.component), found.Status
}

// uidMismatchResult returns the result of an object that has another uid than the reference.
func uidMismatchResult(r healthscope.Result) healthscope.Result {
	return healthscope.Result{Key: r.Key, Version: r.Version, State: healthscope.NotPresent, Reason: healthscope.ReasonNotFound, Message: uidMismatchMessage(r, r.UID)}
}

// addSelectedBundles adds the bundles that an app's selector matches, unless one of the app's references has led to them already.
func (g *gatherer) addSelectedBundles(app *gatheredApp) {
	selector, err := metav1.LabelSelectorAsSelector(app.Selector)
	if err != nil {
		g.addBadSelectorf(app, app.Name, "the app's selector cannot be read: %v", err)
		return
	}
	for _, b := range g.bundlesWith(selector) {
		if g.selectsCluster(app, b.Cluster) {
			g.addBundleFinding(app, b)
		}
	}
	if len(app.bundles) == 0 {
		g.addHint(app, selector)
	}
}

// addLabelledBundles adds the bundles that have a label of the scope, unless an app has them already.
// They join the app of their name, if the scope has one.
func (g *gatherer) addLabelledBundles() {
	for _, selector := range []labels.Selector{
		labels.SelectorFromSet(labels.Set{corev1alpha2.LabelScopeName: g.scope.Name}),
		labels.SelectorFromSet(labels.Set{corev1alpha2.LabelScopePrefix + g.scope.Name: "true"}),
	} {
		for _, b := range g.bundlesWith(selector) {
			if slices.ContainsFunc(g.apps, func(a gatheredApp) bool { _, ok := a.bundles[b.BundleKey]; return ok }) {
				continue
			}
			if app := &g.apps[g.appNamed(b.App)]; g.selectsCluster(app, b.Cluster) {
				g.addBundleFinding(app, b)
			}
		}
	}
}

// addBundleFinding adds a bundle that no reference names, unless the app has it already.
func (g *gatherer) addBundleFinding(app *gatheredApp, b *fleet.Bundle) {
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
	g.out.dependencies.addNamed(bundlesOfAllClusters, g.scope.Namespace, name)
	return g.view.Named(g.scope.Namespace, name)
}

// bundlesWith returns the bundles that a selector matches.
func (g *gatherer) bundlesWith(selector labels.Selector) []*fleet.Bundle {
	g.out.dependencies.addSelected(bundlesOfAllClusters, g.scope.Namespace, selector)
	return g.view.Select(g.scope.Namespace, selector)
}
