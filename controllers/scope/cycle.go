package scope

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
)

// maxScopeReferences bounds how many references from scopes to scopes of one namespace are followed in search of a cycle.
const maxScopeReferences = 10_000

// scopeKind is the kind of references that lead to scopes.
var scopeKind = schema.GroupKind{Group: corev1alpha2.GroupVersion.Group, Kind: "HealthScope"}

// findReferrerPaths lists the scopes of the namespace, if the scope refers to scopes, and returns the paths that lead back to it.
func (r *reconciler) findReferrerPaths(ctx context.Context, scope *corev1alpha2.HealthScope) (map[string]string, error) {
	localCluster := r.View.Cluster()
	if len(scopeRefs(scope, localCluster)) == 0 {
		return nil, nil
	}
	var list corev1alpha2.HealthScopeList
	if err := r.client.List(ctx, &list, client.InNamespace(scope.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, errors.Wrapf(err, "cannot list the HealthScopes of namespace %q", scope.Namespace)
	}
	return referrerPathsTo(scope, list.Items, localCluster), nil
}

// referrerPathsTo returns the scopes of the namespace whose references lead to a scope, each with the next scope on its
// shortest path there. localCluster is the name of the cluster that the scopes are in.
func referrerPathsTo(scope *corev1alpha2.HealthScope, all []corev1alpha2.HealthScope, localCluster string) map[string]string {
	all = slices.SortedFunc(slices.Values(all), func(a, b corev1alpha2.HealthScope) int { return strings.Compare(a.Name, b.Name) })
	uids := map[string]types.UID{}
	for i := range all {
		uids[all[i].Name] = all[i].UID
	}
	uids[scope.Name] = scope.UID
	referrers, count := map[string][]string{}, 0
	for i := range all {
		if all[i].Name == scope.Name {
			continue // Paths end there.
		}
		for _, ref := range scopeRefs(&all[i], localCluster) {
			if count++; count <= maxScopeReferences && (ref.UID == "" || ref.UID == uids[ref.Name]) {
				referrers[ref.Name] = append(referrers[ref.Name], all[i].Name)
			}
		}
	}
	next := map[string]string{}
	for queue := []string{scope.Name}; len(queue) > 0; queue = queue[1:] {
		for _, referrer := range referrers[queue[0]] {
			if _, seen := next[referrer]; !seen {
				next[referrer] = queue[0]
				queue = append(queue, referrer)
			}
		}
	}
	return next
}

// scopeRefs returns the references of a scope to scopes of its own namespace and cluster.
func scopeRefs(scope *corev1alpha2.HealthScope, localCluster string) []corev1alpha2.WorkloadReference {
	var found []corev1alpha2.WorkloadReference
	for gvk, ref := range references(scope) {
		if gvk.GroupKind() == scopeKind && cmp.Or(ref.Cluster, localCluster) == localCluster {
			found = append(found, ref)
		}
	}
	return found
}

// cycleCandidates returns requests for the scopes that may be in a cycle with a scope whose spec has changed: those of its
// namespace that refer to scopes, if it does itself.
func (s *eventSource) cycleCandidates(ctx context.Context, o client.Object) []reconcile.Request {
	localCluster := s.options.View.Cluster()
	changed, ok := o.(*corev1alpha2.HealthScope)
	if !ok || len(scopeRefs(changed, localCluster)) == 0 {
		return nil
	}
	return s.requests(ctx, func(scope *corev1alpha2.HealthScope) bool { return len(scopeRefs(scope, localCluster)) > 0 }, client.InNamespace(changed.Namespace))
}

// cycle returns the chain of scopes from the scope through a reference back to itself; nil when the reference does not lead back.
func (g *gatherer) cycle(ref objectKey) []string {
	if ref.GroupKind() != scopeKind || ref.Cluster != g.view.Cluster() {
		return nil
	}
	chain := []string{g.scope.Name}
	for at := ref.Name; at != g.scope.Name; at = g.referrerPaths[at] {
		if g.referrerPaths[at] == "" {
			return nil
		}
		chain = append(chain, at)
	}
	return append(chain, g.scope.Name)
}
