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

// checkNotEnrolled returns an error if a cluster is the hub itself, or a member by another name. It returns the cluster's UID.
func checkNotEnrolled(ctx context.Context, c Clusters, e Enrolment, secrets []corev1.Secret) (types.UID, error) {
	if err := checkOwnName(ctx, c.Hub, e); err != nil {
		return "", err
	}
	own, err := clusterUID(ctx, c.Hub)
	if err != nil {
		return "", errors.Wrap(err, "hub")
	}
	uid, err := clusterUID(ctx, c.Member)
	if err != nil {
		return "", errors.Wrap(err, "member")
	}
	if sameUID(own, uid) {
		return "", errors.Errorf("the cluster is the hub itself, which is its own member already: namespace %q has UID %s in both", metav1.NamespaceSystem, uid)
	}
	account, err := hubAccount(ctx, c.Member)
	if err != nil {
		return "", err
	}
	var others []corev1.Secret
	for i := range secrets {
		if s := secrets[i]; clusterOf(&s) != e.Name {
			others = append(others, s)
			if sameUID(uid, types.UID(s.Annotations[corev1alpha2.AnnotationClusterUID])) {
				return "", alreadyMember(&s)
			}
		}
	}
	if s := secretUsing(account, others); s != nil {
		return "", alreadyMember(s)
	}
	return uid, nil
}

func alreadyMember(s *corev1.Secret) error {
	return errors.Errorf("the cluster is a member already, by the name %q of Secret %q; to give it another name, remove that first", clusterOf(s), s.Namespace+"/"+s.Name)
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

// hubAccount returns the hub's account in a member; nil when there is none.
func hubAccount(ctx context.Context, member client.Client) (*corev1.ServiceAccount, error) {
	account := &corev1.ServiceAccount{}
	err := member.Get(ctx, types.NamespacedName{Namespace: MemberNamespace, Name: AccountName}, account)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // No account is no error.
	}
	return account, errors.Wrapf(err, "member: cannot read serviceaccount/%s -n %s", AccountName, MemberNamespace)
}

// secretUsing returns the first of some Secrets whose token belongs to an account; nil if there is none.
func secretUsing(account *corev1.ServiceAccount, secrets []corev1.Secret) *corev1.Secret {
	for i := range secrets {
		token, err := kubeconfig.Token(secrets[i].Data[corev1alpha2.KubeconfigKey])
		if err != nil || account == nil {
			continue // There is no token or no account to compare.
		}
		if _, uid, err := accountOf(token); err == nil && sameUID(uid, account.UID) {
			return &secrets[i]
		}
	}
	return nil
}
