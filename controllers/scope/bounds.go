package scope

import (
	"encoding/json"
	"strings"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/healthscope"
)

// maxStatusBytes bounds the status of one scope, as JSON.
const maxStatusBytes = 64 << 10

// maxLine bounds a line that people read in a list, in bytes, and maxMessage the message of a condition.
const (
	maxLine    = 256
	maxMessage = 1024
)

// fit cuts lists until the status is within its bounds: first KubeVela's list, which says nothing that the others do not, then the
// others to a length that is still useful to people, and then, because names may be of any length, as far as necessary.
func fit(s *corev1alpha2.HealthScopeStatus) {
	for tooBig(s) && (halveComponents(s.AppHealthConditions) || halve(&s.AppHealthConditions, 0)) {
		s.Truncated = true
	}
	for _, least := range []int{10, 0} {
		for tooBig(s) {
			s.Truncated = true
			cut := halve(&s.HealthConditions, least) || halveClusters(s.Apps, least) || halve(&s.Apps, least) || halve(&s.Culprits, least)
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

// halve drops the second half of a list, but keeps a number of entries at least, and reports whether there was anything to drop.
func halve[T any](list *[]T, least int) bool {
	n := max(len(*list)/2, least)
	if n >= len(*list) {
		return false
	}
	*list = (*list)[:n]
	return true
}

// halveClusters halves the list of clusters in every app.
func halveClusters(apps []corev1alpha2.AppStatus, least int) bool {
	dropped := false
	for i := range apps {
		dropped = halve(&apps[i].Clusters, least) || dropped
	}
	return dropped
}

// bounded cuts a list to a number of entries, and sets truncated when it does.
func bounded[T any](list []T, most int, truncated *bool) []T {
	if len(list) <= most {
		return list
	}
	*truncated = true
	return list[:most]
}

// joinBounded joins names for a message.
func joinBounded(names []string) string { return shorten(strings.Join(names, ", ")) }

// shorten bounds a line.
func shorten(text string) string { return healthscope.Shorten(text, maxLine) }
