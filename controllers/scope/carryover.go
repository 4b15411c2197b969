package scope

import (
	"fmt"
	"slices"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

// carriedOver is what the scope's status says of an app in a cluster that has not been read since the hub started, or since
// the cluster's Secret came. Of other clusters, the view has what was known last.
type carriedOver struct {
	corev1alpha2.ClusterStatus

	// app is the app's index.
	app   int
	state fleet.ClusterState
	// findings are those of the app's references to bundles, by index, that may lead into the cluster.
	findings []int
	// named is true when the status names a resource that the references have not led to, and ignored counts those that the
	// roll-up ignores by now: the next status does not count them.
	named   bool
	ignored int
}

// carryOver adds what the scope's status says of clusters that have not been read: the culprits by name, and the number of
// all other resources. Which bundle they were in is not known. Every reference that may have led to it gets them, and each
// resource counts once all the same.
//
// The next status is made from what is added here, and this from the status. So an app must come to as many resources in a
// cluster as before, or they would become more, or fewer, with each write.
func (g *gatherer) carryOver() {
	all := g.carriedOver()
	if len(all) == 0 {
		return
	}
	unread := map[healthscope.Key]healthscope.Result{}
	for i := range all {
		g.addCulprits(&all[i], unread)
	}
	counts := g.count()
	all = slices.DeleteFunc(all, func(c carriedOver) bool { return !c.named && c.ignored == 0 && g.rest(&c, counts) == 0 })
	for i := range all {
		g.addPlaceholder(&all[i], unread, g.rest(&all[i], counts))
	}
	counts = g.count()
	for i := range all {
		g.addRest(&all[i], g.rest(&all[i], counts))
	}
}

// carriedOver returns what the status says of clusters that have not been read, for apps that may still have resources there.
func (g *gatherer) carriedOver() []carriedOver {
	var all []carriedOver
	changed := g.scope.Status.ObservedGeneration != g.scope.Generation
	for _, a := range g.scope.Status.Apps {
		for _, c := range a.Clusters {
			g.await(c.Name)
			state, unseen := g.unreadable(c.Name)
			at := slices.IndexFunc(g.apps, func(x gatheredApp) bool { return x.Name == a.Name })
			switch {
			case !unseen || state.Arrival > 0 || c.Total <= 0:
				continue
			case changed && (at < 0 || !g.leadsTo(&g.apps[at], c.Name)):
				continue // Of the same spec, an app that leads nowhere there had bundles with a label of the scope.
			}
			at = g.appNamed(a.Name)
			if g.takesFrom(&g.apps[at], c.Name) {
				all = append(all, carriedOver{ClusterStatus: c, app: at, state: state, findings: g.findingsInto(&g.apps[at], c.Name)})
			}
		}
	}
	return all
}

// leadsTo reports whether an app may have resources in a cluster.
func (g *gatherer) leadsTo(app *gatheredApp, cluster string) bool {
	return app.byLabel || app.Selector != nil || app.WorkloadSelector != nil || len(g.findingsInto(app, cluster)) > 0 || slices.Contains(g.scope.Spec.ExpectedClusters, cluster) ||
		slices.ContainsFunc(app.WorkloadReferences, func(r corev1alpha2.WorkloadReference) bool { return r.Cluster == cluster }) ||
		slices.ContainsFunc(app.ExpectedResources, func(e corev1alpha2.ExpectedResource) bool { return e.Cluster == cluster })
}

// findingsInto returns the findings of an app's references to bundles, by index, that may lead into a cluster: not those
// to bundles that did not exist in any cluster.
func (g *gatherer) findingsInto(app *gatheredApp, cluster string) []int {
	var into []int
	for _, i := range app.bundleRefs {
		f := &g.out.findings[i]
		if f.ref.Cluster == cluster || f.ref.Cluster == "" && (len(f.clusters) > 0 || !g.wasMissing(app.Name, f.missing.Key)) {
			into = append(into, i)
		}
	}
	return into
}

// wasMissing reports whether the status names a bundle of an app as one that does not exist.
func (g *gatherer) wasMissing(app string, bundle healthscope.Key) bool {
	return slices.ContainsFunc(g.scope.Status.Culprits, func(c corev1alpha2.Culprit) bool {
		return c.App == app && c.Reason == string(healthscope.ReasonNotFound) && keyOf(c) == bundle
	})
}

// addCulprits adds the culprits that the status names and that no reference has led to.
func (g *gatherer) addCulprits(c *carriedOver, unread map[healthscope.Key]healthscope.Result) {
	app := &g.apps[c.app]
	has := g.resourcesOf(app)
	for _, culprit := range g.scope.Status.Culprits {
		key := keyOf(culprit)
		switch {
		case culprit.App != app.Name || culprit.Cluster != c.Name || isCluster(culprit):
		case g.ignores(key, app.Name):
			c.ignored++
		case !has[key]:
			c.named = true
			unread[key] = unreadableResult(healthscope.Result{Key: key}, c.state, lastState(culprit))
			g.addUnread(c, unread[key])
		}
	}
}

// addUnread adds a resource to each reference that may lead to it, and one for the cluster where the app has none.
func (g *gatherer) addUnread(c *carriedOver, r healthscope.Result) {
	if app := &g.apps[c.app]; len(c.findings) == 0 {
		c.findings = []int{len(g.out.findings)}
		g.out.findings = append(g.out.findings, app.finding(bundleReference(app.Name, c.Name)))
	}
	for _, i := range c.findings {
		f := &g.out.findings[i]
		f.results = append(f.results, r)
	}
}

// addPlaceholder adds a bundle that stands for resources of which the status does not name any. It is one of the rest.
func (g *gatherer) addPlaceholder(c *carriedOver, unread map[healthscope.Key]healthscope.Result, rest int) {
	app := &g.apps[c.app]
	empty := slices.ContainsFunc(c.findings, func(i int) bool { return g.out.findings[i].empty() })
	if c.named || rest == 0 && !empty {
		return
	}
	name, last := app.Name, ""
	if len(c.findings) > 0 {
		name = g.out.findings[c.findings[0]].ref.Name
	}
	if c.State != string(healthscope.Unknown) {
		last = fmt.Sprintf("%s, %d/%d ready", c.State, c.Ready, c.Total)
	}
	placeholder := bundleResult(c.Name, g.scope.Namespace, name)
	if _, ok := unread[placeholder.Key]; !ok { // It may stand for resources of another app, too.
		unread[placeholder.Key] = unreadableResult(placeholder, c.state, last)
	}
	g.addUnread(c, unread[placeholder.Key])
}

// addRest adds the number of resources that have no name.
func (g *gatherer) addRest(c *carriedOver, rest int) {
	// No bundle is called so, and that of another app with the same references is another one.
	key := fleet.BundleKey{Cluster: c.Name, Namespace: g.scope.Namespace, Name: "carried-over/" + g.apps[c.app].Name}
	for _, i := range c.findings {
		f := &g.out.findings[i]
		f.partial = append(f.partial, c.Name)
		if rest > 0 {
			f.addUnlisted(key, healthscope.Summary{Total: rest, Unknown: rest})
		}
	}
}

// rest returns how many resources the status counts besides those that are counted here.
func (g *gatherer) rest(c *carriedOver, counts map[appCluster]healthscope.Summary) int {
	return max(int(c.Total)-c.ignored-counts[appCluster{g.apps[c.app].Name, c.Name}].Total, 0)
}

// count counts what has been found, by app and cluster, as decide does.
func (g *gatherer) count() map[appCluster]healthscope.Summary {
	findings := slices.Clone(g.out.findings)
	slices.SortStableFunc(findings, func(a, b finding) int { return compareApps(a.app, b.app) })
	results := map[healthscope.Key]*healthscope.Member{}
	for _, f := range findings {
		for _, r := range f.results {
			results[r.Key] = &healthscope.Member{Result: r}
		}
	}
	v := verdict{unlisted: placeUnlisted(findings)}
	v.place(findings, results)
	for i, p := range v.members {
		v.members[i].Ignored = ignored(g.scope.Spec.Rollup, p)
	}
	return v.counts()
}

// ignores reports whether the roll-up leaves an object of an app out.
func (g *gatherer) ignores(key healthscope.Key, app string) bool {
	return ignored(g.scope.Spec.Rollup, Placed{Member: &healthscope.Member{Result: healthscope.Result{Key: key}}, App: app})
}
