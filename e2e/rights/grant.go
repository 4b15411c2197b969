package rights

import (
	"cmp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
)

// everyoneLabel marks, with the value everyoneValue, the roles and bindings that every API server makes for itself
// (https://kubernetes.io/docs/reference/access-authn-authz/rbac/#default-roles-and-role-bindings).
const (
	everyoneLabel = "kubernetes.io/bootstrapping"
	everyoneValue = "rbac-defaults"
)

// Grant is a right of an account: one verb for one resource, or for one URL.
type Grant struct {
	// Account is the ServiceAccount, as namespace/name.
	Account string
	// Role is the name of the Role or ClusterRole that grants the right.
	Role string
	// Everyone is true for what Kubernetes itself grants to every authenticated client, such as discovery.
	Everyone bool
	// Verb is a verb of RBAC, or * for all.
	Verb string
	// Group and Resource say what may be asked for, * being all; a subresource follows its resource after a slash. Both are
	// empty when URL is set.
	Group, Resource string
	// Namespace is where; empty for all namespaces and for what has none.
	Namespace string
	// Name is the one object that the right is for; empty for all.
	Name string
	// URL is a path outside of all resources; a * at its end stands for anything.
	URL string
}

// covers says whether the grant allows a request.
func (g Grant) covers(u Use) bool {
	if g.Account != u.Account || g.Verb != rbacv1.VerbAll && g.Verb != u.Verb {
		return false
	}
	if u.URL != "" {
		prefix, open := strings.CutSuffix(g.URL, "*")
		return g.URL == u.URL || open && strings.HasPrefix(u.URL, prefix)
	}
	return g.URL == "" &&
		(g.Group == rbacv1.APIGroupAll || g.Group == u.Group) &&
		(g.Resource == rbacv1.ResourceAll || g.Resource == u.Resource) &&
		(g.Namespace == "" || g.Namespace == u.Namespace) &&
		(g.Name == "" || g.Name == u.Name)
}

// wild says whether the grant is for more than can be named.
func (g Grant) wild() bool {
	return slices.ContainsFunc([]string{g.Verb, g.Group, g.Resource, g.URL}, func(s string) bool { return strings.Contains(s, "*") })
}

// String says in words what is granted, such as: shop/monitor may list apps/deployments everywhere (ClusterRole "x").
func (g Grant) String() string {
	return g.Account + " may " + words(g.Verb, g.Group, g.Resource, g.Namespace, g.Name, g.URL) + " (role " + g.Role + ")"
}

// words says what is done or may be done.
func words(verb, group, resource, namespace, name, url string) string {
	if url != "" {
		return verb + " " + url
	}
	if group == "" {
		group = "core"
	}
	text := verb + " " + group + "/" + resource
	if name != "" {
		text += " named " + name
	}
	if namespace == "" {
		return text + " everywhere"
	}
	return text + " in namespace " + namespace
}

// Policy is what an API server's RBAC decides by.
type Policy struct {
	// ClusterRoles are all of the cluster, with the rules of aggregated ones filled in.
	ClusterRoles []rbacv1.ClusterRole
	// Roles are those of all namespaces.
	Roles []rbacv1.Role
	// ClusterRoleBindings are all of the cluster.
	ClusterRoleBindings []rbacv1.ClusterRoleBinding
	// RoleBindings are those of all namespaces.
	RoleBindings []rbacv1.RoleBinding
}

// Grants returns the rights of a ServiceAccount, its own and those of its groups, in a fixed order.
func (p Policy) Grants(account types.NamespacedName) []Grant {
	var all []Grant
	for _, b := range p.ClusterRoleBindings {
		if binds(b.Subjects, account) {
			all = append(all, p.expand(b.RoleRef, "", Grant{Account: account.String(), Everyone: b.Labels[everyoneLabel] == everyoneValue})...)
		}
	}
	for _, b := range p.RoleBindings {
		if binds(b.Subjects, account) {
			all = append(all, p.expand(b.RoleRef, b.Namespace, Grant{Account: account.String(), Everyone: b.Labels[everyoneLabel] == everyoneValue})...)
		}
	}
	slices.SortFunc(all, func(a, b Grant) int { return cmp.Compare(a.String(), b.String()) })
	return slices.Compact(all)
}

// binds says whether a binding with these subjects is for an account, by its name or by one of its groups.
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

// expand returns one grant for each combination that the rules of a role allow in a namespace. A role that does not exist grants nothing.
func (p Policy) expand(ref rbacv1.RoleRef, namespace string, grant Grant) []Grant {
	grant.Role, grant.Namespace = ref.Name, namespace
	var all []Grant
	for _, rule := range p.rules(ref, namespace) {
		for _, verb := range rule.Verbs {
			grant.Verb = verb
			for _, url := range rule.NonResourceURLs {
				g := grant
				g.URL = url
				all = append(all, g)
			}
			all = append(all, resources(rule, grant)...)
		}
	}
	return all
}

// resources returns one grant for each group, resource and name of a rule.
func resources(rule rbacv1.PolicyRule, grant Grant) []Grant {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	var all []Grant
	for _, grant.Group = range rule.APIGroups {
		for _, grant.Resource = range rule.Resources {
			for _, grant.Name = range names {
				all = append(all, grant)
			}
		}
	}
	return all
}

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
