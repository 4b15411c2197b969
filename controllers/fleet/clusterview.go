package fleet

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/healthscope/healthscope/healthscope"
)

// clusterView is what a view holds of one cluster.
type clusterView struct {
	state ClusterState
	// bundles are the bundles of the cluster as they were last judged, independent of what is shown.
	bundles map[types.NamespacedName]*Bundle
	// own is the number of bundles that HealthScope's monitor fills, and foreign the number that another monitor fills. lastForeignWrite
	// is when that one last wrote a bundle, by the cluster's clock.
	own, foreign     int
	lastForeignWrite time.Time
	// access is how the cluster is reached; nil until it has been read once.
	access *Access
}

// shown returns the bundle as the view shows it; nil while the cluster has not been read yet.
func (c *clusterView) shown(b *Bundle) *Bundle {
	switch {
	case b == nil || c.state.Reachability == Connecting || c.state.Reachability == Refused:
		return nil
	case c.state.isStale(b.Own):
		return b.StaleIn(c.state)
	case !b.OutdatedSince.IsZero():
		return b.stale(healthscope.ReasonMonitorStale, b.OutdatedMessage(), b.OutdatedSince)
	default:
		return b
	}
}

// currentState returns the state with an up-to-date LastSeen.
func (c *clusterView) currentState() ClusterState {
	s := c.state
	if s.Unmonitored {
		s.LastSeen = c.lastForeignWrite
	}
	return s
}

// countBundle adds n to the count of the bundle's monitor, and updates lastForeignWrite.
func (c *clusterView) countBundle(b *Bundle, n int) {
	switch {
	case b == nil:
	case b.Own:
		c.own += n
	case b.Observed:
		c.foreign += n
		c.lastForeignWrite = later(c.lastForeignWrite, b.WrittenAt)
	}
}
