package main

import (
	"fmt"
	"maps"
	"slices"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope"
)

type (
	bundleStatus = k8spluginv1alpha1.ResourceBundleStateStatus
	scopeStatus  = corev1alpha2.HealthScopeStatus
)

// podState returns the state of a pod that crashes or that is ready.
func podState(crash bool) string {
	if crash {
		return string(healthscope.Failed)
	}
	return string(healthscope.Ready)
}

// right returns a check of a whole bundle: its counts, and the state of every object. The parameters are the numbers of the pods
// that crash, and of those without the application's label. All other pods are ready.
func (a app) right(crashed, absent []int) func(bundleStatus) string {
	states := map[string]string{}
	for i := range a.pods {
		if !slices.Contains(absent, i) {
			states["Pod/"+a.podName(i)] = podState(slices.Contains(crashed, i))
		}
	}
	states["Deployment/"+a.name] = podState(false)
	for _, o := range a.settings() {
		states[kindOf(o)+"/"+o.GetName()] = podState(false)
	}
	failed, total := 0, a.counting()
	if a.bare { // Otherwise the Deployment counts, which is ready, and the pods do not.
		failed, total = len(crashed), total-len(absent)
	}
	return func(s bundleStatus) string {
		if s.Summary == nil || len(s.Malformed) > 0 {
			return fmt.Sprintf("it has no summary, or malformed parts: %q", s.Malformed)
		}
		want := k8spluginv1alpha1.ResourceCounts{State: s.Summary.State, Total: int32(total), Ready: int32(total - failed), Failed: int32(failed)}
		if *s.Summary != want || s.Ready != (failed == 0) || int(s.ResourceCount) != len(states) || len(s.Resources) != len(states) {
			return fmt.Sprintf("ready is %t, the summary %+v, the count %d, and %d resources are named; want %+v and %d", s.Ready, *s.Summary, s.ResourceCount, len(s.Resources), want, len(states))
		}
		for i := range s.Resources {
			r := &s.Resources[i]
			if want := states[r.Kind+"/"+r.Name]; r.State != want {
				return fmt.Sprintf("%s %q is %s (%s), not %q", r.Kind, r.Name, r.State, r.Reason, want)
			}
		}
		return ""
	}
}

// shows returns a check of the state of one pod in a bundle.
func (a app) shows(pod int, crash bool) func(bundleStatus) string {
	name, want := a.podName(pod), podState(crash)
	return func(s bundleStatus) string {
		for i := range s.Resources {
			if r := &s.Resources[i]; r.Name == name && r.State == want {
				return ""
			}
		}
		return fmt.Sprintf("pod %q is not %s", name, want)
	}
}

// allRight returns checks of the bundles of applications whose pods are all ready.
func allRight(apps []app) checks[bundleStatus] {
	all := checks[bundleStatus]{}
	for _, a := range apps {
		all[a.key()] = a.right(nil, nil)
	}
	return all
}

// counts returns a check of the health of a scope, and of how many of its resources are ready.
func counts(ready, total int) func(scopeStatus) string {
	health := corev1alpha2.Healthy
	if ready < total {
		health = corev1alpha2.Unhealthy
	}
	return func(s scopeStatus) string {
		if int(s.Summary.Ready) != ready || int(s.Summary.Total) != total || s.Health != health {
			return fmt.Sprintf("it is %q with %d/%d ready, not %s with %d/%d: %s", s.Health, s.Summary.Ready, s.Summary.Total, health, ready, total, s.FirstCulprit)
		}
		return ""
	}
}

// allHealthy returns checks of scopes whose resources are all ready.
func allHealthy(scopes []scope) checks[scopeStatus] {
	all := checks[scopeStatus]{}
	for _, s := range scopes {
		total := s.deployments
		for _, a := range s.apps {
			total += a.counting()
		}
		all[s.key()] = counts(total, total)
	}
	return all
}

// those returns the elements that a set maps to true.
func those[T comparable](set map[T]bool) []T {
	return slices.DeleteFunc(slices.Collect(maps.Keys(set)), func(t T) bool { return !set[t] })
}
