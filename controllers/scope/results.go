package scope

import (
	"fmt"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

// This file has the results of what a scope names and cannot be found or judged.

// lastSeen separates the message on a resource whose cluster cannot be read from its last known state, as in healthscope.MarkUnreachable.
const lastSeen = "; last seen "

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

// unknownFor returns the result of an object that cannot be judged, for a reason.
func unknownFor(r healthscope.Result, reason healthscope.Reason, format string, args ...any) healthscope.Result {
	r.State, r.Reason, r.Message = healthscope.Unknown, reason, fmt.Sprintf(format, args...)
	return r
}

func unknownClusterResult(r healthscope.Result) healthscope.Result {
	return unknownFor(r, healthscope.ReasonUnknownCluster, "no cluster %q is known", r.Cluster)
}

// tooManyKindsResult returns the result of a reference to a kind that the scope does not follow.
func tooManyKindsResult(r healthscope.Result) healthscope.Result {
	return unknownFor(r, healthscope.ReasonTooManyKinds, "the scope refers to more than %d kinds, and only the first %d are followed", maxKinds, maxKinds)
}

// unreadableResult returns the result of an object whose cluster cannot be read, with its last known state if there is one.
func unreadableResult(r healthscope.Result, s fleet.ClusterState, last string) healthscope.Result {
	message := s.Problem()
	if last != "" {
		message += lastSeen + last
	}
	return unknownFor(r, s.Reachability.Reason(), "%s", message)
}

// uidMismatchMessage is the message on an object that has another uid than a reference.
func uidMismatchMessage(kind, name, uid string) string {
	return fmt.Sprintf("%s %q is another one than the reference means: its uid is %s", kind, name, uid)
}

// absent returns the result of an object that does not exist, or whose cluster cannot be read.
func (g *gatherer) absent(r healthscope.Result) healthscope.Result {
	if state, unreadable := g.unreadable(r.Cluster); unreadable {
		return unreadableResult(r, state, "")
	}
	r.State, r.Reason = healthscope.NotPresent, healthscope.ReasonNotFound
	return r
}

// absentIn is the same for an object of an app in a cluster that the app names, which may not be known or not be selected.
func (g *gatherer) absentIn(a *app, r healthscope.Result) healthscope.Result {
	if _, known := g.clusterState(r.Cluster); !known {
		return unknownClusterResult(r)
	}
	if !g.selectsCluster(a, r.Cluster) {
		return unknownFor(r, healthscope.ReasonClusterExcluded, "bundles are not taken from cluster %q: clusters of the scope or of the app does not select it", r.Cluster)
	}
	return g.absent(r)
}

// kindCluster is the kind of a culprit that is a cluster.
const kindCluster = "Cluster"

// isCluster reports whether a culprit is a cluster and not an object in one.
func isCluster(c corev1alpha2.Culprit) bool {
	return c.Kind == kindCluster && c.Group == "" && c.Namespace == "" && c.Name == c.Cluster
}

func keyOf(c corev1alpha2.Culprit) healthscope.Key {
	return healthscope.Key{Cluster: c.Cluster, Group: c.Group, Kind: c.Kind, Namespace: c.Namespace, Name: c.Name}
}

// maxLine bounds a line of a list, in bytes.
const maxLine = 256

func shorten(text string) string { return healthscope.Shorten(text, maxLine) }
