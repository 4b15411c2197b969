package scope

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
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
	// app is the app that the members belong to, and links are its links into the inventory.
	app   string
	links *corev1alpha2.InventoryLinks
	// ref is the reference, filled in with what was found.
	ref corev1alpha2.WorkloadReference
	// origin is the place in KubeVela's Applications that the reference leads to; nil when it leads to none.
	origin *origin
	// bundles are the bundles that it leads to. missing is the result of a reference to a bundle if it leads nowhere.
	bundles []*fleet.Bundle
	missing healthscope.Result
	// results have not been judged yet: references that lead nowhere, and objects that are referred to directly.
	results []healthscope.Result
	// component is the component of OAM that an object belongs to, and workloadStatus the status of an object that no rule can judge, as JSON.
	component, workloadStatus string
	// partial are clusters in which there may be more resources than the named ones.
	partial []string
	// duplicate is true for a second result on an object that another finding has; it is not a reference of the scope.
	duplicate bool
}

// gathered is the input of decide.
type gathered struct {
	findings []*finding
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
	probesCondition conditionState
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
	apps   []*gatheredApp
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
	corev1alpha2.ScopeApp

	// origins are where in KubeVela's Applications the references lead, in their order; nil for an app that is not one of `appReferences`.
	origins []origin
	// byLabel is true for an app that is not in the spec, but in labels of bundles.
	byLabel bool
	// bundles are the bundles that have been found for the app.
	bundles map[fleet.BundleKey]*fleet.Bundle
	// bundleRefs are the findings of the app's references to bundles.
	bundleRefs []*finding
}

// add adds what a reference of an app leads to, with results that are still to be judged.
func (g *gatherer) add(app *gatheredApp, ref corev1alpha2.WorkloadReference, results ...healthscope.Result) *finding {
	for i := range results {
		results[i].Cluster = cmp.Or(results[i].Cluster, g.view.Cluster())
	}
	f := &finding{app: app.Name, links: app.Inventory, ref: ref, results: results}
	g.out.findings = append(g.out.findings, f)
	return f
}

// from sets the place in KubeVela's Applications that the finding comes from; nil means none.
func (f *finding) from(o *origin) *finding {
	if f.origin = o; o != nil {
		f.component = o.component
	}
	return f
}

func newApp(a corev1alpha2.ScopeApp) *gatheredApp {
	return &gatheredApp{ScopeApp: a, bundles: map[fleet.BundleKey]*fleet.Bundle{}}
}

func (g *gatherer) appNamed(name string) *gatheredApp {
	if at := slices.IndexFunc(g.apps, func(a *gatheredApp) bool { return a.Name == name }); at >= 0 {
		return g.apps[at]
	}
	return nil
}

// appByLabel returns the app with a name. If the scope has none, it is added.
func (g *gatherer) appByLabel(name string) *gatheredApp {
	app := g.appNamed(name)
	if app == nil {
		app = newApp(corev1alpha2.ScopeApp{Name: name})
		app.byLabel = true
		g.apps = append(g.apps, app)
	}
	return app
}

