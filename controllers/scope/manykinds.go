package scope

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/healthscope"
)

// maxKinds bounds the distinct kinds that one scope may refer to directly: each is watched, or looked for, in each cluster that a reference names.
const maxKinds = 100

// followedKinds returns the kinds whose references a scope follows: of those that it refers to directly, the first ones.
func followedKinds(scope *corev1alpha2.HealthScope) map[schema.GroupVersionKind]struct{} {
	kinds := map[schema.GroupVersionKind]struct{}{}
	for _, app := range appsOf(&scope.Spec) {
		for _, ref := range app.refs {
			gvk, problem := parseRef(scope.Namespace, ref)
			if problem == nil && gvk.GroupKind() != bundleKind && len(kinds) < maxKinds {
				kinds[gvk] = struct{}{}
			}
		}
	}
	return kinds
}

// tooManyKinds returns the result of a reference to a kind that the scope does not follow.
func tooManyKinds(unknown healthscope.Result) healthscope.Result {
	unknown.State, unknown.Reason = healthscope.Unknown, healthscope.ReasonTooManyKinds
	unknown.Message = fmt.Sprintf("the scope refers to more than %d kinds, and only the first %d are followed", maxKinds, maxKinds)
	return unknown
}

// whyUnknown returns reason and message of the condition Ready of a scope whose health cannot be known.
func whyUnknown(s *corev1alpha2.HealthScopeStatus, v verdict, nothing string) (reason Reason, message string) {
	if v.summary.Unknown == 0 {
		return ReasonNoMembers, nothing
	}
	for _, ofScope := range []healthscope.Reason{healthscope.ReasonReferenceCycle, healthscope.ReasonTooManyKinds} { // The spec itself is the cause.
		if at := slices.IndexFunc(v.members, func(p Placed) bool { return p.Reason == ofScope }); at >= 0 {
			return Reason(ofScope), v.members[at].Message
		}
	}
	return ReasonMembersUnknown, fmt.Sprintf("%d of %d resources cannot be judged: %s", v.summary.Unknown, v.summary.Total, firstUnknown(s.Culprits))
}
