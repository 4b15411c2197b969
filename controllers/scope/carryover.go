package scope

import (
	"fmt"
	"slices"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

// carriedOver is how many resources the scope's status counts of an app in a cluster that has not been read since the hub
// started, or since the cluster's Secret came. Of other clusters, the view has what was known last.
type carriedOver struct {
	appCluster

	total int
}

// carryOver adds what the scope's status says of clusters that have not been read, for apps that may still have resources there.
func (g *gatherer) carryOver() {
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
			if app := &g.apps[g.appNamed(a.Name)]; g.takesFrom(app, c.Name) {
				g.carryOverIn(app, c, state)
			}
		}
	}
}

// carryOverIn adds what the status says of an app in a cluster: the culprits by name, or a bundle that stands for what has no name.
// Which bundle they were in is not known: every reference that may have led to it gets them, and each counts once all the
// same. How many others there were is counted when all has been judged: see addCarriedOver.
func (g *gatherer) carryOverIn(app *gatheredApp, c corev1alpha2.ClusterStatus, state fleet.ClusterState) {
	into, has := g.findingsInto(app, c.Name), g.resourcesOf(app)
	unread, total := g.unreadCulprits(app, c, state, has)
	for key := range has {
		if key.Cluster != c.Name || ignored(g.scope.Spec.Rollup, key, app.Name) {
			delete(has, key)
		}
	}
	if len(unread) == 0 && len(has) < total {
		unread = append(unread, g.placeholder(app, into, c, state))
	}
	if len(unread) > 0 && len(into) == 0 {
		into = append(into, len(g.out.findings))
		g.out.findings = append(g.out.findings, app.finding(bundleReference(app.Name, c.Name)))
	}
	for _, i := range into {
		f := &g.out.findings[i]
		f.results, f.partial = append(f.results, unread...), append(f.partial, c.Name)
	}
	g.out.carriedOver = append(g.out.carriedOver, carriedOver{appCluster{app.Name, c.Name}, total})
}

// unreadCulprits returns those culprits of an app in a cluster that the status names and no reference has led to. total is how
// many resources the status counts there, without those that the roll-up ignores by now.
func (g *gatherer) unreadCulprits(app *gatheredApp, c corev1alpha2.ClusterStatus, state fleet.ClusterState, has map[healthscope.Key]bool) (unread []healthscope.Result, total int) {
	total = int(c.Total)
	for _, culprit := range g.scope.Status.Culprits {
		key := keyOf(culprit)
		switch {
		case culprit.App != app.Name || culprit.Cluster != c.Name || isCluster(culprit):
		case ignored(g.scope.Spec.Rollup, key, app.Name):
			total--
		case !has[key]:
			unread = append(unread, unreadableResult(healthscope.Result{Key: key}, state, lastState(culprit)))
		}
	}
	return unread, total
}

// placeholder returns a bundle that stands for resources of which the status does not name any.
func (g *gatherer) placeholder(app *gatheredApp, into []int, c corev1alpha2.ClusterStatus, state fleet.ClusterState) healthscope.Result {
	name, last := app.Name, ""
	if len(into) > 0 {
		name = g.out.findings[into[0]].ref.Name
	}
	if c.State != string(healthscope.Unknown) {
		last = fmt.Sprintf("%s, %d/%d ready", c.State, c.Ready, c.Total)
	}
	return unreadableResult(bundleResult(c.Name, g.scope.Namespace, name), state, last)
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

// addCarriedOver adds the resources that the status counts and nothing names, so that an app comes to as many in a cluster as
// before, and the next status, which is made from this one, to the same again.
func (v *judgement) addCarriedOver(all []carriedOver) {
	counts := v.counts()
	for _, c := range all {
		if rest := c.total - counts[c.appCluster].Total; rest > 0 {
			v.carriedOver = append(v.carriedOver, Unlisted{App: c.app, Cluster: c.cluster, Summary: healthscope.Summary{Total: rest, Unknown: rest}})
		}
	}
	v.unlisted = append(v.unlisted, v.carriedOver...)
}
