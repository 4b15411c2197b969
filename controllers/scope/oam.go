package scope

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/healthscope"
)

// setReferences sets OAM's part of the status, a health condition for each reference, and KubeVela's, the same by Application,
// environment and component; both worst first.
func setReferences(s *corev1alpha2.HealthScopeStatus, v judgement) {
	total := &s.ScopeHealthCondition
	total.HealthStatus, total.Total = oamHealth(v.Health), int64(len(v.refs))
	s.HealthConditions = make([]corev1alpha2.WorkloadHealthCondition, 0, len(v.refs))
	components := map[origin][]corev1alpha2.WorkloadHealthCondition{}
	for _, r := range v.refs {
		c := referenceCondition(r)
		switch c.HealthStatus {
		case corev1alpha2.StatusHealthy:
			total.HealthyWorkloads++
		case corev1alpha2.StatusUnhealthy:
			total.UnhealthyWorkloads++
		case corev1alpha2.StatusUnknown:
			total.UnknownWorkloads++
		}
		s.HealthConditions = append(s.HealthConditions, c)
		if from := r.ref.origin; from != nil {
			if ready, _, counts := strings.Cut(c.Diagnosis, " "); counts && strings.HasPrefix(ready, "Ready:") {
				c.CustomStatusMsg = ready // As KubeVela's own rules in CUE do: its clients show it.
			}
			in := origin{application: from.application, env: from.env}
			components[in] = append(components[in], c)
		}
	}
	slices.SortFunc(s.HealthConditions, compareConditions)
	s.HealthConditions = bounded(s.HealthConditions, corev1alpha2.MaxHealthConditions, &s.Truncated)
	for in, all := range components {
		slices.SortFunc(all, compareConditions)
		s.AppHealthConditions = append(s.AppHealthConditions, corev1alpha2.AppHealthCondition{AppName: in.application, EnvName: in.env, Components: all})
	}
	slices.SortFunc(s.AppHealthConditions, func(a, b corev1alpha2.AppHealthCondition) int {
		return cmp.Or(compareHealth(a.Components[0].HealthStatus, b.Components[0].HealthStatus), strings.Compare(a.AppName, b.AppName), strings.Compare(a.EnvName, b.EnvName))
	})
	boundComponents(s, corev1alpha2.MaxHealthConditions)
}

// boundComponents cuts the health of Applications to a number of components in all.
func boundComponents(s *corev1alpha2.HealthScopeStatus, limit int) {
	for i := range s.AppHealthConditions {
		if limit == 0 {
			s.AppHealthConditions = bounded(s.AppHealthConditions, i, &s.Truncated)
			return
		}
		a := &s.AppHealthConditions[i]
		a.Components = bounded(a.Components, limit, &s.Truncated)
		limit -= len(a.Components)
	}
}

func oamHealth(h healthscope.Health) corev1alpha2.HealthStatus {
	switch h {
	case healthscope.Healthy:
		return corev1alpha2.StatusHealthy
	case healthscope.HealthUnknown:
		return corev1alpha2.StatusUnknown
	case healthscope.Unhealthy:
	}
	return corev1alpha2.StatusUnhealthy
}

// compareConditions sorts unhealthy references before unknown ones, and these before healthy ones; then by name.
func compareConditions(a, b corev1alpha2.WorkloadHealthCondition) int {
	x, y := a.TargetWorkload, b.TargetWorkload
	return cmp.Or(
		compareHealth(a.HealthStatus, b.HealthStatus),
		strings.Compare(x.APIVersion, y.APIVersion), strings.Compare(x.Kind, y.Kind), strings.Compare(x.Name, y.Name), strings.Compare(x.Cluster, y.Cluster),
		strings.Compare(a.ComponentName, b.ComponentName), strings.Compare(a.Diagnosis, b.Diagnosis), strings.Compare(x.Namespace, y.Namespace),
		strings.Compare(string(x.UID), string(y.UID)), strings.Compare(x.ResourceVersion, y.ResourceVersion), strings.Compare(x.FieldPath, y.FieldPath))
}

