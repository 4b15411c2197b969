package chart

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// paths are the paths that the programs serve to callers with a token.
var paths = []string{
	"/metrics", "/debug/pprof/", "/debug/pprof/heap", "/aai/unsynced", "/v2/projects/retail/composite-apps/shop/v1/deployment-intent-groups/winter/status",
	"/v2/cluster-providers/provider/clusters/edge01/status", "/v1/instance/fervent_swartz/status",
}

// rolesForUsers checks with the API server what a user with each of the chart's roles may do.
func rolesForUsers(t *testing.T, api client.Client) {
	const scopes, bundles = "list healthscopes", "watch resourcebundlestates"
	all := map[string]authorizationv1.SubjectAccessReviewSpec{
		scopes:  {ResourceAttributes: &authorizationv1.ResourceAttributes{Group: "core.oam.dev", Resource: "healthscopes", Verb: "list"}},
		bundles: {ResourceAttributes: &authorizationv1.ResourceAttributes{Group: "k8splugin.io", Resource: "resourcebundlestates", Verb: "watch"}},
	}
	deploy, watch, instantiate := "/installapp/InstallApp", "/readyNotify/Alert", "/v2/projects/retail/composite-apps/shop/v1/deployment-intent-groups/winter/instantiate"
	for path, verb := range map[string]string{deploy: "deploy", watch: "watch", instantiate: "deploy"} {
		all[path] = authorizationv1.SubjectAccessReviewSpec{NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: verb}}
	}
	for _, path := range paths {
		all[path] = authorizationv1.SubjectAccessReviewSpec{NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: "get"}}
	}
	for role, want := range map[string][]string{
		"healthscope-metrics-reader":  paths[:1],
		"healthscope-profiler":        paths[1:3],
		"healthscope-unsynced-reader": paths[3:4],
		"healthscope-status-reader":   append(slices.Clone(paths[4:]), scopes),
		"healthscope-deployer":        {deploy, watch, instantiate},
		"healthscope-viewer":          {scopes},
		"healthscope-bundle-viewer":   {bundles},
	} {
		bind(t, api, role)
		for _, what := range want {
			mayAtLast(t, api, role, all[what])
		}
		for what, spec := range all {
			if allowed, err := mayUser(t.Context(), api, role, spec); err != nil || allowed != slices.Contains(want, what) {
				t.Errorf("%s: %s: allowed: %t, %v", role, what, allowed, err)
			}
		}
	}
}

// rightsOfMetricsReader checks that the chart's role for Prometheus grants exactly what Prometheus may do.
func rightsOfMetricsReader(t *testing.T, api client.Client) {
	var role rbacv1.ClusterRole
	if err := api.Get(t.Context(), client.ObjectKey{Name: "healthscope-metrics-reader"}, &role); err != nil {
		t.Fatal(err)
	}
	want := []rbacv1.PolicyRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics"}}}
	if diff := cmp.Diff(want, role.Rules); diff != "" || role.AggregationRule != nil {
		t.Errorf("rules of %s, which aggregates %v, -want +got:\n%s", role.Name, role.AggregationRule, diff)
	}
}

// bind grants a ClusterRole to a user of the same name.
func bind(t *testing.T, api client.Client, role string) {
	t.Helper()
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "user-of-" + role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: role}},
	}
	if err := api.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
}

// mayAtLast waits until a user may do something, because the API server notices a new binding after a short delay.
func mayAtLast(t *testing.T, api client.Client, user string, spec authorizationv1.SubjectAccessReviewSpec) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 10*time.Second, true, func(ctx context.Context) (bool, error) {
		return mayUser(ctx, api, user, spec)
	})
	if err != nil {
		t.Errorf("%s: %s: %v", user, &spec, err)
	}
}

// mayUser reports whether a user may do something.
func mayUser(ctx context.Context, api client.Client, user string, spec authorizationv1.SubjectAccessReviewSpec) (bool, error) {
	spec.User = user
	review := &authorizationv1.SubjectAccessReview{Spec: spec}
	err := api.Create(ctx, review)
	return review.Status.Allowed, err
}
