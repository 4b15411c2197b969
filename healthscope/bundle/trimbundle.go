package bundle

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope/rules"
)

// Trim reduces a bundle, in place, to what the cache of a hub holds: the required
// metadata, the selector, and a status with resources and summary but without the
// lists. For a bundle of another monitor, Trim fills in resources; the bundle still
// has no summary, which identifies it as one of another monitor, and an empty list
// shows that it was filled. Read returns the same contents before and after.
//
// Trim evaluates the lists of another monitor by the user's rules, which may be nil, and by the built-in rules.
func Trim(b *k8spluginv1alpha1.ResourceBundleState, user rules.UserRules) {
	contents := read("", b, user)
	status := k8spluginv1alpha1.ResourceBundleStateStatus{
		Ready: b.Status.Ready, ResourceCount: b.Status.ResourceCount, Summary: b.Status.Summary,
		Truncated: contents.Truncated, Malformed: contents.Malformed,
	}
	for _, result := range contents.Results {
		status.Resources = append(status.Resources, entryOf(result))
	}
	if !contents.Own && contents.Observed {
		status.ResourceStatuses = k8spluginv1alpha1.RawList("[]")
	}
	b.ObjectMeta = metav1.ObjectMeta{
		Name: b.Name, Namespace: b.Namespace, Labels: b.Labels, UID: b.UID,
		ResourceVersion: b.ResourceVersion, Generation: b.Generation, CreationTimestamp: b.CreationTimestamp,
	}
	b.Status = status
}