// compareHealth sorts unhealthy before unknown, and this before healthy.
func compareHealth(a, b corev1alpha2.HealthStatus) int {
	order := []corev1alpha2.HealthStatus{corev1alpha2.StatusUnhealthy, corev1alpha2.StatusUnknown, corev1alpha2.StatusHealthy}
	return cmp.Compare(slices.Index(order, a), slices.Index(order, b))
}

// referenceCondition returns OAM's condition of one reference: the health of its members together.
func referenceCondition(r refJudgement) corev1alpha2.WorkloadHealthCondition {
	members := r.countedMembers()
	all := r.unlisted
	for _, m := range members {
		all.Add(*m)
	}
	c := corev1alpha2.WorkloadHealthCondition{
		ComponentName: cmp.Or(r.component, r.app), TargetWorkload: r.ref.WorkloadReference, HealthStatus: oamHealth(all.Health(100)), WorkloadStatus: r.workloadStatus,
	}
	single := len(members) == 1 && r.unlisted.Total == 0
	if single {
		m := members[0]
		c.ComponentName = cmp.Or(r.component, m.Labels[corev1alpha2.LabelComponent], r.app)
		if m.State == healthscope.Unknown || m.State == healthscope.NotPresent {
			c.Diagnosis = shorten(cmp.Or(m.Message, string(m.Reason)))
			return c
		}
	}
	ready, desired := all.Ready, all.Total
	if single || !r.isBundle() {
		ready, desired = replicasOf(members, ready, desired)
	}
	c.Diagnosis = fmt.Sprintf("Ready:%d/%d ", ready, desired)
	if unhealthy := slices.DeleteFunc(members, func(m *healthscope.Member) bool { return m.Healthy() }); len(unhealthy) > 0 {
		worst := slices.MinFunc(unhealthy, func(a, b *healthscope.Member) int {
			return cmp.Or(healthscope.CompareStates(a.State, b.State), a.Compare(b.Key))
		})
		c.Diagnosis = shorten(fmt.Sprintf("%s%s: %s", c.Diagnosis, worst.Key, cmp.Or(string(worst.Reason), string(worst.State))))
	}
	return c
}

// isBundle reports whether the reference is one to a bundle.
func (r refJudgement) isBundle() bool {
	gv, err := schema.ParseGroupVersion(r.ref.APIVersion)
	return err == nil && gv.WithKind(r.ref.Kind).GroupKind() == bundleKind.GroupKind()
}

// replicasOf returns how many replicas of members are ready and how many are desired. If no member has replicas, it returns its arguments.
func replicasOf(members []*healthscope.Member, ready, desired int) (int, int) {
	var sum healthscope.Replicas
	counts := false
	for _, m := range members {
		if m.Replicas != nil {
			sum.Ready, sum.Desired, counts = sum.Ready+m.Replicas.Ready, sum.Desired+m.Replicas.Desired, true
		}
	}
	if !counts {
		return ready, desired
	}
	return int(sum.Ready), int(sum.Desired)
}

// countedMembers returns the members of a reference that count in the scope. For a reference without such members, it returns
// all members that the reference leads to.
func (r refJudgement) countedMembers() (members []*healthscope.Member) {
	for _, p := range r.placed {
		if p.Contributes() {
			members = append(members, p.Member)
		}
	}
	if len(members) > 0 {
		return members
	}
	for _, p := range r.placed {
		m := *p.Member
		m.Owned = false
		members = append(members, &m)
	}
	return members
}

// bounded cuts a list to a number of entries, and sets truncated when it does.
func bounded[T any](list []T, limit int, truncated *bool) []T {
	if len(list) <= limit {
		return list
	}
	*truncated = true
	return list[:limit]
}
