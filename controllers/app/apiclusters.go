package app

import (
	"context"
	"slices"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/api"
	"github.com/healthscope/healthscope/healthscope/rules"
	"github.com/healthscope/healthscope/healthscope/status"
)

// viewClusters reads the clusters of status documents from the view of a fleet. It implements api.Clusters.
type viewClusters struct {
	view *fleet.View
	user rules.UserRules
}

// Bundle implements api.Clusters.
func (c viewClusters) Bundle(cluster, name, namespace string) (api.Observation, bool) {
	if b := selectBundle(c.view.ListByLabelIn(cluster, k8spluginv1alpha1.LabelDeploymentID, name), name, namespace); b != nil {
		return c.observation(b), true
	}
	state, outage, known := c.state(cluster)
	switch {
	case !known:
		return api.Observation{}, false
	case outage:
		return api.Observation{Report: unreachableReport(state)}, false
	case c.view.CompleteForAll(cluster): // The bundle does not exist.
		return api.Observation{Report: status.Report{LastSeen: state.LastSeen}}, true
	case state.Reachable(): // It may exist in a namespace that the hub cannot read.
		return api.Observation{Report: status.Report{LastSeen: state.LastSeen}}, false
	default:
		return api.Observation{Report: unreachableReport(state)}, false
	}
}

// state returns the state of a cluster. outage reports whether the cluster is the hub's own and its API server is unreachable;
// state is then that of an unreachable member.
func (c viewClusters) state(cluster string) (state fleet.ClusterState, outage, known bool) {
	if cluster == c.view.Cluster() {
		if state, outage := c.view.Outage(); outage {
			return state, true, true
		}
	}
	state, known = c.view.State(cluster)
	return state, false, known
}

// unreachableReport returns the report on an app in an unreachable cluster from which no bundle was read before.
func unreachableReport(state fleet.ClusterState) status.Report {
	return status.Report{Unreachable: true, Reason: state.Reachability.Reason(), Message: state.Problem(), LastSeen: state.LastSeen}
}

// selectBundle returns the bundle of an app among those with its label: the one in the namespace that its context names, else the
// one with the name that EMCO gives it, else one that a monitor has filled, else any. It returns nil if there is none.
func selectBundle(bundles []*fleet.Bundle, name, namespace string) *fleet.Bundle {
	for _, matches := range []func(*fleet.Bundle) bool{
		func(b *fleet.Bundle) bool { return b.Namespace == namespace && b.Name == name },
		func(b *fleet.Bundle) bool { return b.Namespace == namespace },
		func(b *fleet.Bundle) bool { return b.Name == name && b.Observed },
		func(b *fleet.Bundle) bool { return b.Observed },
		func(*fleet.Bundle) bool { return true },
	} {
		if i := slices.IndexFunc(bundles, matches); i >= 0 {
			return bundles[i]
		}
	}
	return nil
}

// Instance implements api.Clusters.
func (c viewClusters) Instance(id string) (found []api.Observation, neverSynced []string) {
	for _, b := range c.view.ListByLabel(status.InstanceLabel, id) {
		found = append(found, c.observation(b))
	}
	for _, state := range c.view.NeverSynced() {
		neverSynced = append(neverSynced, state.Name)
	}
	return found, neverSynced
}

// observation returns a bundle in the form that status documents are built from.
func (c viewClusters) observation(b *fleet.Bundle) api.Observation {
	state, outage, _ := c.state(b.Cluster)
	if outage {
		b = b.StaleIn(state)
	}
	o := api.Observation{Report: status.Report{
		Namespace: b.Namespace, Members: b.Members, Observed: b.Observed, Truncated: b.Truncated, Unlisted: b.Unlisted, Malformed: b.Malformed, LastSeen: state.LastSeen,
	}}
	if state.Unmonitored && !b.Own {
		o.LastSeen = b.WrittenAt
	}
	if b.Stale {
		o.Unreachable, o.Reason, o.Message = true, state.Reachability.Reason(), state.Problem()
		if state.Answers() && !b.OutdatedSince.IsZero() {
			o.Reason, o.Message, o.LastSeen = healthscope.ReasonMonitorStale, b.OutdatedMessage(), b.OutdatedSince
		}
		return o
	}
	o.Read = func(ctx context.Context) (*status.Bundle, error) {
		whole, err := c.view.ReadBundle(ctx, b.BundleKey)
		if err != nil {
			return nil, err
		}
		return status.DecodeBundle(b.Cluster, string(whole.Status), c.user), nil
	}
	return o
}
