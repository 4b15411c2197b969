package scope

import (
	"encoding/json"
	"strings"

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
	for tooBig(s) && (halveComponents(s.AppHealthConditions) || halve(&s.AppHealthConditions, 0)) {
		s.Truncated = true
	}
	for _, minimum := range []int{10, 0} {
		for tooBig(s) {
			s.Truncated = true
			cut := halve(&s.HealthConditions, minimum) || halveClusters(s.Apps, minimum) || halve(&s.Apps, minimum) || halve(&s.Culprits, minimum)
			if !cut {
				break
			}
		}
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

// halveClusters halves the list of clusters in every app.
func halveClusters(apps []corev1alpha2.AppStatus, minimum int) bool {
	dropped := false
	for i := range apps {
		dropped = halve(&apps[i].Clusters, minimum) || dropped
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

// joinBounded joins names for a message.
func joinBounded(names []string) string { return shorten(strings.Join(names, ", ")) }

// shorten bounds a line.
func shorten(text string) string { return healthscope.Shorten(text, maxLine) }
