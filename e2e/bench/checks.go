package main

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope"
)

// expectation is how an application's pods are, by number: those that crash, those that are not ready yet, and those that do
// not carry the application's label. All others are ready.
type expectation struct {
	failed, pending, absent []int
}

// right checks a whole bundle: its counts, and the state of every object that it names. Nothing that is wrong may be left out.
func (a app) right(e expectation) check[*bundleView] {
	states := map[string]string{}
	resources := a.resources() - len(e.absent)
	for _, i := range e.failed {
		states[a.podName(i)] = string(healthscope.Failed)
	}
	for _, i := range e.pending {
		states[a.podName(i)] = string(healthscope.Pending)
	}
	return func(b *bundleView) string {
		s := &b.status
		if s.Summary == nil || len(s.Malformed) > 0 {
			return fmt.Sprintf("it has no summary, or parts that cannot be read: %q", s.Malformed)
		}
		if int(s.ResourceCount) != resources {
			return fmt.Sprintf("resourceCount is %d, not %d", s.ResourceCount, resources)
		}
		if wrong := a.wrongCounts(s, e); wrong != "" {
			return wrong
		}
		if len(s.Resources) < resources && !s.Truncated {
			return fmt.Sprintf("it names %d of %d resources, and truncated is not true", len(s.Resources), resources)
		}
		for _, i := range e.absent {
			if slices.ContainsFunc(s.Resources, func(r k8spluginv1alpha1.ResourceHealth) bool { return r.Kind == "Pod" && r.Name == a.podName(i) }) {
				return fmt.Sprintf("it names pod %q, which does not belong to it", a.podName(i))
			}
		}
		return wrongStates(s.Resources, states)
	}
}

// wrongCounts checks a bundle's summary.
func (a app) wrongCounts(s *k8spluginv1alpha1.ResourceBundleStateStatus, e expectation) string {
	failed, pending, total := len(e.failed), len(e.pending), a.counting()-len(e.absent)
	if !a.bare {
		failed, pending, total = 0, 0, a.counting() // The pods do not count, their Deployment does, and it is ready.
	}
	want := []int{total, total - failed - pending, pending, failed, 0}
	got := []int{int(s.Summary.Total), int(s.Summary.Ready), int(s.Summary.Pending), int(s.Summary.Failed), int(s.Summary.Unknown)}
	if !slices.Equal(got, want) {
		return fmt.Sprintf("the summary counts (total, ready, pending, failed, unknown) %d, not %d", got, want)
	}
	if ready := failed+pending == 0; s.Ready != ready {
		return fmt.Sprintf("ready is %t, not %t", s.Ready, ready)
	}
	return ""
}

// wrongStates checks the resources that a bundle names: pods have the given states, everything else is Ready, and every pod with a state is named.
func wrongStates(resources []k8spluginv1alpha1.ResourceHealth, states map[string]string) string {
	found := 0
	for i := range resources {
		r := &resources[i]
		want := string(healthscope.Ready)
		if r.Kind == "Pod" {
			if state, ok := states[r.Name]; ok {
				want = state
				found++
			}
		}
		if r.State != want {
			return fmt.Sprintf("%s %q is %s (%s), not %s", r.Kind, r.Name, r.State, r.Reason, want)
		}
	}
	if found < len(states) {
		return fmt.Sprintf("it names %d of %d pods that are not ready", found, len(states))
	}
	return ""
}

// complete checks as right does, and that every resource is named.
func (a app) complete(e expectation) check[*bundleView] {
	right, resources := a.right(e), a.resources()-len(e.absent)
	return func(b *bundleView) string {
		if wrong := right(b); wrong != "" {
			return wrong
		}
		if len(b.status.Resources) != resources {
			return fmt.Sprintf("it names %d of %d resources", len(b.status.Resources), resources)
		}
		return ""
	}
}

// shows checks the state of one pod in a bundle.
func (a app) shows(pod int, crash bool) check[*bundleView] {
	name, want := a.podName(pod), string(healthscope.Ready)
	if crash {
		want = string(healthscope.Failed)
	}
	return func(b *bundleView) string {
		for i := range b.status.Resources {
			if r := &b.status.Resources[i]; r.Name == name && r.Kind == "Pod" {
				if r.State == want {
					return ""
				}
				return fmt.Sprintf("pod %q is %s, not %s", name, r.State, want)
			}
		}
		return fmt.Sprintf("pod %q is not named", name)
	}
}

// allRight checks the bundles of applications of which all pods are ready.
func allRight(apps []app) map[types.NamespacedName]check[*bundleView] {
	checks := map[types.NamespacedName]check[*bundleView]{}
	for _, a := range apps {
		checks[a.key()] = a.complete(expectation{})
	}
	return checks
}

// counts checks a scope: so many of its members are ready.
func counts(ready, total int) check[*scopeView] {
	health := corev1alpha2.Healthy
	if ready < total {
		health = corev1alpha2.Unhealthy
	}
	return func(s *scopeView) string {
		got := s.status.Summary
		if int(got.Ready) != ready || int(got.Total) != total || s.status.Health != health {
			return fmt.Sprintf("it is %q with %d/%d ready, not %s with %d/%d: %s", s.status.Health, got.Ready, got.Total, health, ready, total, s.status.FirstCulprit)
		}
		return ""
	}
}

// allHealthy checks scopes of which every member is ready.
func allHealthy(scopes []scope) map[types.NamespacedName]check[*scopeView] {
	checks := map[types.NamespacedName]check[*scopeView]{}
	for _, s := range scopes {
		total := s.deployments
		for _, a := range s.apps {
			total += a.counting()
		}
		checks[s.key()] = counts(total, total)
	}
	return checks
}
