package fleet

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/healthscope/healthscope/healthscope"
)

// clusterView is what a view holds of one cluster.
type clusterView struct {
	state ClusterState
	// bundles are those of the cluster, as they were judged last, whatever is shown of them.
	bundles map[types.NamespacedName]*Bundle
	// own is how many of them a monitor of ours has filled, foreign how many another one, and written when that did so last, by the cluster's clock.
	own, foreign     int
	lastForeignWrite time.Time
	// access is how the cluster is reached; nil until it has been read once.
	access *Access
}

// shown returns what is to be shown of a bundle: nothing of a cluster that has not been read yet.
func (c *clusterView) shown(b *Bundle) *Bundle {
	switch {
	case b == nil || c.state.Reachability == Connecting || c.state.Reachability == Refused:
		return nil
	case c.state.isStale(b.Own):
		return b.StaleIn(c.state)
	case !b.Outdated.IsZero():
		return b.stale(healthscope.ReasonMonitorStale, b.OutdatedMessage(), b.Outdated)
	default:
		return b
	}
}

// now returns the state with the time when the cluster was seen last.
func (c *clusterView) currentState() ClusterState {
	s := c.state
	if s.Unwatched {
		s.LastSeen = c.lastForeignWrite
	}
	return s
}

// count counts a bundle that comes, or goes, by who has filled it.
func (c *clusterView) countBundle(b *Bundle, n int) {
	switch {
	case b == nil:
	case b.Own:
		c.own += n
	case b.Observed:
		c.foreign += n
		c.lastForeignWrite = later(c.lastForeignWrite, b.Written)
	}
}