func (g *gatherer) findingsOf(app *gatheredApp) iter.Seq[*finding] {
	return func(yield func(*finding) bool) {
		for _, f := range g.out.findings {
			if f.app == app.Name && !yield(f) {
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
	g.apps = appsOf(&g.scope.Spec)
	g.checkSelection(g.apps[0], "spec.clusters", g.scope.Spec.Clusters)
	for _, app := range g.apps {
		g.checkSelection(app, fmt.Sprintf("clusters of app %q", app.Name), app.Clusters)
		for i, ref := range app.WorkloadReferences {
			var from *origin
			if app.origins != nil {
				from = &app.origins[i]
			}
			g.followRef(app, ref, from)
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
	for _, app := range g.apps {
		g.addMissingBundles(app)
	}
	for _, app := range g.apps {
		g.addMissingResources(app)
	}
	for _, f := range g.out.findings {
		if f.missing.Name != "" && f.empty() {
			f.results = append(f.results, g.missingResult(f.missing))
		}
	}
	g.out.stale = g.staleClusters()
	return g.out
}

func (g *gatherer) followRef(app *gatheredApp, ref corev1alpha2.WorkloadReference, from *origin) {
	gvk, problem := parseRef(g.scope.Namespace, ref)
	at := objectKey{fleet.Kind{Cluster: cmp.Or(ref.Cluster, g.view.Cluster()), GroupVersionKind: gvk}, types.NamespacedName{Namespace: g.scope.Namespace, Name: ref.Name}}
	switch {
	case problem != nil:
		g.add(app, ref, *problem).from(from)
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
	found := g.add(app, ref)
	g.dependOnBundle(ref.Name)
	for _, b := range g.view.Named(g.scope.Namespace, ref.Name) {
		if ref.Cluster != "" && b.Cluster != ref.Cluster {
			continue
		}
		if problem := g.mismatch(app, ref, b); problem != "" {
			missing.Message = problem
			continue
		}
		found.addBundle(app, b)
	}
	if len(found.bundles) == 1 {
		found.ref.UID = found.bundles[0].UID
	}
	if len(found.bundles) == 0 && (ref.Cluster != "" || len(g.scope.Spec.ExpectedClusters) == 0) {
		found.missing = missing
	}
	app.bundleRefs = append(app.bundleRefs, found)
}

// mismatch returns why a bundle with the name in a reference does not match the reference; empty when it does.
func (g *gatherer) mismatch(app *gatheredApp, ref corev1alpha2.WorkloadReference, b *fleet.Bundle) string {
	switch {
	case !g.selectsCluster(app, b.Cluster):
		return fmt.Sprintf("ResourceBundleState %q is in cluster %q, which bundles are not taken from", ref.Name, b.Cluster)
	case ref.UID != "" && b.UID != ref.UID:
		return uidMismatchResult(resultOfBundle(b)).Message
	}
	return ""
}

// addBundle adds a bundle, also as a result where it cannot be read, is not filled, or is empty.
func (f *finding) addBundle(app *gatheredApp, b *fleet.Bundle) {
	app.bundles[b.BundleKey] = b
	f.bundles = append(f.bundles, b)
	self := resultOfBundle(b)
	switch {
	case len(b.Malformed) > 0:
		f.results = append(f.results, unknownFor(self, healthscope.ReasonMalformedBundle, "cannot read %s of the bundle", shorten(strings.Join(b.Malformed, ", "))))
	case !b.Observed:
		f.results = append(f.results, unknownFor(self, healthscope.ReasonNotObserved, "no monitor has filled the bundle yet"))
	case len(b.Members) == 0 && !b.Truncated:
		self.State, self.Reason, self.Message = healthscope.NotPresent, healthscope.ReasonNoResources, "no resource carries the bundle's label"
		f.results = append(f.results, self)
	}
	if b.Truncated {
		f.partial = append(f.partial, b.Cluster)
	}
}

// empty reports whether nothing has been found, and nothing is carried over.
func (f *finding) empty() bool { return len(f.bundles)+len(f.results) == 0 }

// byComponent reports whether a bundle is that of an Application of KubeVela: its members are in the apps of their components,
// unless the scope says which app they are in.
func (f *finding) byComponent() bool {
	return f.app == "" && slices.ContainsFunc(f.bundles, func(b *fleet.Bundle) bool { return b.Labels[corev1alpha2.LabelApplication] != "" })
}

// followObjectRef follows a reference to any other object.
func (g *gatherer) followObjectRef(app *gatheredApp, ref corev1alpha2.WorkloadReference, from *origin, at objectKey) {
	found := g.object(at)
	of := found.Result
	switch chain := g.cycle(at); {
	case ref.UID != "" && of.UID != "" && string(ref.UID) != of.UID:
		found = fleet.Lookup{Result: uidMismatchResult(of)}
	case chain != nil:
		found = fleet.Lookup{Result: unknownFor(healthscope.Result{Key: of.Key, Version: of.Version, UID: of.UID}, healthscope.ReasonReferenceCycle,
			"%s", shorten("the references of scopes form a cycle: "+strings.Join(chain, " → ")))}
	}
	ref.UID = cmp.Or(ref.UID, types.UID(found.Result.UID))
	added := g.add(app, ref, g.relatedResults(at.Kind, found)...).from(from)
	added.component, added.workloadStatus = cmp.Or(found.Labels.Get(corev1alpha2.LabelComponent), added.component), found.Status
}

// addSelectedBundles adds the bundles that an app's selector matches, unless one of the app's references has led to them already.
func (g *gatherer) addSelectedBundles(app *gatheredApp) {
	selector, err := metav1.LabelSelectorAsSelector(app.Selector)
	if err != nil {
		g.addBadSelectorf(app, app.Name, "the app's selector cannot be read: %v", err)
		return
	}
	for _, b := range g.bundlesWith(selector) {
		if g.selectsCluster(app, b.Cluster) && app.bundles[b.BundleKey] == nil {
			g.addBundle(app, b)
		}
	}
	if len(app.bundles) == 0 {
		g.addHint(app, selector)
	}
}

// addLabelledBundles adds the bundles that have a label of the scope, unless an app has them already.
// They join the app of their name, if the scope has one.
func (g *gatherer) addLabelledBundles() {
	for _, set := range []labels.Set{{corev1alpha2.LabelScopeName: g.scope.Name}, {corev1alpha2.LabelScopePrefix + g.scope.Name: "true"}} {
		for _, b := range g.bundlesWith(labels.SelectorFromSet(set)) {
			if slices.ContainsFunc(g.apps, func(a *gatheredApp) bool { return a.bundles[b.BundleKey] != nil }) {
				continue
			}
			if app := g.appByLabel(b.App); g.selectsCluster(app, b.Cluster) {
				g.addBundle(app, b)
			}
		}
	}
}

// addBundle adds a bundle that no reference names.
func (g *gatherer) addBundle(app *gatheredApp, b *fleet.Bundle) {
	found := g.add(app, bundleReference(b.Name, b.Cluster))
	found.ref.UID = b.UID
	found.addBundle(app, b)
}

func (g *gatherer) dependOnBundle(name string) {
	g.out.dependencies.addNamed(bundlesOfAllClusters, g.scope.Namespace, name)
}

func (g *gatherer) bundlesWith(selector labels.Selector) []*fleet.Bundle {
	g.out.dependencies.addSelected(bundlesOfAllClusters, g.scope.Namespace, selector)
	return g.view.Select(g.scope.Namespace, selector)
}
