package enrol

import (
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
	objects := append(accountObjects(e.monitorNamespace()), bundleObjects(e.Namespaces)...)
	objects = append(objects, probeObjects(e.ProbeNamespaces)...)
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
	lease := rbacv1.PolicyRule{APIGroups: []string{coordinationv1.GroupName}, Resources: []string{"leases"}, ResourceNames: []string{monitorLease}, Verbs: listAndWatch}
	token := rbacv1.PolicyRule{APIGroups: []string{corev1.GroupName}, Resources: []string{"serviceaccounts/token"}, ResourceNames: []string{AccountName}, Verbs: []string{"create"}}
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: managedMeta("", MemberNamespace)},
		&corev1.ServiceAccount{ObjectMeta: managedMeta(MemberNamespace, AccountName)},
	}
	if monitorNamespace == MemberNamespace {
		return append(objects, roleAndBinding(MemberNamespace, AccountName, lease, token)...)
	}
	return append(append(objects, roleAndBinding(MemberNamespace, AccountName, token)...), roleAndBinding(monitorNamespace, AccountName, lease)...)
}

// bundleObjects returns what a hub needs to read bundles, and what scopes refer to, in namespaces, or in all when there are none.
func bundleObjects(namespaces []string) []client.Object {
	objects := []client.Object{aggregatingRole(kindsRole, labelKinds)}
	bundles := rbacv1.PolicyRule{APIGroups: []string{k8spluginv1alpha1.GroupVersion.Group}, Resources: []string{"resourcebundlestates"}, Verbs: listAndWatch}
	if len(namespaces) == 0 {
		return append(objects,
			&rbacv1.ClusterRole{ObjectMeta: managedMeta("", bundlesRole), Rules: []rbacv1.PolicyRule{bundles}},
			clusterRoleBinding(bundlesRole),
			clusterRoleBinding(kindsRole),
		)
	}
	for _, namespace := range namespaces {
		objects = append(append(objects, roleAndBinding(namespace, bundlesRole, bundles)...), roleBinding(namespace, "ClusterRole", kindsRole))
	}
	return objects
}

// workloadRules let a hub read workloads, and the pods that cause their states.
func workloadRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{appsv1.GroupName}, Resources: []string{"daemonsets", "deployments", "replicasets", "statefulsets"}, Verbs: listAndWatch},
		{APIGroups: []string{batchv1.GroupName}, Resources: []string{"cronjobs", "jobs"}, Verbs: listAndWatch},
		{APIGroups: []string{corev1.GroupName}, Resources: []string{"pods"}, Verbs: []string{"list"}},
	}
}

// oamRules let a hub read workloads of OAM, Applications of KubeVela, and what both lead to.
func oamRules() []rbacv1.PolicyRule {
	return append([]rbacv1.PolicyRule{
		{APIGroups: []string{corev1alpha2.GroupVersion.Group}, Resources: []string{"applications", "containerizedworkloads"}, Verbs: listAndWatch},
		{APIGroups: []string{"standard.oam.dev"}, Resources: []string{"podspecworkloads"}, Verbs: listAndWatch},
		{APIGroups: []string{corev1.GroupName}, Resources: []string{"services"}, Verbs: listAndWatch},
	}, workloadRules()...)
}

var listAndWatch = []string{"list", "watch"}

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

// probeObjects returns what a hub needs to probe the Services of namespaces.
func probeObjects(namespaces []string) (objects []client.Object) {
	for _, namespace := range namespaces {
		objects = append(objects, roleAndBinding(namespace, probesRole,
			rbacv1.PolicyRule{APIGroups: []string{corev1.GroupName}, Resources: []string{"services"}, Verbs: listAndWatch},
			rbacv1.PolicyRule{APIGroups: []string{corev1.GroupName}, Resources: []string{"services/proxy"}, Verbs: []string{"get"}},
		)...)
	}
	return objects
}

// deployObjects returns what a hub needs to apply AppContexts in namespaces, or in all when there are none.
func deployObjects(namespaces []string) []client.Object {
	apply := []string{"create", "delete", "get", "patch"}
	applyAndWatch := append([]string{"watch"}, apply...) // For kinds of hooks, on which it waits.
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{corev1.GroupName}, Resources: []string{"configmaps", "persistentvolumeclaims", "secrets", "serviceaccounts", "services"}, Verbs: apply},
		{APIGroups: []string{corev1.GroupName}, Resources: []string{"pods"}, Verbs: applyAndWatch},
		{APIGroups: []string{appsv1.GroupName}, Resources: []string{"daemonsets", "deployments", "statefulsets"}, Verbs: applyAndWatch},
		{APIGroups: []string{batchv1.GroupName}, Resources: []string{"jobs"}, Verbs: applyAndWatch},
		{APIGroups: []string{batchv1.GroupName}, Resources: []string{"cronjobs"}, Verbs: apply},
		{APIGroups: []string{autoscalingv2.GroupName}, Resources: []string{"horizontalpodautoscalers"}, Verbs: apply},
		{APIGroups: []string{networkingv1.GroupName}, Resources: []string{"ingresses", "networkpolicies"}, Verbs: apply},
		{APIGroups: []string{policyv1.GroupName}, Resources: []string{"poddisruptionbudgets"}, Verbs: apply},
		{APIGroups: []string{k8spluginv1alpha1.GroupVersion.Group}, Resources: []string{"resourcebundlestates"}, Verbs: apply},
	}
	objects := []client.Object{aggregatedRole(deployRole, labelDeployKinds, rules), aggregatingRole(deployKindsRole, labelDeployKinds)}
	if len(namespaces) == 0 {
		return append(objects, clusterRoleBinding(deployKindsRole))
	}
	for _, namespace := range namespaces {
		objects = append(objects, roleBinding(namespace, "ClusterRole", deployKindsRole))
	}
	return objects
}

// roleAndBinding returns a Role with rules, and its binding to the hub's account.
func roleAndBinding(namespace, name string, rules ...rbacv1.PolicyRule) []client.Object {
	return []client.Object{&rbacv1.Role{ObjectMeta: managedMeta(namespace, name), Rules: rules}, roleBinding(namespace, "Role", name)}
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

// roleBinding binds the hub's account to a role in a namespace.
func roleBinding(namespace, kind, role string) client.Object {
	return &rbacv1.RoleBinding{ObjectMeta: managedMeta(namespace, role), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role}, Subjects: hubSubjects()}
}

// clusterRoleBinding binds the hub's account to a role in all namespaces.
func clusterRoleBinding(role string) client.Object {
	return &rbacv1.ClusterRoleBinding{ObjectMeta: managedMeta("", role), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}, Subjects: hubSubjects()}
}

func hubSubjects() []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: MemberNamespace, Name: AccountName}}
}
