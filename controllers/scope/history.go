package scope

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

// history holds the history of the objects that a scope refers to directly, and of missing ones. Package fleet holds that of resources in bundles.
type history struct {
	*fleet.History

	// previous are the members of the previous judgement, sorted by key.
	previous []healthscope.Member
}

// newHistory returns a history that begins with the culprits of the scope's status.
func newHistory(status *corev1alpha2.HealthScopeStatus) *history {
	seen := map[healthscope.Key]fleet.Observation{}
	addHistory(seen, status)
	m := &history{History: fleet.NewMemory(seen)}
	for _, key := range slices.SortedFunc(maps.Keys(seen), healthscope.Key.Compare) {
		m.previous = append(m.previous, seen[key].Member(key))
	}
	return m
}

// ReadHistory returns since when the culprits of all scopes are in their state, for
// fleet.Options.History: after a restart it is the hub's only source for
// resources of bundles whose monitors record no time. Resources that are no culprits, or that do
// not fit into a scope's status, are missing.
func ReadHistory(reader client.Reader) func(context.Context) (map[healthscope.Key]fleet.Observation, error) {
	return func(ctx context.Context) (map[healthscope.Key]fleet.Observation, error) {
		var scopes corev1alpha2.HealthScopeList
		if err := reader.List(ctx, &scopes, client.UnsafeDisableDeepCopy); err != nil {
			return nil, errors.Wrap(err, "cannot list HealthScopes")
		}
		seen := map[healthscope.Key]fleet.Observation{}
		for i := range scopes.Items {
			addHistory(seen, &scopes.Items[i].Status)
		}
		return seen, nil
	}
}

// addHistory adds the culprits of a status. Where several scopes name an object, the latest change counts.
func addHistory(seen map[healthscope.Key]fleet.Observation, status *corev1alpha2.HealthScopeStatus) {
	for _, c := range status.Culprits {
		if c.Since == nil || isCluster(c) {
			continue
		}
		key := keyOf(c)
		if since := c.Since.UTC(); since.After(seen[key].Since) {
			seen[key] = fleet.Observation{State: healthscope.State(c.State), Reason: healthscope.Reason(c.Reason), Since: since}
		}
	}
}

// withHistory returns the results of findings with their history, each object once and sorted by key.
func (m *history) withHistory(findings []*finding, policy healthscope.Policy, now time.Time) []healthscope.Result {
	var results []healthscope.Result
	for _, f := range findings {
		results = append(results, f.results...)
	}
	results = m.Resume(results, policy, now)
	policy.WithHistory(results, m.previous)
	return results
}
