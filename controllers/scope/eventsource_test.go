package scope

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/workqueue"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

// newTestEventSource returns a reconciler with the dependencies of scopes in a world.
func newTestEventSource(w world, scopes ...*corev1alpha2.HealthScope) *reconciler {
	s := &reconciler{dependencyIndex: newDependencyIndex()}
	var all listed
	for _, scope := range scopes {
		s.dependencyIndex.set(client.ObjectKeyFromObject(scope), gatherIn(w, scope, noon).dependencies)
		all.items = append(all.items, *scope)
	}
	s.client = all
	return s
}

// listed is a cache of scopes.
type listed struct {
	client.Client

	items []corev1alpha2.HealthScope
}

func (l listed) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if scopes, ok := list.(*corev1alpha2.HealthScopeList); ok {
		scopes.Items = l.items
	}
	return nil
}

// selecting returns a scope with an app that selects bundles.
func selecting(name string, selector metav1.LabelSelector) *corev1alpha2.HealthScope {
	s := scopeOf(corev1alpha2.HealthScopeSpec{Apps: []corev1alpha2.ScopeApp{{Name: "a", Selector: &selector}}})
	s.Name = name
	return s
}

// bundleChange returns the change of a bundle.
func bundleChange(b *fleet.Bundle) fleet.Change {
	return fleet.BundleChange{BundleKey: b.BundleKey, Labels: fleet.NewLabelSet(b.Labels)}
}

// enqueuedBy returns the names of the scopes that a change enqueues.
func (r *reconciler) enqueuedBy(t interface{ Context() context.Context }, c fleet.Change) []string {
	r.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer r.queue.ShutDown()
	r.handle(t.Context(), c)
	names := map[string]struct{}{}
	for r.queue.Len() > 0 {
		request, _ := r.queue.Get()
		r.queue.Done(request)
		names[request.Name] = struct{}{}
	}
	return slices.Sorted(maps.Keys(names))
}

// TestBundleChangeEnqueuesSelectingScopes: a change of a bundle enqueues exactly the scopes that select it, for any selectors.
func TestBundleChangeEnqueuesSelectingScopes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom([]string{"app", "tier", "edge"})
		operators := []metav1.LabelSelectorOperator{metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist}
		var scopes []*corev1alpha2.HealthScope
		for i := range rapid.IntRange(1, 4).Draw(t, "scopes") {
			selector := metav1.LabelSelector{MatchLabels: rapid.MapOfN(word, word, 0, 2).Draw(t, "labels")}
			if rapid.Bool().Draw(t, "expression") {
				e := metav1.LabelSelectorRequirement{Key: word.Draw(t, "key"), Operator: rapid.SampledFrom(operators).Draw(t, "operator")}
				if e.Operator == metav1.LabelSelectorOpIn || e.Operator == metav1.LabelSelectorOpNotIn {
					e.Values = rapid.SliceOfNDistinct(word, 1, 2, rapid.ID[string]).Draw(t, "values")
				}
				selector.MatchExpressions = []metav1.LabelSelectorRequirement{e}
			}
			scopes = append(scopes, selecting(fmt.Sprintf("scope%d", i), selector))
		}
		b := labelledWith(bundleOf(hub, "7-web"), rapid.MapOf(word, word).Draw(t, "bundle"))
		var want []string
		for _, s := range scopes {
			selector, err := metav1.LabelSelectorAsSelector(s.Spec.Apps[0].Selector)
			if err == nil && selector.Matches(labels.Set(b.Labels)) {
				want = append(want, s.Name)
			}
		}
		if diff := cmp.Diff(want, newTestEventSource(world{}, scopes...).enqueuedBy(t, bundleChange(b))); diff != "" {
			t.Fatalf("-want +got:\n%s", diff)
		}
	})
}

// BenchmarkOneChange measures one change of a bundle, from the view to the scope's new status, among many scopes that select
// their bundles.
func BenchmarkOneChange(b *testing.B) {
	for _, n := range []int{10, 1000} {
		b.Run(fmt.Sprintf("%d scopes", n), func(b *testing.B) {
			var scopes []*corev1alpha2.HealthScope
			for i := range n {
				scopes = append(scopes, selecting(fmt.Sprintf("scope%d", i), metav1.LabelSelector{MatchLabels: map[string]string{"example.org/app": fmt.Sprint(i)}}))
			}
			changed := labelledWith(bundleOf(hub, "7-web", member(hub, "Deployment", "web", healthscope.Ready, "")), map[string]string{"example.org/app": "7", "tier": "edge"})
			w := world{bundles: []*fleet.Bundle{changed}}
			all := newTestEventSource(w, scopes...)
			history := newHistory(&corev1alpha2.HealthScopeStatus{})
			b.ReportAllocs()
			for b.Loop() {
				if found := all.enqueuedBy(b, bundleChange(changed)); len(found) != 1 {
					b.Fatalf("asks for %q", found)
				}
				g := gatherIn(w, scopes[7], noon)
				v := decide(&scopes[7].Spec, g, history, healthscope.DefaultPolicy(), noon)
				if s := newStatus(scopes[7], v, externalStatus{state: world{}.State}, noon.Add(time.Second)); s.ResourcesReady != "1/1" {
					b.Fatal(s.ResourcesReady)
				}
			}
		})
	}
}

// TestClusterChangesEnqueueAffectedScopes asserts that changes enqueue the affected scopes. A deletion would wait for a scope
// that is not enqueued.
func TestClusterChangesEnqueueAffectedScopes(t *testing.T) {
	t.Parallel()
	names := selecting("names", metav1.LabelSelector{})
	names.Spec.ExpectedClusters = []string{"edge"}
	all := newTestEventSource(world{}, names, selecting("other", metav1.LabelSelector{}))
	for change, want := range map[fleet.Change][]string{
		fleet.ClusterChange{Cluster: "edge"}: {"names"},
		fleet.ClusterChange{Cluster: "core"}: nil,
		fleet.SelectionChange{}:              {"names", "other"},
		fleet.CompleteChange{}:               {"names", "other"},
	} {
		if got := all.enqueuedBy(t, change); !slices.Equal(got, want) {
			t.Errorf("%+v: the scopes %q are asked, want %q", change, got, want)
		}
	}
}
