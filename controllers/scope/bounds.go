package scope

import (
	"encoding/json"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/healthscope"
)

// maxStatusBytes bounds the status of one scope, as JSON.
const maxStatusBytes = 64 << 10

// maxLine bounds a line of a list, and maxMessage the message of a condition, in bytes.
const (
	maxLine    = 256
	maxMessage = 1024
)

// truncateStatus cuts lists until the status is within its bounds: first KubeVela's list, which only repeats the others, then the
// others to a length that is still useful, and then, because names may be of any length, as far as necessary.
func truncateStatus(s *corev1alpha2.HealthScopeStatus) {
	components := func(a *corev1alpha2.AppHealthCondition) *[]corev1alpha2.WorkloadHealthCondition { return &a.Components }
	clusters := func(a *corev1alpha2.AppStatus) *[]corev1alpha2.ClusterStatus { return &a.Clusters }
	halveOthers := func(minimum int) bool {
		return halve(&s.HealthConditions, minimum) || halveEach(s.Apps, clusters, minimum) || halve(&s.Apps, minimum) || halve(&s.Culprits, minimum)
	}
	for tooBig(s) && (halveEach(s.AppHealthConditions, components, 1) || halve(&s.AppHealthConditions, 0) || halveOthers(10) || halveOthers(0)) {
		s.Truncated = true
	}
}

func tooBig(s *corev1alpha2.HealthScopeStatus) bool {
	data, err := json.Marshal(s)
	return err == nil && len(data) > maxStatusBytes
}

// halve drops the second half of a list, but keeps at least a minimum number of entries. It reports whether it dropped any.
func halve[T any](list *[]T, minimum int) bool {
	n := max(len(*list)/2, minimum)
	if n >= len(*list) {
		return false
	}
	*list = (*list)[:n]
	return true
}

// halveEach halves a list of each element.
func halveEach[T, E any](all []T, of func(*T) *[]E, minimum int) bool {
	dropped := false
	for i := range all {
		dropped = halve(of(&all[i]), minimum) || dropped
	}
	return dropped
}

// bounded cuts a list to a number of entries, and sets truncated when it does.
func bounded[T any](list []T, limit int, truncated *bool) []T {
	if len(list) <= limit {
		return list
	}
	*truncated = true
	return list[:limit]
}

func shorten(text string) string { return healthscope.Shorten(text, maxLine) }
