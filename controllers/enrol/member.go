package enrol

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

// Names of the objects that a hub has in a member. The manifests in config/rbac/member have the same.
const (
	// MemberNamespace is the namespace of the hub's account in a member, and by default of the monitor there.
	MemberNamespace = "healthscope-system"
	// AccountName is the name of the hub's ServiceAccount, and of the Roles for what it needs in MemberNamespace and in the monitor's namespace.
	AccountName = "healthscope-hub"
	// bundlesRole is the name of the role by which the hub reads bundles.
	bundlesRole = "healthscope-hub-bundles"
	// kindsRole is the name of the aggregated role by which the hub reads what scopes refer to directly.
	kindsRole = "healthscope-hub-kinds"
	// workloadsRole is the name of the role for the workloads that scopes select by labels. It is part of kindsRole.
	workloadsRole = "healthscope-hub-workloads"
	// oamRole is the name of the role for workloads of OAM and what they lead to. It is part of kindsRole.
	oamRole = "healthscope-hub-oam"
	// probesRole is the name of the role by which the hub probes Services.
	probesRole = "healthscope-hub-probes"
	// deployRole is the name of the role by which the hub applies AppContexts, and deployKindsRole that of the aggregated role which it
	// is part of.
	deployRole      = "healthscope-hub-deploy"
	deployKindsRole = "healthscope-hub-deploy-kinds"
	// monitorLease is the name of the Lease of the monitor that is active.
	monitorLease = "healthscope-monitor"
)

const (
	// LabelManagedBy says, with the value ManagedBy, that an object was made by this package
	// (https://kubernetes.io/docs/concepts/overview/working-with-objects/common-labels/). What has no such label is not deleted.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// ManagedBy is the value of LabelManagedBy.
	ManagedBy = "healthscope"
)

// labelKinds marks the ClusterRoles whose rules Kubernetes adds to the aggregated roles of controller and hub.
const labelKinds = "healthscope.core.oam.dev/aggregate-to-controller"

// labelDeployKinds marks the ClusterRoles for the kinds that AppContexts may hold.
const labelDeployKinds = "healthscope.core.oam.dev/aggregate-to-deploy"

// MemberObjects returns what the hub needs in the member, in the order in which it must be created.
func (e Enrolment) MemberObjects() []client.Object {
	objects := slices.Concat(
		accountObjects(e.monitorNamespace()),
		[]client.Object{aggregatingRole(kindsRole, labelKinds)},
		grant(bundlesRole, e.Namespaces, rule(k8spluginv1alpha1.GroupVersion.Group, listAndWatch, "resourcebundlestates")),
		bindings(kindsRole, e.Namespaces),
	)
	if len(e.ProbeNamespaces) > 0 {
		objects = append(objects, grant(probesRole, e.ProbeNamespaces,
			rule(corev1.GroupName, listAndWatch, "services"), rule(corev1.GroupName, []string{"get"}, "services/proxy"))...)
	}
	if e.Workloads {
		objects = append(objects, aggregatedRole(workloadsRole, labelKinds, workloadRules()))
	}
	if e.OAM {
		objects = append(objects, aggregatedRole(oamRole, labelKinds, oamRules()))
	}
	if len(e.DeployNamespaces) > 0 {
		objects = append(objects, deployObjects(e.deployNamespaces())...)
	}
	return objects
}

// accountObjects returns the hub's account, with the right to renew its token and to watch the monitor's Lease. Another
// namespace of the monitor than MemberNamespace is not among them: the monitor's installation creates it.
func accountObjects(monitorNamespace string) []client.Object {
	token, lease := rule(corev1.GroupName, []string{"create"}, "serviceaccounts/token"), rule(coordinationv1.GroupName, listAndWatch, "leases")
	token.ResourceNames, lease.ResourceNames = []string{AccountName}, []string{monitorLease}
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: managedMeta("", MemberNamespace)},
		&corev1.ServiceAccount{ObjectMeta: managedMeta(MemberNamespace, AccountName)},
	}
	if monitorNamespace == MemberNamespace {
		return append(objects, grant(AccountName, []string{MemberNamespace}, lease, token)...)
	}
	return slices.Concat(objects, grant(AccountName, []string{MemberNamespace}, token), grant(AccountName, []string{monitorNamespace}, lease))
}

// workloadRules let a hub read workloads, and the pods that cause their states.
func workloadRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		rule(appsv1.GroupName, listAndWatch, "daemonsets", "deployments", "replicasets", "statefulsets"),
		rule(batchv1.GroupName, listAndWatch, "cronjobs", "jobs"),
		rule(corev1.GroupName, []string{"list"}, "pods"),
	}
}

