package enrol

import (
	"context"
	"fmt"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet/kubeconfig"
)

// MemberLeftError says that a cluster is no member any more, and that something of the hub's may be left in it.
type MemberLeftError struct {
	// Cluster is its name.
	Cluster string
	// Cause is why it could not be removed.
	Cause error
}

// Error implements error.
func (e *MemberLeftError) Error() string {
	return fmt.Sprintf("the hub has forgotten cluster %q, but what it had there is not all deleted: %v; give the same command again once the cluster can be reached", e.Cluster, e.Cause)
}

// Unwrap returns the cause.
func (e *MemberLeftError) Unwrap() error { return e.Cause }

// Remove makes a cluster be no member any more: it deletes the hub's Secret
// first, and then, unless Clusters.Member is nil, what Add has made in the
// member. That the member is the one of the Secret is checked, where both can be read.
func Remove(ctx context.Context, c Clusters, cluster, secretNamespace string) error {
	all, err := clusterSecrets(ctx, c.Hub, secretNamespace)
	if err != nil {
		return err
	}
	var secrets []*corev1.Secret
	for i := range all {
		if clusterOf(&all[i]) == cluster {
			secrets = append(secrets, &all[i])
		}
	}
	if len(secrets) == 0 && c.Member == nil {
		return errors.Errorf("hub: there is no Secret of cluster %q in namespace %q", cluster, secretNamespace)
	}
	if c.Member != nil {
		if err := checkMember(ctx, c.Member, secrets); err != nil {
			return err
		}
	}
	for _, s := range secrets {
		if err := c.hub().delete(ctx, s); err != nil {
			return err
		}
	}
	if c.Member == nil {
		return nil
	}
	if err := removeMember(ctx, c.member(), c.MemberConfig); err != nil {
		return &MemberLeftError{Cluster: cluster, Cause: err}
	}
	return nil
}

// checkMember returns an error when a member is certainly another cluster than the one of a Secret.
func checkMember(ctx context.Context, member client.Client, secrets []*corev1.Secret) error {
	for _, s := range secrets {
		token, err := kubeconfig.Token(s.Data[corev1alpha2.KubeconfigKey])
		if err != nil {
			continue // It is deleted because nobody can read it.
		}
		name, uid, err := accountOf(token)
		if err != nil || uid == "" {
			continue
		}
		var account corev1.ServiceAccount
		if err := member.Get(ctx, name, &account); err != nil {
			continue // What cannot be read now cannot be deleted either.
		}
		if account.UID != uid {
			return errors.Errorf("the context is of another cluster than Secret %q: nothing was deleted", s.Namespace+"/"+s.Name)
		}
	}
	return nil
}

// removeMember deletes what Add has made in a member.
func removeMember(ctx context.Context, s side, config *rest.Config) error {
	for _, list := range memberLists() {
		objects, err := s.ours(ctx, list)
		if err != nil {
			return err
		}
		for _, o := range objects {
			if err := s.delete(ctx, o); err != nil {
				return err
			}
		}
	}
	in, err := newContents(config)
	if err != nil {
		return errors.Wrapf(err, "%s: cannot look into namespace %q", s.where, MemberNamespace)
	}
	return removeNamespace(ctx, s, in)
}

// removeNamespace deletes the namespace of the hub's account if Add has made it and nothing else uses it, such as the monitor.
func removeNamespace(ctx context.Context, s side, in contents) error {
	namespace := &corev1.Namespace{}
	err := s.client.Get(ctx, types.NamespacedName{Name: MemberNamespace}, namespace)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return errors.Wrapf(err, "%s: cannot read namespace %q", s.where, MemberNamespace)
	}
	if !isOurs(namespace) || namespace.DeletionTimestamp != nil {
		return nil
	}
	why, err := s.whyKeep(ctx, in, MemberNamespace)
	if err != nil {
		return errors.Wrapf(err, "%s: cannot find out whether namespace %q is empty", s.where, MemberNamespace)
	}
	if why != "" {
		s.tell(namespace, Kept, why)
		return nil
	}
	return s.delete(ctx, namespace)
}
