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

// sightings is what status documents say of clusters: what the view of a fleet shows. It implements api.Clusters.
type sightings struct {
	view *fleet.View
	user rules.UserRules
}

// Bundle implements api.Clusters.
func (s sightings) Bundle(cluster, name, namespace string) (api.Sighting, bool) {
	if b := choose(s.view.Labelled(cluster, k8spluginv1alpha1.LabelDeploymentID, name), name, namespace); b != nil {
		return s.of(b), true
	}
	state, silent, known := s.state(cluster)
	switch {
	case !known:
		return api.Sighting{}, false
	case silent:
		return api.Sighting{Report: lostReport(state)}, false
	case s.view.CompleteFor(cluster, ""): // There is no such bundle.
		return api.Sighting{Report: status.Report{LastSeen: state.LastSeen}}, true
	case state.Reachable(): // There is none where the hub may look.
		return api.Sighting{Report: status.Report{LastSeen: state.LastSeen}}, false
	default:
		return api.Sighting{Report: lostReport(state)}, false
	}
}

// state returns what is known of a cluster. Of the hub's own, which is silent, it says what would be said of another one.
func (s sightings) state(cluster string) (state fleet.ClusterState, silent, known bool) {
	if cluster == s.view.Cluster() {
		if state, silent := s.view.Silence(); silent {
			return state, true, true
		}
	}
	state, known = s.view.State(cluster)
	return state, false, known
}

// lostReport is what is known of an app in a cluster that cannot be seen, and where there is no bundle that was seen before.
func lostReport(state fleet.ClusterState) status.Report {
	return status.Report{Lost: true, Reason: state.Reachability.Reason(), Message: state.Problem(), LastSeen: state.LastSeen}
}

// choose returns the bundle of an app among those that say they are: that in the namespace that its context names, else the
// one with the name that EMCO gives it, else one that a monitor has filled; nil of none.
func choose(bundles []*fleet.Bundle, name, namespace string) *fleet.Bundle {
	for _, fits := range []func(*fleet.Bundle) bool{
		func(b *fleet.Bundle) bool { return b.Namespace == namespace && b.Name == name },
		func(b *fleet.Bundle) bool { return b.Namespace == namespace },
		func(b *fleet.Bundle) bool { return b.Name == name && b.Observed },
		func(b *fleet.Bundle) bool { return b.Observed },
		func(*fleet.Bundle) bool { return true },
	} {
		if i := slices.IndexFunc(bundles, fits); i >= 0 {
			return bundles[i]
		}
	}
	return nil
}

// Instance implements api.Clusters.
func (s sightings) Instance(id string) (found []api.Sighting, unread []string) {
	for _, b := range s.view.Labelled("", status.InstanceLabel, id) {
		found = append(found, s.of(b))
	}
	for _, state := range s.view.Unread() {
		unread = append(unread, state.Name)
	}
	return found, unread
}

// of returns a bundle as documents show it.
func (s sightings) of(b *fleet.Bundle) api.Sighting {
	state, silent, _ := s.state(b.Cluster)
	if silent {
		b = b.Unseen(state)
	}
	sighting := api.Sighting{Report: status.Report{
		Namespace: b.Namespace, Members: b.Members, Observed: b.Observed, Truncated: b.Truncated, Unlisted: b.Unlisted, Malformed: b.Malformed, LastSeen: state.LastSeen,
	}}
	if state.Unwatched && !b.Own {
		sighting.LastSeen = b.Written
	}
	if b.Lost {
		sighting.Lost, sighting.Reason, sighting.Message = true, state.Reachability.Reason(), state.Problem()
		if state.Answers() && !b.Outdated.IsZero() {
			sighting.Reason, sighting.Message, sighting.LastSeen = healthscope.ReasonMonitorStale, b.Neglect(), b.Outdated
		}
		return sighting
	}
	sighting.Read = func(ctx context.Context) (*status.Bundle, error) {
		whole, err := s.view.Whole(ctx, b.BundleKey)
		if err != nil {
			return nil, err
		}
		return status.DecodeBundle(b.Cluster, string(whole.Status), s.user), nil
	}
	return sighting
}