// oamRules let a hub read workloads of OAM, Applications of KubeVela, and what both lead to.
func oamRules() []rbacv1.PolicyRule {
	return append([]rbacv1.PolicyRule{
		rule(corev1alpha2.GroupVersion.Group, listAndWatch, "applications", "containerizedworkloads"),
		rule("standard.oam.dev", listAndWatch, "podspecworkloads"),
		rule(corev1.GroupName, listAndWatch, "services"),
	}, workloadRules()...)
}

// deployObjects returns what a hub needs to apply AppContexts in namespaces, or in all when there are none.
func deployObjects(namespaces []string) []client.Object {
	apply := []string{"create", "delete", "get", "patch"}
	applyAndWatch := append([]string{"watch"}, apply...) // For kinds of hooks, on which it waits.
	rules := []rbacv1.PolicyRule{
		rule(corev1.GroupName, apply, "configmaps", "persistentvolumeclaims", "secrets", "serviceaccounts", "services"),
		rule(corev1.GroupName, applyAndWatch, "pods"),
		rule(appsv1.GroupName, applyAndWatch, "daemonsets", "deployments", "statefulsets"),
		rule(batchv1.GroupName, applyAndWatch, "jobs"),
		rule(batchv1.GroupName, apply, "cronjobs"),
		rule(autoscalingv2.GroupName, apply, "horizontalpodautoscalers"),
		rule(networkingv1.GroupName, apply, "ingresses", "networkpolicies"),
		rule(policyv1.GroupName, apply, "poddisruptionbudgets"),
		rule(k8spluginv1alpha1.GroupVersion.Group, apply, "resourcebundlestates"),
	}
	objects := []client.Object{aggregatedRole(deployRole, labelDeployKinds, rules), aggregatingRole(deployKindsRole, labelDeployKinds)}
	return append(objects, bindings(deployKindsRole, namespaces)...)
}

var listAndWatch = []string{"list", "watch"}

func rule(group string, verbs []string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
}

// grant returns a role with rules and its binding to the hub's account in each of some namespaces, or for all when there are none.
func grant(name string, namespaces []string, rules ...rbacv1.PolicyRule) (objects []client.Object) {
	if len(namespaces) == 0 {
		return append([]client.Object{&rbacv1.ClusterRole{ObjectMeta: managedMeta("", name), Rules: rules}}, bindings(name, nil)...)
	}
	for _, namespace := range namespaces {
		objects = append(objects, &rbacv1.Role{ObjectMeta: managedMeta(namespace, name), Rules: rules}, roleBinding(namespace, "Role", name))
	}
	return objects
}

// bindings returns the bindings of a ClusterRole to the hub's account in namespaces, or in all when there are none.
func bindings(role string, namespaces []string) (objects []client.Object) {
	if len(namespaces) == 0 {
		return []client.Object{&rbacv1.ClusterRoleBinding{ObjectMeta: managedMeta("", role), RoleRef: roleRef("ClusterRole", role), Subjects: hubSubjects()}}
	}
	for _, namespace := range namespaces {
		objects = append(objects, roleBinding(namespace, "ClusterRole", role))
	}
	return objects
}

func roleBinding(namespace, kind, role string) client.Object {
	return &rbacv1.RoleBinding{ObjectMeta: managedMeta(namespace, role), RoleRef: roleRef(kind, role), Subjects: hubSubjects()}
}

func roleRef(kind, name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
}

func hubSubjects() []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: MemberNamespace, Name: AccountName}}
}

// aggregatedRole returns a role that Kubernetes adds to the role that aggregates those with a label.
func aggregatedRole(name, label string, rules []rbacv1.PolicyRule) client.Object {
	role := &rbacv1.ClusterRole{ObjectMeta: managedMeta("", name), Rules: rules}
	role.Labels[label] = "true"
	return role
}

// aggregatingRole returns a role with the rules of all roles with a label.
func aggregatingRole(name, label string) client.Object {
	return &rbacv1.ClusterRole{ObjectMeta: managedMeta("", name), AggregationRule: &rbacv1.AggregationRule{
		ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{label: "true"}}},
	}}
}

// memberLists returns a list for each kind of MemberObjects, in the order in which they must be deleted. The namespace is not among
// them: it may hold objects of others.
func memberLists() []client.ObjectList {
	return []client.ObjectList{
		&rbacv1.ClusterRoleBindingList{}, &rbacv1.RoleBindingList{}, &rbacv1.ClusterRoleList{}, &rbacv1.RoleList{}, &corev1.ServiceAccountList{},
	}
}

// memberNames are the names of objects in memberLists.
var memberNames = []string{AccountName, bundlesRole, kindsRole, workloadsRole, oamRole, probesRole, deployRole, deployKindsRole}

func managedMeta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{LabelManagedBy: ManagedBy}}
}
