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

// memory is of what a scope refers to directly, and of what is missing. Resources of bundles have theirs in the fleet.
type memory struct {
	*fleet.Memory

	// before are the judged members of the last time, sorted by key.
	before []healthscope.Member
}

// newMemory returns a memory that begins with the culprits of the scope's status.
func newMemory(status *corev1alpha2.HealthScopeStatus) *memory {
	past := map[healthscope.Key]fleet.Seen{}
	addPast(past, status)
	m := &memory{Memory: fleet.NewMemory(past)}
	for _, key := range slices.SortedFunc(maps.Keys(past), healthscope.Key.Compare) {
		m.before = append(m.before, past[key].Member(key))
	}
	return m
}

// Past returns since when the culprits of all scopes are in their state, for
// fleet.Options.Past: after a restart the hub has it from nowhere else for
// resources of bundles whose monitors keep no time. What is no culprit, or does
// not fit into a scope's status, is not there.
func Past(reader client.Reader) func(context.Context) (map[healthscope.Key]fleet.Seen, error) {
	return func(ctx context.Context) (map[healthscope.Key]fleet.Seen, error) {
		var scopes corev1alpha2.HealthScopeList
		if err := reader.List(ctx, &scopes, client.UnsafeDisableDeepCopy); err != nil {
			return nil, errors.Wrap(err, "cannot list HealthScopes")
		}
		past := map[healthscope.Key]fleet.Seen{}
		for i := range scopes.Items {
			addPast(past, &scopes.Items[i].Status)
		}
		return past, nil
	}
}

// addPast adds the culprits of a status. Where several scopes name an object, the latest change counts.
func addPast(past map[healthscope.Key]fleet.Seen, status *corev1alpha2.HealthScopeStatus) {
	for _, c := range status.Culprits {
		if c.Since == nil || isCluster(c) {
			continue
		}
		key := keyOf(c)
		if since := c.Since.UTC(); since.After(past[key].Since) {
			past[key] = fleet.Seen{State: healthscope.State(c.State), Reason: healthscope.Reason(c.Reason), Since: since}
		}
	}
}

// resume returns the results of findings, each object once and sorted by key, with its history.
func (m *memory) resume(findings []finding, policy healthscope.Policy, now time.Time) []healthscope.Result {
	var results []healthscope.Result
	for _, f := range findings {
		results = append(results, f.results...)
	}
	results = m.Resume(results, policy, now)
	policy.WithHistory(results, m.before)
	return results
}
