package scope

import (
	"cmp"
	"slices"
	"strings"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
)

// appHealthOf returns KubeVela's view: the health of each Application, in each of its environments, by component, worst first.
func appHealthOf(v judgement) []corev1alpha2.AppHealthCondition {
	var apps []corev1alpha2.AppHealthCondition
	index := map[origin]int{}
	for _, r := range v.refs {
		if r.origin == nil {
			continue
		}
		app := origin{application: r.origin.application, env: r.origin.env}
		at, known := index[app]
		if !known {
			at = len(apps)
			index[app] = at
			apps = append(apps, corev1alpha2.AppHealthCondition{AppName: app.application, EnvName: app.env})
		}
		c := referenceCondition(r)
		if ready, _, counts := strings.Cut(c.Diagnosis, " "); counts && strings.HasPrefix(ready, "Ready:") {
			c.CustomStatusMsg = ready // As KubeVela's own rules in CUE do: its clients show it.
		}
		apps[at].Components = append(apps[at].Components, c)
	}
	for _, a := range apps {
		slices.SortFunc(a.Components, compareConditions)
	}
	slices.SortFunc(apps, func(a, b corev1alpha2.AppHealthCondition) int {
		return cmp.Or(compareHealth(a.Components[0].HealthStatus, b.Components[0].HealthStatus), strings.Compare(a.AppName, b.AppName), strings.Compare(a.EnvName, b.EnvName))
	})
	return apps
}

// boundedAppHealth cuts the health of Applications to a number of components in all, and sets truncated when it does.
func boundedAppHealth(apps []corev1alpha2.AppHealthCondition, limit int, truncated *bool) []corev1alpha2.AppHealthCondition {
	for i := range apps {
		apps[i].Components = bounded(apps[i].Components, limit, truncated)
		limit -= len(apps[i].Components)
		if limit == 0 {
			return bounded(apps, i+1, truncated)
		}
	}
	return apps
}
