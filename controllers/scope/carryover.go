package scope

import (
	"fmt"
	"slices"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

// carriedOver is the number of resources that the scope's status counts for an app in a cluster that has not been read since
// the hub started, or since the cluster's Secret was created. For other clusters, the view has the last known state.
type carriedOver struct {
	appCluster

	total int
}

// carryOver adds the resources that the scope's status reports in clusters that have not been read, for apps that may still have resources there.
func (g *gatherer) carryOver() {
	changed := g.scope.Status.ObservedGeneration != g.scope.Generation
	for _, a := range g.scope.Status.Apps {
		for _, c := range a.Clusters {
			g.waitForCluster(c.Name)
			state, unreadable := g.unreadable(c.Name)
			at := slices.IndexFunc(g.apps, func(x gatheredApp) bool { return x.Name == a.Name })
			switch {
			case !unreadable || state.FirstSync > 0 || c.Total <= 0:
				continue
			case changed && (at < 0 || !g.leadsTo(&g.apps[at], c.Name)):
				continue // With an unchanged spec, such an app had bundles with a label of the scope there.
			}
			if app := &g.apps[g.appNamed(a.Name)]; g.selectsCluster(app, c.Name) {
				g.carryOverIn(app, c, state)
			}
		}
	}
}

// carryOverIn adds the resources that the status reports for an app in a cluster: the culprits by name, or a placeholder bundle if
// the status names none. The status does not say which bundle named them, so they are added to every reference that may lead to
// that bundle; each still counts once. addCarriedOver counts the resources without a name, after all findings have been judged.
func (g *gatherer) carryOverIn(app *gatheredApp, c corev1alpha2.ClusterStatus, state fleet.ClusterState) {
	into, has := g.findingsInto(app, c.Name), g.resourcesOf(app)
	unreadable, total := g.unreadableCulprits(app, c, state, has)
	for key := range has {
		if key.Cluster != c.Name || ignored(g.scope.Spec.Rollup, key, app.Name) {
			delete(has, key)
		}
	}
	if len(unreadable) == 0 && len(has) < total {
		unreadable = append(unreadable, g.placeholder(app, into, c, state))
	}
	if len(unreadable) > 0 && len(into) == 0 {
		into = append(into, len(g.out.findings))
		g.out.findings = append(g.out.findings, app.finding(bundleReference(app.Name, c.Name)))
	}
	for _, i := range into {
		f := &g.out.findings[i]
		f.results, f.partial = append(f.results, unreadable...), append(f.partial, c.Name)
	}
	g.out.carriedOver = append(g.out.carriedOver, carriedOver{appCluster{app.Name, c.Name}, total})
}

// unreadableCulprits returns the culprits of an app in a cluster that the status names and that no reference has led to. total is
// the number of resources that the status counts there, without culprits that the roll-up ignores now.
func (g *gatherer) unreadableCulprits(app *gatheredApp, c corev1alpha2.ClusterStatus, state fleet.ClusterState, has map[healthscope.Key]bool) (unreadable []healthscope.Result, total int) {
	total = int(c.Total)
	for _, culprit := range g.scope.Status.Culprits {
		key := keyOf(culprit)
		switch {
		case culprit.App != app.Name || culprit.Cluster != c.Name || isCluster(culprit):
		case ignored(g.scope.Spec.Rollup, key, app.Name):
			total--
		case !has[key]:
			unreadable = append(unreadable, unreadableResult(healthscope.Result{Key: key}, state, lastState(culprit)))
		}
	}
	return unreadable, total
}

// placeholder returns the result of a bundle that stands for resources that the status counts without naming any.
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

// findingsInto returns the indexes of the findings of an app's references to bundles that may lead into a cluster. References
// to bundles that did not exist in any cluster are left out.
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

// addCarriedOver adds the resources that the previous status counts without naming them, so that the total of an app in a cluster
// stays the same in this status and in those that are computed from it.
func (v *judgement) addCarriedOver(all []carriedOver) {
	counts := v.counts()
	for _, c := range all {
		if rest := c.total - counts[c.appCluster].Total; rest > 0 {
			v.carriedOver = append(v.carriedOver, Unlisted{App: c.app, Cluster: c.cluster, Summary: healthscope.Summary{Total: rest, Unknown: rest}})
		}
	}
	v.unlisted = append(v.unlisted, v.carriedOver...)
}
