package rights

import (
	"cmp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/auth/rbac/validation"
)

// bootstrappingLabel is the label, with the value bootstrapping, of the roles and bindings that every API server creates by
// default (https://kubernetes.io/docs/reference/access-authn-authz/rbac/#default-roles-and-role-bindings).
const (
	bootstrappingLabel = "kubernetes.io/bootstrapping"
	bootstrapping      = "rbac-defaults"
)

// Grant is a right of an account: one verb for one resource, or for one URL.
type Grant struct {
	// Account is the ServiceAccount, as namespace/name.
	Account string
	// Role is the name of the Role or ClusterRole that grants the right.
	Role string
	// Verb is a verb of RBAC, or * for all.
	Verb string
	// Group and Resource are the API group and the resource that may be requested, or * for all. A subresource follows its
	// resource after a slash. Both are empty if URL is set.
	Group, Resource string
	// Namespace is the namespace in which the right applies; empty for all namespaces, and for objects without a namespace.
	Namespace string
	// Name is the only object to which the right applies; empty for all objects.
	Name string
	// URL is a path of non-resource requests; a * at its end matches any suffix.
	URL string
}

// covers reports whether the grant allows a request. It does not expand wildcards.
func (g Grant) covers(u Use) bool {
	return g.Account == u.Account && g.Verb == u.Verb && g.Group == u.Group && g.Resource == u.Resource && g.URL == u.URL &&
		(g.Namespace == "" || g.Namespace == u.Namespace) && (g.Name == "" || g.Name == u.Name)
}

// wild reports whether the grant has a wildcard.
func (g Grant) wild() bool {
	return slices.ContainsFunc([]string{g.Verb, g.Group, g.Resource, g.URL}, func(s string) bool { return strings.Contains(s, "*") })
}

// String returns the grant in words, such as: shop/monitor may list apps/deployments everywhere (role x).
func (g Grant) String() string {
	what, where := cmp.Or(g.Group, "core")+"/"+g.Resource, " everywhere"
	if g.Name != "" {
		what += " named " + g.Name
	}
	if g.Namespace != "" {
		where = " in namespace " + g.Namespace
	}
	if g.URL != "" {
		what, where = g.URL, ""
	}
	return g.Account + " may " + g.Verb + " " + what + where + " (role " + g.Role + ")"
}

// Policy holds the objects by which the RBAC of an API server decides.
type Policy struct {
	// ClusterRoles are all ClusterRoles. Aggregated ones include their rules.
	ClusterRoles []rbacv1.ClusterRole
	// Roles are the Roles of all namespaces.
	Roles []rbacv1.Role
	// ClusterRoleBindings are all ClusterRoleBindings.
	ClusterRoleBindings []rbacv1.ClusterRoleBinding
	// RoleBindings are the RoleBindings of all namespaces.
	RoleBindings []rbacv1.RoleBinding
}

// Grants returns the rights of a ServiceAccount, including those of its groups, sorted. It leaves out the rights that Kubernetes
// grants by default, such as discovery for every authenticated client.
func (p Policy) Grants(account types.NamespacedName) []Grant {
	var all []Grant
	for _, b := range p.ClusterRoleBindings {
		if b.Labels[bootstrappingLabel] != bootstrapping && binds(b.Subjects, account) {
			all = append(all, p.expand(b.RoleRef, "", account)...)
		}
	}
	for _, b := range p.RoleBindings {
		if b.Labels[bootstrappingLabel] != bootstrapping && binds(b.Subjects, account) {
			all = append(all, p.expand(b.RoleRef, b.Namespace, account)...)
		}
	}
	slices.SortFunc(all, func(a, b Grant) int { return cmp.Compare(a.String(), b.String()) })
	return slices.Compact(all)
}

// binds reports whether the subjects of a binding include an account, by its name or by one of its groups.
func binds(subjects []rbacv1.Subject, account types.NamespacedName) bool {
	return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
		switch s.Kind {
		case rbacv1.ServiceAccountKind:
			return s.Namespace == account.Namespace && s.Name == account.Name
		case rbacv1.UserKind:
			return s.Name == userPrefix+account.Namespace+":"+account.Name
		default:
			return slices.Contains([]string{"system:authenticated", "system:serviceaccounts", "system:serviceaccounts:" + account.Namespace}, s.Name)
		}
	})
}

// expand returns one grant for each combination that the rules of a role allow in a namespace. A role that does not exist grants
// nothing.
func (p Policy) expand(ref rbacv1.RoleRef, namespace string, account types.NamespacedName) []Grant {
	var all []Grant
	for _, rule := range p.rules(ref, namespace) {
		for _, r := range validation.BreakdownRule(rule) {
			all = append(all, Grant{
				Account: account.String(), Role: ref.Name, Verb: only(r.Verbs), Group: only(r.APIGroups), Resource: only(r.Resources),
				Namespace: namespace, Name: only(r.ResourceNames), URL: only(r.NonResourceURLs),
			})
		}
	}
	return all
}

// only returns the element of a list of one; empty for an empty list.
func only(list []string) string { return strings.Join(list, "") }

// rules returns the rules of a role.
func (p Policy) rules(ref rbacv1.RoleRef, namespace string) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, r := range p.ClusterRoles {
		if ref.Kind == "ClusterRole" && r.Name == ref.Name {
			rules = append(rules, r.Rules...)
		}
	}
	for _, r := range p.Roles {
		if ref.Kind == "Role" && r.Name == ref.Name && r.Namespace == namespace {
			rules = append(rules, r.Rules...)
		}
	}
	return rules
}
