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

// Clusters are the two clusters of an enrolment, each reached with the rights of the user who runs the command.
type Clusters struct {
	// Hub reads and writes the hub.
	Hub client.Client
	// Member reads and writes the member.
	Member client.Client
	// MemberConfig is how to reach the member: Add asks it for a token, Remove for all that is in the namespace.
	MemberConfig *rest.Config
	// Report is called after each change, or lack of one, of an object.
	Report func(Change)
}

func (c Clusters) hub() target    { return target{where: "hub", client: c.Hub, report: c.Report} }
func (c Clusters) member() target { return target{where: "member", client: c.Member, report: c.Report} }

// Add makes a cluster a member, or renews what is no longer right: the hub's
// account and rights in the member, and the hub's Secret. A cluster that is in the
// hub by another name, or is the hub, is refused before anything is made. A token that is still
// good stays. What it leaves undone when it fails, it does when it is called again.
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
	uid, err := checkNew(ctx, c, e, secrets)
	if err != nil {
		return err
	}
	account, err := applyMember(ctx, c.member(), e.MemberObjects())
	if err != nil {
		return err
	}
	token, ok := goodToken(secret, account, e.TokenLifetime, now)
	if !ok {
		if token, err = requestToken(ctx, c.MemberConfig, client.ObjectKeyFromObject(account), e.lifetime(), now); err != nil {
			return errors.Wrap(err, "member")
		}
	}
	want, err := e.Secret(token)
	if err != nil {
		return err
	}
	if uid != "" {
		want.Annotations[corev1alpha2.AnnotationClusterUID] = string(uid)
	}
	_, err = c.hub().apply(ctx, want)
	return err
}

// findSecret returns the hub's Secret of a cluster, or nil. There must be no other for that cluster, and it must be for no other cluster.
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

// applyMember makes what the hub needs in the member, deletes what an earlier call made and is needed no longer, and returns the hub's account.
func applyMember(ctx context.Context, t target, objects []client.Object) (client.Object, error) {
	var account client.Object
	wanted := map[string]bool{}
	for _, want := range objects {
		have, err := t.apply(ctx, want)
		if err != nil {
			return nil, err
		}
		if _, ok := have.(*corev1.ServiceAccount); ok {
			account = have
		}
		wanted[t.name(want)] = true
	}
	return account, t.prune(ctx, wanted)
}

// goodToken returns the token of a Secret if it is of the account as it is now, if it is not to be renewed yet, and if it is valid for as long as is asked for.
func goodToken(secret *corev1.Secret, account client.Object, lifetime time.Duration, now time.Time) (Token, bool) {
	if secret == nil {
		return Token{}, false
	}
	t, ok, err := tokenOf(secret)
	if !ok || err != nil || !now.Before(t.renewal(secret.UID)) || lifetime != 0 && lifetime != t.Lifetime {
		return Token{}, false
	}
	if t.Value, err = kubeconfig.Token(secret.Data[corev1alpha2.KubeconfigKey]); err != nil {
		return Token{}, false
	}
	name, uid, err := accountOf(t.Value)
	return t, err == nil && name == client.ObjectKeyFromObject(account) && isUID(uid, account.GetUID())
}

func isUID(a, b types.UID) bool { return a != "" && a == b }
