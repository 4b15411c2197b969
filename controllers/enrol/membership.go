package enrol

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet/kubeconfig"
)

// membership is the hub's Secret of a cluster.
type membership struct {
	*corev1.Secret

	// token is the token in the kubeconfig, and account what it belongs to; both are empty if they cannot be read.
	token   string
	account accountID
}

// path returns the name of the Secret with its namespace.
func (m membership) path() string { return m.Namespace + "/" + m.Name }

// memberships returns those of a cluster and those of others. A cluster has several if users have made them.
func memberships(ctx context.Context, hub client.Client, namespace, cluster string) (own, others []membership, err error) {
	var list corev1.SecretList
	err = hub.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{corev1alpha2.LabelClusterKubeconfig: "true"})
	if err != nil {
		return nil, nil, errors.Wrap(err, "hub: cannot find the Secrets of clusters")
	}
	for i := range list.Items {
		m := membership{Secret: &list.Items[i]}
		if token, err := kubeconfig.Token(m.Data[corev1alpha2.KubeconfigKey]); err == nil {
			m.token = token
			m.account, _ = accountOf(token) // A token of a user has no account.
		}
		if clusterOf(m.Secret) == cluster {
			own = append(own, m)
		} else {
			others = append(others, m)
		}
	}
	return own, others, nil
}

// clusterOf returns the name of the cluster that a Secret is for.
func clusterOf(s *corev1.Secret) string {
	if name := s.Annotations[corev1alpha2.AnnotationClusterName]; name != "" {
		return name
	}
	return s.Name
}

// checkNew returns an error if an enrolment would give a cluster a second name or Secret, or another cluster's. It returns the
// UID of the cluster; empty if it is not known.
func checkNew(ctx context.Context, c Clusters, e Enrolment, own, others []membership) (types.UID, error) {
	for _, m := range own {
		if m.Name != SecretName(e.Name) {
			return "", errors.Errorf("hub: Secret %q is of cluster %q already: delete it, or change it by hand", m.path(), e.Name)
		}
	}
	for _, m := range others {
		if m.Name == SecretName(e.Name) {
			return "", errors.Errorf("hub: Secret %q is of cluster %q: choose another name than %q", m.path(), clusterOf(m.Secret), e.Name)
		}
	}
	if err := checkOwnName(ctx, c.Hub, e); err != nil {
		return "", err
	}
	hub, err := clusterUID(ctx, c.Hub)
	if err != nil {
		return "", errors.Wrap(err, "hub")
	}
	uid, err := clusterUID(ctx, c.Member)
	if err != nil {
		return "", errors.Wrap(err, "member")
	}
	if sameUID(hub, uid) {
		return "", errors.Errorf("the cluster is the hub itself, which is its own member already: namespace %q has UID %s in both", metav1.NamespaceSystem, uid)
	}
	account, err := findAccount(ctx, c.Member)
	if err != nil {
		return "", err
	}
	for _, m := range others {
		if sameUID(uid, types.UID(m.Annotations[corev1alpha2.AnnotationClusterUID])) || sameUID(account.UID, m.account.uid) {
			return "", errors.Errorf("the cluster is a member already, by the name %q of Secret %q; to give it another name, remove that first", clusterOf(m.Secret), m.path())
		}
	}
	return uid, nil
}

// checkOwnName returns an error if a name is that of the hub's own cluster, which its controller publishes.
func checkOwnName(ctx context.Context, hub client.Client, e Enrolment) error {
	var published corev1.ConfigMap
	err := hub.Get(ctx, types.NamespacedName{Namespace: e.SecretNamespace, Name: ConfigMapName}, &published)
	if client.IgnoreNotFound(err) != nil && !apierrors.IsForbidden(err) {
		return errors.Wrapf(err, "hub: cannot read ConfigMap %q", e.SecretNamespace+"/"+ConfigMapName)
	}
	d, unreadable := decode(published.Data[documentKey])
	if err != nil || unreadable != nil {
		d.Clusters = []Cluster{{Name: configv1alpha1.DefaultClusterName, Local: true}}
	}
	for _, known := range d.Clusters {
		if known.Local && known.Name == e.Name {
			return errors.Errorf("%q is the name of the hub's own cluster: choose another, or change clusterName in the controller's configuration", e.Name)
		}
	}
	return nil
}

// clusterUID returns the UID that identifies a cluster: that of its namespace kube-system, which lasts as long as the cluster. It is
// empty if the user may not read the namespace.
func clusterUID(ctx context.Context, c client.Client) (types.UID, error) {
	var namespace corev1.Namespace
	err := c.Get(ctx, types.NamespacedName{Name: metav1.NamespaceSystem}, &namespace)
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return "", nil
	}
	return namespace.UID, errors.Wrapf(err, "cannot read namespace %q", metav1.NamespaceSystem)
}

// findAccount returns the hub's account in a member; without a UID if there is none.
func findAccount(ctx context.Context, member client.Client) (account corev1.ServiceAccount, err error) {
	err = member.Get(ctx, types.NamespacedName{Namespace: MemberNamespace, Name: AccountName}, &account)
	return account, errors.Wrapf(client.IgnoreNotFound(err), "member: cannot read serviceaccount/%s -n %s", AccountName, MemberNamespace)
}

// sameUID reports whether two UIDs are known and equal.
func sameUID(a, b types.UID) bool { return a != "" && a == b }
