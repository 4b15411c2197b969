package monitor

import (
	"cmp"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/healthscope/healthscope/controllers/observe"
)

// cluster contains the responses of a discovery client.
type cluster struct {
	resources map[string][]metav1.APIResource
	err       error
	groups    []string
	groupsErr error
}

func (c cluster) ServerResourcesForGroupVersion(gv string) (*metav1.APIResourceList, error) {
	if c.err != nil {
		return nil, c.err
	}
	return &metav1.APIResourceList{GroupVersion: gv, APIResources: c.resources[gv]}, nil
}

func (c cluster) ServerGroups() (*metav1.APIGroupList, error) {
	list := &metav1.APIGroupList{}
	for _, gv := range c.groups {
		list.Groups = append(list.Groups, metav1.APIGroup{Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: gv}}})
	}
	return list, c.groupsErr
}

func TestSourceFindsResource(t *testing.T) {
	t.Parallel()
	readable := metav1.Verbs{"get", "list", "watch"}
	notFound := apierrors.NewNotFound(schema.GroupResource{}, "")
	cases := map[string]struct {
		reason string
		// kind is Widget if it is empty.
		kind      string
		cluster   cluster
		want      string
		wantError string
		wantGone  bool
	}{
		"Served": {
			reason: "The resource is the one that is no subresource.",
			cluster: cluster{resources: map[string][]metav1.APIResource{"example.io/v1": {
				{Name: "widgets/scale", Kind: "Widget", Namespaced: true, Verbs: readable},
				{Name: "widgets", Kind: "Widget", Namespaced: true, Verbs: readable},
			}}},
			want: "widgets",
		},
		"OtherKindsOnly": {
			reason: "The API version is there, the kind is not.",
			cluster: cluster{resources: map[string][]metav1.APIResource{"example.io/v1": {
				{Name: "gadgets", Kind: "Gadget", Namespaced: true, Verbs: readable},
			}}},
			wantError: "does not serve", wantGone: true,
		},
		"ClusterScoped": {
			reason: "A cluster-scoped object is in nobody's namespace.",
			cluster: cluster{resources: map[string][]metav1.APIResource{"example.io/v1": {
				{Name: "widgets", Kind: "Widget", Verbs: readable},
			}}},
			wantError: "trusted namespaces only", wantGone: true,
		},
		"CannotBeWatched": {
			reason: "Nothing is polled.",
			cluster: cluster{resources: map[string][]metav1.APIResource{"example.io/v1": {
				{Name: "widgets", Kind: "Widget", Namespaced: true, Verbs: metav1.Verbs{"list"}},
			}}},
			wantError: "can be listed and watched", wantGone: true,
		},
		"NamedStatus": {
			reason: "client-go loses what is in the objects.",
			kind:   "Status",
			cluster: cluster{resources: map[string][]metav1.APIResource{"example.io/v1": {
				{Name: "statuses", Kind: "Status", Namespaced: true, Verbs: readable},
			}}},
			wantError: "named Status", wantGone: true,
		},
		"NoSuchGroup": {
			reason:    "No group of the cluster has the kind's version.",
			cluster:   cluster{err: notFound, groups: []string{"apps/v1", "example.io/v2"}},
			wantError: "does not serve", wantGone: true,
		},
		"NotFoundThoughServed": {
			reason:    "A 404 for a version that is served is a fault on the way.",
			cluster:   cluster{err: notFound, groups: []string{"example.io/v1"}},
			wantError: `"example.io/v1"`,
		},
		"NotFoundAndNoGroups": {
			reason:    "A 404 proves nothing while the groups are not known.",
			cluster:   cluster{err: notFound, groupsErr: notFound},
			wantError: "cannot discover API groups",
		},
		"EmptyList": {
			reason:    "The client turns a 404 for the core group into an empty list.",
			cluster:   cluster{},
			wantError: "is empty",
		},
		"Unreachable": {
			reason:    "A failure on the way is no answer.",
			cluster:   cluster{err: errors.New("connection reset")},
			wantError: "connection reset",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := source{place: place{kind: schema.GroupVersionKind{Group: "example.io", Version: "v1", Kind: cmp.Or(tc.kind, "Widget")}}, kinds: tc.cluster}.resource()
			if got.Resource != tc.want {
				t.Errorf("%s resource() = %q, want %q", tc.reason, got.Resource, tc.want)
			}
			if tc.wantError == "" {
				if err != nil {
					t.Errorf("%s resource(): %v", tc.reason, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.wantError) {
				t.Fatalf("%s error is %v, want one with %q", tc.reason, err, tc.wantError)
			}
			if got := errors.Is(err, observe.ErrNotServed) || errors.Is(err, observe.ErrUnsuitable); got != tc.wantGone {
				t.Errorf("%s %q says that the kind is gone: %t, want %t", tc.reason, err, got, tc.wantGone)
			}
		})
	}
}
