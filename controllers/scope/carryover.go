package scope

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

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
			app := g.appNamed(a.Name)
			switch {
			case !unreadable || state.FirstSync > 0 || c.Total <= 0:
				continue
			case changed && (app == nil || !g.leadsTo(app, c.Name)):
				continue // With an unchanged spec, such an app had bundles with a label of the scope there.
			}
			if app = g.appByLabel(a.Name); g.selectsCluster(app, c.Name) {
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
	named := 0
	for key := range has {
		if key.Cluster == c.Name && !ignored(g.scope.Spec.Rollup, key, app.Name) {
			named++
		}
	}
	if len(unreadable) == 0 && named < total {
		unreadable = append(unreadable, g.placeholder(app, into, c, state))
	}
	if len(unreadable) > 0 && len(into) == 0 {
		into = append(into, g.add(app, bundleReference(app.Name, c.Name)))
	}
	for _, f := range into {
		f.results, f.partial = append(f.results, unreadable...), append(f.partial, c.Name)
	}
	g.out.carriedOver = append(g.out.carriedOver, carriedOver{appCluster{app.Name, c.Name}, total})
}

// unreadableCulprits returns the culprits of an app in a cluster that the status names and that no reference has led to. total is
// the number of resources that the status counts there, without culprits that the roll-up ignores now.
func (g *gatherer) unreadableCulprits(app *gatheredApp, c corev1alpha2.ClusterStatus, state fleet.ClusterState, has sets.Set[healthscope.Key]) (unreadable []healthscope.Result, total int) {
	total = int(c.Total)
	for _, culprit := range g.scope.Status.Culprits {
		key := keyOf(culprit)
		switch {
		case culprit.App != app.Name || culprit.Cluster != c.Name || isCluster(culprit):
		case ignored(g.scope.Spec.Rollup, key, app.Name):
			total--
		case !has.Has(key):
			unreadable = append(unreadable, unreadableResult(healthscope.Result{Key: key}, state, lastState(culprit)))
		}
	}
	return unreadable, total
}

func (g *gatherer) placeholder(app *gatheredApp, into []*finding, c corev1alpha2.ClusterStatus, state fleet.ClusterState) healthscope.Result {
	name, last := app.Name, ""
	if len(into) > 0 {
		name = into[0].ref.Name
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

// findingsInto returns the findings of an app's references to bundles that may lead into a cluster. References to bundles that
// did not exist in any cluster are left out.
func (g *gatherer) findingsInto(app *gatheredApp, cluster string) (into []*finding) {
	for _, f := range app.bundleRefs {
		if f.ref.Cluster == cluster || f.ref.Cluster == "" && (len(f.bundles) > 0 || !g.wasMissing(app.Name, f.missing.Key)) {
			into = append(into, f)
		}
	}
	return into
}

func (g *gatherer) wasMissing(app string, bundle healthscope.Key) bool {
	c, found := g.culprit(bundle, healthscope.ReasonNotFound)
	return found && c.App == app
}

// culprit returns the culprit of the scope's status that is an object with a reason.
func (g *gatherer) culprit(key healthscope.Key, reason healthscope.Reason) (c corev1alpha2.Culprit, found bool) {
	at := slices.IndexFunc(g.scope.Status.Culprits, func(c corev1alpha2.Culprit) bool { return c.Reason == string(reason) && keyOf(c) == key })
	if at < 0 {
		return c, false
	}
	return g.scope.Status.Culprits[at], true
}

// lastState returns the last known state of a culprit.
func lastState(c corev1alpha2.Culprit) string {
	switch _, last, found := strings.Cut(c.Cause, lastSeen); {
	case found:
		return last
	case c.State == string(healthscope.Unknown):
		return ""
	case c.Reason != "":
		return fmt.Sprintf("%s (%s)", c.State, c.Reason)
	default:
		return c.State
	}
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
	v.Unlisted = append(v.Unlisted, v.carriedOver...)
}
