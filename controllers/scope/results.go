package scope

import (
	"fmt"

	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

// This file has the results of what a scope names and cannot be found or judged.

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

func resultOfBundle(b *fleet.Bundle) healthscope.Result {
	r := bundleResult(b.Cluster, b.Namespace, b.Name)
	r.UID = string(b.UID)
	return r
}

// unknownFor returns the result of an object that cannot be judged, for a reason.
func unknownFor(r healthscope.Result, reason healthscope.Reason, format string, args ...any) healthscope.Result {
	r.State, r.Reason, r.Message = healthscope.Unknown, reason, fmt.Sprintf(format, args...)
	return r
}

func unknownClusterResult(r healthscope.Result) healthscope.Result {
	return unknownFor(r, healthscope.ReasonUnknownCluster, "no cluster %q is known", r.Cluster)
}

// unreadableResult returns the result of an object whose cluster cannot be read, with its last known state if there is one.
func unreadableResult(r healthscope.Result, s fleet.ClusterState, last string) healthscope.Result {
	message := s.Problem()
	if last != "" {
		message += lastSeen + last
	}
	return unknownFor(r, s.Reachability.Reason(), "%s", message)
}

// uidMismatchResult returns the result of an object that has another uid than the reference.
func uidMismatchResult(r healthscope.Result) healthscope.Result {
	return healthscope.Result{
		Key: r.Key, Version: r.Version, State: healthscope.NotPresent, Reason: healthscope.ReasonNotFound,
		Message: fmt.Sprintf("%s %q is another one than the reference means: its uid is %s", r.Kind, r.Name, r.UID),
	}
}

// excludedResult returns the result of an object of an app whose cluster is not known or not selected, and whether it is such an object.
func (g *gatherer) excludedResult(app *gatheredApp, r healthscope.Result) (healthscope.Result, bool) {
	if _, known := g.clusterState(r.Cluster); !known {
		return unknownClusterResult(r), true
	}
	if g.selectsCluster(app, r.Cluster) {
		return r, false
	}
	return unknownFor(r, healthscope.ReasonClusterExcluded, "bundles are not taken from cluster %q: clusters of the scope or of the app does not select it", r.Cluster), true
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
