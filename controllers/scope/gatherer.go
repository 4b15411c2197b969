package scope

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

// gathered is the input of decide.
type gathered struct {
	findings []*finding
	// carriedOver holds what the scope's status counts for apps in clusters that have not been read since the hub started, or since
	// the cluster's Secret was created. For other clusters, the view has the last known state.
	carriedOver []Unlisted
	// firstSyncs is the number of clusters that had been read for the first time when gathering began.
	firstSyncs uint64
	// dependencies are the objects, kinds and clusters that the judgement depends on.
	dependencies dependencies
	// pods holds the diagnoses from the pods of workloads that are referred to directly. nextPods is when to make them again; zero means never.
	pods     map[healthscope.Key]fleet.PodDiagnosis
	nextPods time.Time
	// stale are the states of clusters that are not Connected.
	stale map[string]fleet.ClusterState
	// probesCondition is the condition on the probes that the scope requests.
	probesCondition conditionState
	// syncWait is the longest time that the scope waits for what is being read for the first time; zero means that it does not wait.
	syncWait time.Duration
}

// finding holds what one reference of a scope leads to, or one bundle that a selector or a label of the scope matches.
type finding struct {
	// app is the app that the members belong to, and links are its links into the inventory.
	app   string
	links *corev1alpha2.InventoryLinks
	// ref is the reference, filled in with what was found.
	ref reference
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

// keys returns the keys of all that the finding leads to.
func (f *finding) keys() iter.Seq[healthscope.Key] {
	return func(yield func(healthscope.Key) bool) {
		for _, b := range f.bundles {
			for i := range b.Members {
				if !yield(b.Members[i].Key) {
					return
				}
			}
		}
		for i := range f.results {
			if !yield(f.results[i].Key) {
				return
			}
		}
	}
}

// clusters returns the clusters that the finding leads into; one may be in the list more than once.
func (f *finding) clusters() []string {
	var all []string
	for _, b := range f.bundles {
		all = append(all, b.Cluster)
	}
	for i := range f.results {
		all = append(all, f.results[i].Cluster)
	}
	return all
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

// gatherer collects the resources that belong to one scope.
type gatherer struct {
	gathered

	scope *corev1alpha2.HealthScope
	view  view
	// lookup and selectObjects are Get and Select of fleet.Objects.
	lookup        func(cluster string, gvk schema.GroupVersionKind, name types.NamespacedName) fleet.Lookup
	selectObjects func(cluster string, gvk schema.GroupVersionKind, namespace string, selector labels.Selector) fleet.Selection
	// trusted are the namespaces whose Applications may lead to other namespaces.
	trusted []string
	// contexts returns what AppContexts require; nil when there are none.
	contexts Contexts
	// probes are the HTTP probes of Services; nil when there are none.
	probes Probes
	now    time.Time
	apps   []*app
	// unreadableAtStart are the clusters that could not be read when gathering began. A cluster may become readable after its bundles have been looked up.
	unreadableAtStart map[string]fleet.ClusterState
	// followedKinds are the kinds of objects that the scope follows.
	followedKinds sets.Set[schema.GroupVersionKind]
	// versions holds the workloads of components, by kind, once they have been selected.
	versions map[fleet.Kind]map[component][]fleet.Lookup
	// referrers are the scopes of the namespace whose references lead to this one.
	referrers sets.Set[string]
}

// app is one app of a scope while it is being gathered.
type app struct {
	corev1alpha2.ScopeApp

	// references are those of the app that are followed.
	references []reference
	// byLabel is true for an app that is not in the spec, but in labels of bundles.
	byLabel bool
	// bundles are the bundles that have been found for the app.
	bundles map[fleet.BundleKey]*fleet.Bundle
	// bundleRefs are the findings of the app's references to bundles.
	bundleRefs []*finding
}

// component identifies the component that workloads are versions of.
type component struct{ application, name string }

func componentOf(set labels.Labels) component {
	return component{set.Get(corev1alpha2.LabelApplication), set.Get(corev1alpha2.LabelComponent)}
}

// add adds what a reference of an app leads to, with results that are still to be judged.
func (g *gatherer) add(a *app, ref reference, results ...healthscope.Result) *finding {
	for i := range results {
		results[i].Cluster = cmp.Or(results[i].Cluster, g.view.Cluster())
	}
	f := &finding{app: a.Name, links: a.Inventory, ref: ref, results: results}
	if ref.origin != nil {
		f.component = ref.origin.component
	}
	g.findings = append(g.findings, f)
	return f
}

func (g *gatherer) appNamed(name string) *app {
	if at := slices.IndexFunc(g.apps, func(a *app) bool { return a.Name == name }); at >= 0 {
		return g.apps[at]
	}
	return nil
}

// appByLabel returns the app with a name. If the scope has none, it is added.
func (g *gatherer) appByLabel(name string) *app {
	a := g.appNamed(name)
	if a == nil {
		a = newApp(corev1alpha2.ScopeApp{Name: name})
		a.byLabel = true
		g.apps = append(g.apps, a)
	}
	return a
}

func (g *gatherer) findingsOf(a *app) iter.Seq[*finding] {
	return func(yield func(*finding) bool) {
		for _, f := range g.findings {
			if f.app == a.Name && !yield(f) {
				return
			}
		}
	}
}

// resourcesOf returns the keys of all resources that have been found for an app, in any state.
func (g *gatherer) resourcesOf(a *app) sets.Set[healthscope.Key] {
	has := sets.New[healthscope.Key]()
	for f := range g.findingsOf(a) {
		for key := range f.keys() {
			has.Insert(key)
		}
	}
	return has
}

// clustersOfApp returns the clusters in which an app has bundles, or had bundles according to the scope's status, sorted.
func (g *gatherer) clustersOfApp(a *app) []string {
	clusters := sets.New[string]()
	for f := range g.findingsOf(a) {
		clusters.Insert(f.partial...)
		for _, b := range f.bundles {
			clusters.Insert(b.Cluster)
		}
	}
	return slices.Sorted(maps.Keys(clusters))
}

func (g *gatherer) addBadSelectorf(a *app, name, format string, args ...any) {
	selector := healthscope.Result{Key: healthscope.Key{Kind: "Selector", Namespace: g.scope.Namespace, Name: name}}
	g.add(a, reference{}, unknownFor(selector, healthscope.ReasonInvalidReference, format, args...))
}

// wasMissing reports whether, by the status, a bundle of an app did not exist.
func (g *gatherer) wasMissing(app string, bundle healthscope.Key) bool {
	c, _ := g.culprit(bundle)
	return c.Reason == string(healthscope.ReasonNotFound) && c.App == app
}

// culprit returns the culprit of the scope's status that is an object.
func (g *gatherer) culprit(key healthscope.Key) (c corev1alpha2.Culprit, found bool) {
	at := slices.IndexFunc(g.scope.Status.Culprits, func(c corev1alpha2.Culprit) bool { return keyOf(c) == key })
	if at < 0 {
		return c, false
	}
	return g.scope.Status.Culprits[at], true
}
