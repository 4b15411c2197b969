package fleet

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/healthscope/healthscope/healthscope"
)

// Reachability is whether a hub sees a cluster as it is now, in one word.
type Reachability string

// The values of Reachability.
const (
	// Connected means that what is known of the cluster is current.
	Connected Reachability = "Connected"
	// Connecting means that the cluster has not been read yet since the hub started, or since its Secret came.
	Connecting Reachability = "Connecting"
	// Unreachable means that its API server does not answer, or cannot be understood. The hub's own cluster is never in this state, which could not be written; see View.Outage.
	Unreachable Reachability = "Unreachable"
	// Forbidden means that its API server refuses the hub: a right is missing, or the credentials are not accepted.
	Forbidden Reachability = "Forbidden"
	// MonitorMissing means that the API server answers, and the monitor that has filled bundles there has no Lease any more; or that bundles are not served at all.
	MonitorMissing Reachability = "MonitorMissing"
	// MonitorStale means that the API server answers, and that monitor does not renew its Lease.
	MonitorStale Reachability = "MonitorStale"
	// OverBudget means that the hub holds more of the cluster than it may, or is sent more or more often than it can read, so that it has cut the cluster off for a while.
	OverBudget Reachability = "OverBudget"
	// Refused means that the kubeconfig is refused, so that nothing was tried.
	Refused Reachability = "Refused"
)

// Reachabilities returns all values of Reachability, best first.
func Reachabilities() []Reachability {
	return []Reachability{Connected, Connecting, MonitorStale, MonitorMissing, Forbidden, Unreachable, OverBudget, Refused}
}

// Reason returns why an object cannot be seen in a cluster of that reachability; empty for Connected.
func (r Reachability) Reason() healthscope.Reason {
	switch r {
	case Connecting:
		return healthscope.ReasonClusterConnecting
	case Unreachable:
		return healthscope.ReasonClusterUnreachable
	case Forbidden:
		return healthscope.ReasonClusterForbidden
	case MonitorMissing:
		return healthscope.ReasonMonitorMissing
	case MonitorStale:
		return healthscope.ReasonMonitorStale
	case OverBudget:
		return healthscope.ReasonClusterOverBudget
	case Refused:
		return healthscope.ReasonClusterRefused
	case Connected:
	}
	return ""
}

// ClusterState is what a hub knows of a cluster itself.
type ClusterState struct {
	// Name is the cluster's name.
	Name string
	// Local is true for the hub's own cluster.
	Local bool
	// SecretUID is the uid of the cluster's Secret. The hub's own cluster has none.
	SecretUID types.UID
	// Reachability is whether the cluster is seen as it is now, and if not, why.
	Reachability Reachability
	// Since is since when it is seen, or since when it is not: it stays when only the reason changes why it is not.
	Since time.Time
	// LastSeen is when the cluster was known last to be as it was shown. While it is not Reachable it stands still. Zero means never.
	LastSeen time.Time
	// Arrival counts the clusters that had been read for the first time when this one was, itself among them; it is zero before that.
	Arrival uint64
	// Message describes the problem; empty when there is none.
	Message string
	// Maintenance is why alerts leave out the cluster for now; empty when they do not.
	Maintenance string
	// Labels are the labels of the cluster's Secret, in the form of labels.Set.String, so that states can be compared. The hub's own cluster has none.
	Labels string
	// Unwatched is true when bundles there are another monitor's than ours, and none of ours is there to see whether that one
	// lives: LastSeen is then when it wrote last.
	Unwatched bool
	// synced is true once the cluster's bundles have been read since the hub started.
	synced bool
	// unreadable is true when bundles cannot be read there, though the API server answers.
	unreadable bool
	// namespaces are those from which bundles are read, with a comma before and after each; empty means all.
	namespaces string
}

// Problem describes why the cluster is not seen as it is, with its name.
func (s ClusterState) Problem() string {
	return fmt.Sprintf("cluster %q: %s", s.Name, cmp.Or(s.Message, string(s.Reachability)))
}

// LabelSet returns the labels of the cluster's Secret.
func (s ClusterState) LabelSet() labels.Set {
	set, err := labels.ConvertSelectorToLabelsMap(s.Labels)
	if err != nil { // The API server has accepted them as labels.
		return nil
	}
	return set
}

// Reachable reports whether all that is known of the cluster is current.
func (s ClusterState) Reachable() bool { return s.Reachability == Connected }

// Answers reports whether the cluster's API server can be read, so that objects
// that are read from it directly are current even if bundles are not.
func (s ClusterState) Answers() bool {
	switch s.Reachability {
	case Connected, MonitorMissing, MonitorStale:
		return true
	case Connecting, Unreachable, Forbidden, OverBudget, Refused:
	}
	return false
}

// reads reports whether bundles are read from a namespace.
func (s ClusterState) reads(namespace string) bool {
	return s.namespaces == "" || strings.Contains(s.namespaces, ","+namespace+",")
}

// isStale reports whether a bundle is not current in a cluster of that state. One that another monitor than HealthScope's
// has filled does not depend on HealthScope's.
func (s ClusterState) isStale(own bool) bool {
	return !s.Answers() || s.unreadable || own && s.Reachability != Connected
}

// sameAs reports whether two states are the same to subscribers.
func (s ClusterState) sameAs(o ClusterState) bool {
	if !s.Since.Equal(o.Since) {
		return false
	}
	s.Since, o.Since, s.LastSeen, o.LastSeen = time.Time{}, time.Time{}, time.Time{}, time.Time{}
	return s == o
}

// outage is since when the hub's own API server does not answer, and why; zero while it does.
type outage struct {
	since time.Time
	cause string
}
