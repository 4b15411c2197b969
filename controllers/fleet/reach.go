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

// Reachability is whether what a hub knows of a cluster is current, and if not, why.
type Reachability string

// The values of Reachability.
const (
	// Connected means that what is known of the cluster is current.
	Connected Reachability = "Connected"
	// Connecting means that the cluster has not been read yet since the hub started, or since its Secret was added.
	Connecting Reachability = "Connecting"
	// Unreachable means that its API server does not answer, or sends answers that the hub cannot parse. The hub's own cluster is never in this state, which could not be written; see View.Outage.
	Unreachable Reachability = "Unreachable"
	// Forbidden means that its API server refuses the hub: a right is missing, or the credentials are not accepted.
	Forbidden Reachability = "Forbidden"
	// MonitorMissing means that the API server answers, and the monitor that filled bundles there has no Lease any more; or that the API server does not serve bundles.
	MonitorMissing Reachability = "MonitorMissing"
	// MonitorStale means that the API server answers, and that monitor does not renew its Lease.
	MonitorStale Reachability = "MonitorStale"
	// OverBudget means that the cluster exceeds its budget, or that its answers or its rate of changes are too large, so that the hub has cut it off for a while.
	OverBudget Reachability = "OverBudget"
	// Refused means that the kubeconfig is refused, so that the hub does not try to connect.
	Refused Reachability = "Refused"
)

// Reachabilities returns all values of Reachability, best first.
func Reachabilities() []Reachability {
	return []Reachability{Connected, Connecting, MonitorStale, MonitorMissing, Forbidden, Unreachable, OverBudget, Refused}
}

// Reason returns the reason of objects that are stale because of the reachability of their cluster; empty for Connected.
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

// ClusterState is the state of a cluster.
type ClusterState struct {
	// Name is the cluster's name.
	Name string
	// Local is true for the hub's own cluster.
	Local bool
	// SecretUID is the uid of the cluster's Secret. The hub's own cluster has none.
	SecretUID types.UID
	// Reachability is whether what is known of the cluster is current, and if not, why.
	Reachability Reachability
	// Since is since when the cluster has been Reachable, or not Reachable. It does not change when only the reason changes.
	Since time.Time
	// LastSeen is when what is shown of the cluster was last known to be current. It does not advance while the cluster is not Reachable. Zero means never.
	LastSeen time.Time
	// FirstSync is the position of the cluster in the order in which clusters were Connected for the first time, from 1; zero before that.
	FirstSync uint64
	// Message describes the problem; empty when there is none.
	Message string
	// Maintenance is why alerts leave out the cluster for now; empty when they do not.
	Maintenance string
	// Labels are the labels of the cluster's Secret, in the form of labels.Set.String, so that states can be compared. The hub's own cluster has none.
	Labels string
	// Unmonitored is true when another monitor fills the bundles, and HealthScope's monitor does not run there, so that nothing
	// checks whether that one runs. LastSeen is then when it last wrote a bundle.
	Unmonitored bool
	// synced is true once the cluster's bundles have been read since the hub started.
	synced bool
	// unreadable is true when bundles cannot be read, although the API server answers.
	unreadable bool
	// namespaces are the namespaces from which bundles are read, with a comma before and after each; empty means all.
	namespaces string
	// outage is that of the hub's own API server, which Reachability does not show. See View.Outage.
	outage outage
}

// Problem returns a message with the cluster's name that explains why it is not current.
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

// Answers reports whether the cluster's API server answers, so that objects
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

// isStale reports whether a bundle is stale in a cluster of this state. own is true for a bundle that HealthScope's monitor
// fills; only these depend on that monitor.
func (s ClusterState) isStale(own bool) bool {
	return !s.Answers() || s.unreadable || own && s.Reachability != Connected
}

// sameAs reports whether two states are the same to subscribers.
func (s ClusterState) sameAs(o ClusterState) bool {
	if !s.Since.Equal(o.Since) {
		return false
	}
	s.Since, s.LastSeen, s.outage = o.Since, o.LastSeen, o.outage
	return s == o
}

// outage is since when the hub's own API server has not answered, and why; zero while it answers.
type outage struct {
	since time.Time
	cause string
}
