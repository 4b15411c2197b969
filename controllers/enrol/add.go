package enrol

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet/kubeconfig"
)

// Clusters are the two clusters of an enrolment. The clients have the rights of the user who runs the command.
type Clusters struct {
	// Hub reads and writes the hub.
	Hub client.Client
	// Member reads and writes the member.
	Member client.Client
	// MemberConfig is the client configuration for the member: Add requests a token, and Remove lists the contents of the namespace.
	MemberConfig *rest.Config
	// Report is called for each object, after it was changed or found unchanged.
	Report func(Change)
}

func (c Clusters) hub() target    { return target{where: "hub", client: c.Hub, report: c.Report} }
func (c Clusters) member() target { return target{where: "member", client: c.Member, report: c.Report} }

// Add makes a cluster a member, or updates what differs: the hub's account and
// rights in the member, and the hub's Secret. It rejects a cluster that is a member
// by another name, or is the hub, before it creates anything. It keeps a token that
// need not be renewed. After an error, call it again to complete the enrolment.
func Add(ctx context.Context, c Clusters, e Enrolment, now time.Time) error {
	if err := e.Validate(); err != nil {
		return err
	}
	secrets, err := clusterSecrets(ctx, c.Hub, e.SecretNamespace)
	if err != nil {
		return err
	}
	secret, err := findSecret(secrets, e)
	if err != nil {
		return err
	}
	uid, err := checkNotEnrolled(ctx, c, e, secrets)
	if err != nil {
		return err
	}
	account, err := applyMember(ctx, c.member(), e.MemberObjects())
	if err != nil {
		return err
	}
	token, ok := reusableToken(secret, account, e.TokenLifetime, now)
	if !ok {
		if token, err = requestToken(ctx, c.MemberConfig, client.ObjectKeyFromObject(account), e.lifetime(), now); err != nil {
			return errors.Wrap(err, "member")
		}
	}
	desired, err := e.Secret(token)
	if err != nil {
		return err
	}
	if uid != "" {
		desired.Annotations[corev1alpha2.AnnotationClusterUID] = string(uid)
	}
	_, err = c.hub().apply(ctx, desired)
	return err
}

// findSecret returns the hub's Secret of a cluster, or nil. It is an error if the cluster has a Secret of another name, or if its
// Secret is that of another cluster.
func findSecret(secrets []corev1.Secret, e Enrolment) (*corev1.Secret, error) {
	var found *corev1.Secret
	for i := range secrets {
		s := &secrets[i]
		switch {
		case clusterOf(s) == e.Name && s.Name != SecretName(e.Name):
			return nil, errors.Errorf("hub: Secret %q is of cluster %q already: delete it, or change it by hand", s.Namespace+"/"+s.Name, e.Name)
		case clusterOf(s) != e.Name && s.Name == SecretName(e.Name):
			return nil, errors.Errorf("hub: Secret %q is of cluster %q: choose another name than %q", s.Namespace+"/"+s.Name, clusterOf(s), e.Name)
		case clusterOf(s) == e.Name:
			found = s
		}
	}
	return found, nil
}

// clusterSecrets returns the Secrets of all clusters.
func clusterSecrets(ctx context.Context, hub client.Client, namespace string) ([]corev1.Secret, error) {
	var list corev1.SecretList
	err := hub.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{corev1alpha2.LabelClusterKubeconfig: "true"})
	return list.Items, errors.Wrap(err, "hub: cannot find the Secrets of clusters")
}

// applyMember applies the objects that the hub needs in the member, deletes those that an earlier call created and that are no
// longer needed, and returns the hub's account.
func applyMember(ctx context.Context, t target, objects []client.Object) (client.Object, error) {
	var account client.Object
	keep := map[string]bool{}
	for _, desired := range objects {
		existing, err := t.apply(ctx, desired)
		if err != nil {
			return nil, err
		}
		if _, ok := existing.(*corev1.ServiceAccount); ok {
			account = existing
		}
		keep[t.name(desired)] = true
	}
	return account, t.prune(ctx, keep)
}

// reusableToken returns the token of a Secret if it belongs to the current account, is not due for renewal, and has the requested
// lifetime.
func reusableToken(secret *corev1.Secret, account client.Object, lifetime time.Duration, now time.Time) (Token, bool) {
	if secret == nil {
		return Token{}, false
	}
	t, ok, err := tokenFromAnnotations(secret)
	if !ok || err != nil || !now.Before(t.renewalTime(secret.UID)) || lifetime != 0 && lifetime != t.Lifetime {
		return Token{}, false
	}
	if t.Value, err = kubeconfig.Token(secret.Data[corev1alpha2.KubeconfigKey]); err != nil {
		return Token{}, false
	}
	name, uid, err := accountOf(t.Value)
	return t, err == nil && name == client.ObjectKeyFromObject(account) && sameUID(uid, account.GetUID())
}

func sameUID(a, b types.UID) bool { return a != "" && a == b }
