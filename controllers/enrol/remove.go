package enrol

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet/kubeconfig"
)

// MemberLeftError reports that a cluster was removed from the hub, but that objects of the hub may be left in it.
type MemberLeftError struct {
	// Cluster is its name.
	Cluster string
	// Cause is why they could not be removed.
	Cause error
}

// Error implements error.
func (e *MemberLeftError) Error() string {
	return fmt.Sprintf("cluster %q was removed from the hub, but not everything was deleted in the cluster: %v; when the cluster can be reached, run the command again with --force", e.Cluster, e.Cause)
}

// Unwrap returns the cause.
func (e *MemberLeftError) Unwrap() error { return e.Cause }

// Removal specifies which cluster to remove.
type Removal struct {
	// Cluster is its name.
	Cluster string
	// SecretNamespace is the namespace of the hub's Secret.
	SecretNamespace string
	// Force also removes what is left in the member when the hub has no Secret of the cluster.
	Force bool
	// DryRun reports what would be deleted, and deletes nothing.
	DryRun bool
}

// Remove ends the membership of a cluster: it deletes the hub's Secret first, and
// then, unless Clusters.Member is nil, what Add has created in the member. Before,
// it checks, as far as both can be read, that the member is the cluster of the
// Secret, and that no other Secret uses its account.
func Remove(ctx context.Context, c Clusters, r Removal) error {
	secrets, others, err := findSecrets(ctx, c, r)
	if err != nil {
		return err
	}
	var memberErr error
	if c.Member != nil {
		var account *corev1.ServiceAccount
		account, memberErr = hubAccount(ctx, c.Member)
		if answered := memberErr == nil || apierrors.ReasonForError(memberErr) != metav1.StatusReasonUnknown; answered { // Otherwise a second request would only time out.
			if err := checkSameCluster(ctx, c.Member, secrets); err != nil {
				return err
			}
		}
		if s := secretUsing(account, others); s != nil {
			return errors.Errorf("Secret %q of cluster %q uses the account that would be deleted: nothing was deleted; --keep-member removes cluster %q from the hub only", s.Namespace+"/"+s.Name, clusterOf(s), r.Cluster)
		}
	}
	hub, member := c.hub(), c.member()
	hub.dryRun, member.dryRun = r.DryRun, r.DryRun
	for _, s := range secrets {
		if err := hub.delete(ctx, s); err != nil {
			return err
		}
	}
	if c.Member == nil {
		return nil
	}
	if memberErr == nil { // Otherwise another Secret may use the account.
		memberErr = removeMember(ctx, member, c.MemberConfig)
	}
	if memberErr == nil || r.DryRun {
		return memberErr
	}
	return &MemberLeftError{Cluster: r.Cluster, Cause: memberErr}
}

// findSecrets returns the hub's Secrets of the cluster to remove, and those of other clusters. It is an error if the cluster has
// none, unless the caller forces the removal of what is left in the member.
func findSecrets(ctx context.Context, c Clusters, r Removal) (own []*corev1.Secret, others []corev1.Secret, err error) {
	all, err := clusterSecrets(ctx, c.Hub, r.SecretNamespace)
	if err != nil {
		return nil, nil, err
	}
	var names []string
	for i := range all {
		if name := clusterOf(&all[i]); name == r.Cluster {
			own = append(own, &all[i])
		} else {
			others, names = append(others, all[i]), append(names, fmt.Sprintf("%q", name))
		}
	}
	if len(own) > 0 || r.Force && c.Member != nil {
		return own, others, nil
	}
	slices.Sort(names)
	if more := len(names) - maxNames; more > 0 {
		names = append(names[:maxNames], fmt.Sprintf("%d more", more))
	}
	existing := "none of any cluster"
	if len(names) > 0 {
		existing = "those of " + strings.Join(names, ", ")
	}
	return nil, nil, errors.Errorf("hub: there is no Secret of cluster %q in namespace %q, which has %s; nothing was deleted; --force with --context deletes what is left in the member", r.Cluster, r.SecretNamespace, existing)
}

// maxNames is the maximum number of names of clusters in an error.
const maxNames = 10

// checkSameCluster returns an error if a member is certainly not the cluster of a Secret.
func checkSameCluster(ctx context.Context, member client.Client, secrets []*corev1.Secret) error {
	for _, s := range secrets {
		token, err := kubeconfig.Token(s.Data[corev1alpha2.KubeconfigKey])
		if err != nil {
			continue // It is deleted because it cannot be read.
		}
		name, uid, err := accountOf(token)
		if err != nil || uid == "" {
			continue
		}
		var account corev1.ServiceAccount
		if err := member.Get(ctx, name, &account); err != nil {
			continue // An account that cannot be read cannot be deleted either.
		}
		if account.UID != uid {
			return errors.Errorf("the context is of another cluster than Secret %q: nothing was deleted", s.Namespace+"/"+s.Name)
		}
	}
	return nil
}

// removeMember deletes what Add has made in a member.
func removeMember(ctx context.Context, t target, config *rest.Config) error {
	if err := t.prune(ctx, nil); err != nil {
		return err
	}
	in, err := newContents(config)
	if err != nil {
		return errors.Wrapf(err, "%s: cannot list the contents of namespace %q", t.where, MemberNamespace)
	}
	return removeNamespace(ctx, t, in)
}

// removeNamespace deletes the namespace of the hub's account if Add has made it and nothing else uses it, such as the monitor.
func removeNamespace(ctx context.Context, t target, in contents) error {
	namespace := &corev1.Namespace{}
	err := t.client.Get(ctx, types.NamespacedName{Name: MemberNamespace}, namespace)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return errors.Wrapf(err, "%s: cannot read namespace %q", t.where, MemberNamespace)
	}
	if !isManaged(namespace) || namespace.DeletionTimestamp != nil {
		return nil
	}
	if t.dryRun {
		t.reportChange(namespace, ToDelete, "if it is empty then")
		return nil
	}
	why, err := t.keepReason(ctx, in, MemberNamespace)
	if err != nil {
		return errors.Wrapf(err, "%s: cannot find out whether namespace %q is empty", t.where, MemberNamespace)
	}
	if why != "" {
		t.reportChange(namespace, Kept, why)
		return nil
	}
	return t.delete(ctx, namespace)
}
