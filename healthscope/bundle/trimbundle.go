package bundle

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope/rules"
)

// Trim turns a bundle, in place, into what the cache of a hub holds: the
// metadata that is needed, the selector, and a status with resources and
// summary but without the lists. For a bundle of another monitor, resources are
// made here; it has no summary after as before, by which it is known, and an
// empty list shows that it was filled. Read gives the same answer before and after.
//
// The lists of another monitor are judged by the user's rules, which may be nil, besides the program's own.
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
