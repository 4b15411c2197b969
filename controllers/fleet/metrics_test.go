package fleet

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestMetricsOfClusters(t *testing.T) {
	t.Parallel()
	v := newView("hub")
	at := time.Unix(1780000000, 500e6)
	v.setState(ClusterState{Name: "hub", Local: true, Reachability: Connected, LastSeen: at})
	v.setState(ClusterState{Name: "edge01", Reachability: Unreachable, LastSeen: at.Add(-time.Minute), Maintenance: "new disks"})
	v.setState(ClusterState{Name: "edge02", Reachability: Connecting})
	v.setState(ClusterState{Name: "edge03", Reachability: Connected})
	v.removeCluster("edge03")
	want := `
# HELP healthscope_cluster_last_seen_timestamp_seconds When the cluster was known last to be as it was shown, in seconds since 1970. A cluster that was never read has no series. For one whose bundles another monitor fills, and where HealthScope's does not run, it is when a bundle was written last.
# TYPE healthscope_cluster_last_seen_timestamp_seconds gauge
healthscope_cluster_last_seen_timestamp_seconds{cluster="edge01"} 1.7799999405e+09
healthscope_cluster_last_seen_timestamp_seconds{cluster="hub"} 1.7800000005e+09
# HELP healthscope_cluster_maintenance 1 while the cluster's Secret says that it is under maintenance, for alerts to leave it out. Other clusters have no series.
# TYPE healthscope_cluster_maintenance gauge
healthscope_cluster_maintenance{cluster="edge01"} 1
# HELP healthscope_cluster_state ` + metricState.Help + `
# TYPE healthscope_cluster_state gauge
healthscope_cluster_state{cluster="edge01",state="Unreachable"} 1
healthscope_cluster_state{cluster="edge02",state="Connecting"} 1
healthscope_cluster_state{cluster="hub",state="Connected"} 1
# HELP healthscope_cluster_up 1 while what is known of the cluster is current, and 0 while it is not. The controller's own cluster is among them.
# TYPE healthscope_cluster_up gauge
healthscope_cluster_up{cluster="edge01"} 0
healthscope_cluster_up{cluster="edge02"} 0
healthscope_cluster_up{cluster="hub"} 1
`
	if err := testutil.CollectAndCompare(NewCollector(v), strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	if problems, err := testutil.CollectAndLint(NewCollector(v)); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}
