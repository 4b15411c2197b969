package monitor

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

func TestMembership(t *testing.T) {
	t.Parallel()
	m := membership{keys: []string{"emco/deployment-id", "k8splugin.io/rb-instance-id"}}
	matching := func(labels map[string]string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: labels}
	}
	cases := map[string]struct {
		reason     string
		selector   *metav1.LabelSelector
		wantClaims []selectorKey
		wanted     []labels.Set
		unwanted   []labels.Set
	}{
		"NoSelector": {
			reason: "A bundle without a selector is taken by its name.",
			wantClaims: []selectorKey{
				{"ns", "emco/deployment-id", "1-sink"},
				{"ns", "k8splugin.io/rb-instance-id", "1-sink"},
			},
			wanted: []labels.Set{{"emco/deployment-id": "1-sink"}, {"k8splugin.io/rb-instance-id": "1-sink"}},
		},
		"SelectorEqualsName": {
			reason:     "This is what EMCO writes.",
			selector:   matching(map[string]string{"emco/deployment-id": "1-sink"}),
			wantClaims: []selectorKey{{"ns", "emco/deployment-id", "1-sink"}},
			wanted:     []labels.Set{{"emco/deployment-id": "1-sink", "app": "sink"}},
			unwanted:   []labels.Set{{"emco/deployment-id": "1-other"}},
		},
		"SelectorDiffersFromName": {
			reason:     "The selector wins: it says which objects belong to the bundle.",
			selector:   matching(map[string]string{"emco/deployment-id": "2-source"}),
			wantClaims: []selectorKey{{"ns", "emco/deployment-id", "2-source"}},
			wanted:     []labels.Set{{"emco/deployment-id": "2-source"}},
			unwanted:   []labels.Set{{"emco/deployment-id": "1-sink"}},
		},
		"SecondKey": {
			reason:     "Each configured key may tie objects to a bundle.",
			selector:   matching(map[string]string{"k8splugin.io/rb-instance-id": "gentle_fox"}),
			wantClaims: []selectorKey{{"ns", "k8splugin.io/rb-instance-id", "gentle_fox"}},
			wanted:     []labels.Set{{"k8splugin.io/rb-instance-id": "gentle_fox"}},
		},
		"MoreLabels": {
			reason:     "The other labels of the selector must match too.",
			selector:   matching(map[string]string{"emco/deployment-id": "1-sink", "tier": "front"}),
			wantClaims: []selectorKey{{"ns", "emco/deployment-id", "1-sink"}},
			wanted:     []labels.Set{{"emco/deployment-id": "1-sink", "tier": "front"}},
			unwanted:   []labels.Set{{"emco/deployment-id": "1-sink"}, {"emco/deployment-id": "1-sink", "tier": "back"}},
		},
		"BothKeys": {
			reason:     "A selector is a conjunction.",
			selector:   matching(map[string]string{"emco/deployment-id": "1-sink", "k8splugin.io/rb-instance-id": "x"}),
			wantClaims: []selectorKey{{"ns", "emco/deployment-id", "1-sink"}},
			wanted:     []labels.Set{{"emco/deployment-id": "1-sink", "k8splugin.io/rb-instance-id": "x"}},
			unwanted:   []labels.Set{{"emco/deployment-id": "1-sink"}},
		},
		"OtherLabelOnly": {
			reason:   "A selector that names no configured key cannot be followed; the name counts.",
			selector: matching(map[string]string{"app": "sink"}),
			wantClaims: []selectorKey{
				{"ns", "emco/deployment-id", "1-sink"},
				{"ns", "k8splugin.io/rb-instance-id", "1-sink"},
			},
			wanted: []labels.Set{{"emco/deployment-id": "1-sink"}},
		},
		"UnknownOperator": {
			reason: "A selector that Kubernetes does not understand selects nothing.",
			selector: &metav1.LabelSelector{
				MatchLabels:      map[string]string{"emco/deployment-id": "1-sink"},
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: "Near", Values: []string{"front"}}},
			},
			wantClaims: []selectorKey{{"ns", "emco/deployment-id", "1-sink"}},
			unwanted:   []labels.Set{{"emco/deployment-id": "1-sink"}, {"emco/deployment-id": "1-sink", "tier": "front"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &k8spluginv1alpha1.ResourceBundleState{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "1-sink"},
				Spec:       k8spluginv1alpha1.ResourceBundleStateSpec{Selector: tc.selector},
			}
			if diff := cmp.Diff(tc.wantClaims, m.selectorKeys(b), cmp.AllowUnexported(selectorKey{})); diff != "" {
				t.Errorf("%s claims differ (-want +got):\n%s", tc.reason, diff)
			}
			selector := m.wanted(b)
			for _, set := range tc.wanted {
				if !selector.Matches(set) {
					t.Errorf("%s An object with labels %v does not belong to the bundle, want that it does.", tc.reason, set)
				}
			}
			for _, set := range tc.unwanted {
				if selector.Matches(set) {
					t.Errorf("%s An object with labels %v belongs to the bundle, want that it does not.", tc.reason, set)
				}
			}
		})
	}
}
