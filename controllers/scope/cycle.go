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
	"github.com/healthscope/healthscope/healthscope"
)

// maxLinks bounds how many references from scopes to scopes of one namespace are followed in search of a cycle.
const maxLinks = 10_000

// scopeKind is the kind of references that lead to scopes.
var scopeKind = schema.GroupKind{Group: corev1alpha2.GroupVersion.Group, Kind: "HealthScope"}

// waysBackTo reads the scopes of the namespace, if the scope refers to scopes, and returns the ways back to it.
func (r *reconciler) waysBackTo(ctx context.Context, scope *corev1alpha2.HealthScope) (map[string]string, error) {
	own := r.View.Cluster()
	if len(scopeRefs(scope, own)) == 0 {
		return nil, nil
	}
	var list corev1alpha2.HealthScopeList
	if err := r.client.List(ctx, &list, client.InNamespace(scope.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, errors.Wrapf(err, "cannot list the HealthScopes of namespace %q", scope.Namespace)
	}
	return waysBack(scope, list.Items, own), nil
}

// waysBack returns the scopes of the namespace whose references lead to a scope, each with the next scope on its
// shortest way there. own is the name of the cluster that the scopes are in.
func waysBack(scope *corev1alpha2.HealthScope, all []corev1alpha2.HealthScope, own string) map[string]string {
	all = slices.SortedFunc(slices.Values(all), func(a, b corev1alpha2.HealthScope) int { return strings.Compare(a.Name, b.Name) })
	uids := map[string]types.UID{}
	for i := range all {
		uids[all[i].Name] = all[i].UID
	}
	uids[scope.Name] = scope.UID
	referrers, links := map[string][]string{}, 0
	for i := range all {
		if all[i].Name == scope.Name {
			continue // The way ends there.
		}
		for _, ref := range scopeRefs(&all[i], own) {
			if links++; links <= maxLinks && (ref.UID == "" || ref.UID == uids[ref.Name]) {
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
func scopeRefs(scope *corev1alpha2.HealthScope, own string) []corev1alpha2.WorkloadReference {
	var found []corev1alpha2.WorkloadReference
	for gvk, ref := range references(scope) {
		if gvk.GroupKind() == scopeKind && cmp.Or(ref.Cluster, own) == own {
			found = append(found, ref)
		}
	}
	return found
}

// linkedScopes returns requests for the scopes that may be in a cycle with a scope whose spec has changed: those of its
// namespace that refer to scopes, if it does itself.
func (s *sources) linkedScopes(ctx context.Context, o client.Object) []reconcile.Request {
	own := s.options.View.Cluster()
	changed, ok := o.(*corev1alpha2.HealthScope)
	if !ok || len(scopeRefs(changed, own)) == 0 {
		return nil
	}
	return s.list(ctx, func(scope *corev1alpha2.HealthScope) bool { return len(scopeRefs(scope, own)) > 0 }, client.InNamespace(changed.Namespace))
}

// cycle returns the chain of scopes through a reference, from the scope to itself; nil when the reference does not lead back.
func (g *gatherer) cycle(cluster string, gk schema.GroupKind, name string) []string {
	if gk != scopeKind || cluster != g.bundles.Cluster() {
		return nil
	}
	chain := []string{g.scope.Name}
	for at := name; at != g.scope.Name; at = g.back[at] {
		if g.back[at] == "" {
			return nil
		}
		chain = append(chain, at)
	}
	return append(chain, g.scope.Name)
}

// inCycle returns the result of a scope that cannot be judged, because its health depends on that of the scope that refers to it.
func inCycle(r healthscope.Result, chain []string) healthscope.Result {
	return unknownFor(r, healthscope.ReasonReferenceCycle, "%s", shorten("the references of scopes form a cycle: "+strings.Join(chain, " → ")))
}
