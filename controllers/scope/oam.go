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

// setReferences sets OAM's part of the status: a health condition for each reference, worst first.
func setReferences(s *corev1alpha2.HealthScopeStatus, v judgement) {
	c := corev1alpha2.ScopeHealthCondition{HealthStatus: oamHealth(v.Health), Total: int64(len(v.refs))}
	conditions := make([]corev1alpha2.WorkloadHealthCondition, 0, len(v.refs))
	for _, r := range v.refs {
		condition := referenceCondition(r)
		switch condition.HealthStatus {
		case corev1alpha2.StatusHealthy:
			c.HealthyWorkloads++
		case corev1alpha2.StatusUnhealthy:
			c.UnhealthyWorkloads++
		case corev1alpha2.StatusUnknown:
			c.UnknownWorkloads++
		}
		conditions = append(conditions, condition)
	}
	slices.SortFunc(conditions, compareConditions)
	s.ScopeHealthCondition = c
	s.HealthConditions = bounded(conditions, corev1alpha2.MaxHealthConditions, &s.Truncated)
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
	members, all := countedMembers(r.placed)
	unlisted := r.unlisted()
	all = sum(all, unlisted)
	c := corev1alpha2.WorkloadHealthCondition{
		ComponentName: cmp.Or(r.component, r.app), TargetWorkload: r.ref, HealthStatus: oamHealth(all.Health(100)), WorkloadStatus: r.workloadStatus,
	}
	ready, desired := all.Ready, all.Total
	if !r.isBundle() {
		ready, desired = replicasOf(members, ready, desired)
	}
	if len(members) == 1 && unlisted.Total == 0 {
		m := members[0]
		c.ComponentName = cmp.Or(r.component, m.Labels[corev1alpha2.LabelComponent], r.app)
		ready, desired = replicasOf(members, ready, desired)
		if m.State == healthscope.Unknown || m.State == healthscope.NotPresent {
			c.Diagnosis = shorten(cmp.Or(m.Message, string(m.Reason)))
			return c
		}
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

// countedMembers returns the members of a reference that count in the scope, and their summary. For a
// reference without such members, it returns all members that the reference leads to.
func countedMembers(of []AppMember) (members []*healthscope.Member, all healthscope.Summary) {
	members = make([]*healthscope.Member, 0, len(of))
	for _, p := range of {
		if p.Contributes() {
			members = append(members, p.Member)
			all.Add(*p.Member)
		}
	}
	if len(members) > 0 {
		return members, all
	}
	for _, p := range of {
		m := *p.Member
		m.Owned = false
		members = append(members, &m)
		all.Add(m)
	}
	return members, all
}
