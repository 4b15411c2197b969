package rights

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestGrantsAreThoseOfTheAccountAndItsGroups(t *testing.T) {
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	rule := func(verb, group, resource string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: names}
	}
	account := func(name string) rbacv1.Subject {
		return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "shop", Name: name}
	}
	group := func(name string) rbacv1.Subject { return rbacv1.Subject{Kind: rbacv1.GroupKind, Name: name} }
	to := func(kind, name string) rbacv1.RoleRef { return rbacv1.RoleRef{Kind: kind, Name: name} }
	byKubernetes := metav1.ObjectMeta{Name: "system:discovery", Labels: map[string]string{bootstrappingLabel: bootstrapping}}
	policy := Policy{
		ClusterRoles: []rbacv1.ClusterRole{
			{ObjectMeta: meta("", "reader"), Rules: []rbacv1.PolicyRule{{Verbs: []string{"list", "watch"}, APIGroups: []string{"apps"}, Resources: []string{"deployments", "deployments/status"}}}},
			{ObjectMeta: meta("", "writer"), Rules: []rbacv1.PolicyRule{rule("update", "", "configmaps")}},
			{ObjectMeta: meta("", "lease"), Rules: []rbacv1.PolicyRule{rule("get", "", "trap")}},
			{ObjectMeta: meta("", "scraper"), Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics"}}}},
			{ObjectMeta: byKubernetes, Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, NonResourceURLs: []string{"/apis", "/apis/*"}}}},
		},
		Roles: []rbacv1.Role{
			{ObjectMeta: meta("shop", "lease"), Rules: []rbacv1.PolicyRule{rule("get", "coordination.k8s.io", "leases", "a", "b")}},
			{ObjectMeta: meta("other", "lease"), Rules: []rbacv1.PolicyRule{rule("get", "", "trap")}},
			{ObjectMeta: meta("store", "writer"), Rules: []rbacv1.PolicyRule{rule("get", "", "trap")}},
			{ObjectMeta: meta("shop", "reader"), Rules: []rbacv1.PolicyRule{rule("get", "", "trap")}},
		},
		ClusterRoleBindings: []rbacv1.ClusterRoleBinding{
			{ObjectMeta: meta("", "reader"), RoleRef: to("ClusterRole", "reader"), Subjects: []rbacv1.Subject{account("controller"), account("monitor")}},
			{ObjectMeta: meta("", "writer"), RoleRef: to("ClusterRole", "writer"), Subjects: []rbacv1.Subject{account("controller"), {Kind: rbacv1.ServiceAccountKind, Namespace: "other", Name: "monitor"}}},
			{ObjectMeta: meta("", "scraper"), RoleRef: to("ClusterRole", "scraper"), Subjects: []rbacv1.Subject{group("system:authenticated")}},
			{ObjectMeta: byKubernetes, RoleRef: to("ClusterRole", "system:discovery"), Subjects: []rbacv1.Subject{group("system:authenticated")}},
			{ObjectMeta: meta("", "gone"), RoleRef: to("ClusterRole", "gone"), Subjects: []rbacv1.Subject{account("monitor")}},
		},
		RoleBindings: []rbacv1.RoleBinding{
			{ObjectMeta: meta("shop", "lease"), RoleRef: to("Role", "lease"), Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: "system:serviceaccount:shop:monitor"}}},
			{ObjectMeta: meta("store", "writer"), RoleRef: to("ClusterRole", "writer"), Subjects: []rbacv1.Subject{group("system:serviceaccounts:shop")}},
			{ObjectMeta: meta("store", "reader"), RoleRef: to("ClusterRole", "reader"), Subjects: []rbacv1.Subject{group("system:serviceaccounts:other"), group("system:masters")}},
		},
	}
	var got []string
	for _, g := range policy.Grants(types.NamespacedName{Namespace: "shop", Name: "monitor"}) {
		got = append(got, g.String())
	}
	want := []string{
		"shop/monitor may get /metrics (role scraper)",
		"shop/monitor may get coordination.k8s.io/leases named a in namespace shop (role lease)",
		"shop/monitor may get coordination.k8s.io/leases named b in namespace shop (role lease)",
		"shop/monitor may list apps/deployments everywhere (role reader)",
		"shop/monitor may list apps/deployments/status everywhere (role reader)",
		"shop/monitor may update core/configmaps in namespace store (role writer)",
		"shop/monitor may watch apps/deployments everywhere (role reader)",
		"shop/monitor may watch apps/deployments/status everywhere (role reader)",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("grants (-want +got):\n%s", diff)
	}
}
