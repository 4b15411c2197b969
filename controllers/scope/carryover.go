package scope

import (
	"fmt"
	"slices"
	"strings"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

// carryOver adds the resources that the scope's status reports in clusters that have not been read, for apps that may still have resources there.
func (g *gatherer) carryOver() {
	changed := g.scope.Status.ObservedGeneration != g.scope.Generation
	for _, status := range g.scope.Status.Apps {
		for _, c := range status.Clusters {
			state, unreadable := g.unreadable(c.Name)
			if !unreadable || state.FirstSync > 0 || c.Total <= 0 {
				continue
			}
			// With an unchanged spec, an app that is not in it had bundles with a label of the scope there.
			if a := g.appNamed(status.Name); changed && (a == nil || !g.leadsTo(a, c.Name)) {
				continue
			}
			if a := g.appByLabel(status.Name); g.selectsCluster(a, c.Name) {
				g.carryOverIn(a, c, state)
			}
		}
	}
}

// carryOverIn adds the resources that the status reports for an app in a cluster: the culprits by name, or a placeholder bundle if
// the status names none. The status does not say which bundle named them, so they are added to every reference that may lead to
// that bundle; each still counts once. decide counts the resources without a name, after all findings have been judged.
func (g *gatherer) carryOverIn(a *app, c corev1alpha2.ClusterStatus, state fleet.ClusterState) {
	into, has, rollup := g.findingsInto(a, c.Name), g.resourcesOf(a), g.scope.Spec.Rollup
	var unreadable []healthscope.Result
	named, total := 0, int(c.Total)
	for key := range has {
		if key.Cluster == c.Name && !ignored(rollup, key, a.Name) {
			named++
		}
	}
	for _, culprit := range g.scope.Status.Culprits {
		key := keyOf(culprit)
		switch {
		case culprit.App != a.Name || culprit.Cluster != c.Name || isCluster(culprit):
		case ignored(rollup, key, a.Name):
			total--
		case !has.Has(key):
			unreadable = append(unreadable, unreadableResult(healthscope.Result{Key: key}, state, lastState(culprit)))
		}
	}
	if len(unreadable) == 0 && named < total {
		unreadable = append(unreadable, g.placeholder(a, into, c, state))
	}
	if len(unreadable) > 0 && len(into) == 0 {
		into = append(into, g.add(a, bundleReference(a.Name, c.Name)))
	}
	for _, f := range into {
		f.results, f.partial = append(f.results, unreadable...), append(f.partial, c.Name)
	}
	g.carriedOver = append(g.carriedOver, Unlisted{App: a.Name, Cluster: c.Name, Summary: healthscope.Summary{Total: total, Unknown: total}})
}

// placeholder returns the result of a bundle that stands for the resources of an app in a cluster.
func (g *gatherer) placeholder(a *app, into []*finding, c corev1alpha2.ClusterStatus, state fleet.ClusterState) healthscope.Result {
	name, last := a.Name, ""
	if len(into) > 0 {
		name = into[0].ref.Name
	}
	if c.State != string(healthscope.Unknown) {
		last = fmt.Sprintf("%s, %d/%d ready", c.State, c.Ready, c.Total)
	}
	return unreadableResult(bundleResult(c.Name, g.scope.Namespace, name), state, last)
}

// leadsTo reports whether an app may have resources in a cluster.
func (g *gatherer) leadsTo(a *app, cluster string) bool {
	return a.byLabel || a.Selector != nil || a.WorkloadSelector != nil || len(g.findingsInto(a, cluster)) > 0 || slices.Contains(g.scope.Spec.ExpectedClusters, cluster) ||
		slices.ContainsFunc(a.references, func(r reference) bool { return r.Cluster == cluster }) ||
		slices.ContainsFunc(a.ExpectedResources, func(e corev1alpha2.ExpectedResource) bool { return e.Cluster == cluster })
}

// findingsInto returns the findings of an app's references to bundles that may lead into a cluster. References to bundles that
// did not exist in any cluster are left out.
func (g *gatherer) findingsInto(a *app, cluster string) (into []*finding) {
	for _, f := range a.bundleRefs {
		if f.ref.Cluster == cluster || f.ref.Cluster == "" && (len(f.bundles) > 0 || !g.wasMissing(a.Name, f.missing.Key)) {
			into = append(into, f)
		}
	}
	return into
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
