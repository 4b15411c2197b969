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
	"sigs.k8s.io/controller-runtime/pkg/client"
)

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
// then, unless Clusters.Member is nil, what Add has created in the member, except the
// namespace, which others may use. Before, it checks, as far as both can be read, that
// the member is the cluster of the Secret, and that no other Secret uses its account.
func Remove(ctx context.Context, c Clusters, r Removal) error {
	own, others, err := memberships(ctx, c.Hub, r.SecretNamespace, r.Cluster)
	if err != nil {
		return err
	}
	if len(own) == 0 && (!r.Force || c.Member == nil) {
		return errNoMembership(r, others)
	}
	var account corev1.ServiceAccount
	var memberErr error
	if c.Member != nil {
		account, memberErr = findAccount(ctx, c.Member)
		if err := checkMember(ctx, c.Member, r, account.UID, memberErr, own, others); err != nil {
			return err
		}
	}
	hub := target{where: "hub", client: c.Hub, report: c.Report, dryRun: r.DryRun}
	for _, m := range own {
		if err := hub.delete(ctx, m.Secret); err != nil {
			return err
		}
	}
	if c.Member == nil {
		return nil
	}
	if memberErr == nil { // Otherwise another Secret may use the account.
		member := target{where: "member", client: c.Member, report: c.Report, dryRun: r.DryRun}
		if memberErr = member.prune(ctx, nil); memberErr == nil && account.UID != "" {
			member.reportChange(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: MemberNamespace}}, "kept")
		}
	}
	if memberErr == nil || r.DryRun {
		return memberErr
	}
	return errors.Errorf("cluster %q was removed from the hub, but not everything was deleted in the cluster: %w; when the cluster can be reached, run the command again with --force", r.Cluster, memberErr)
}

// checkMember returns an error if a member is certainly not the cluster of its Secret, or if another Secret uses its account.
// memberErr is the error with which the account was read.
func checkMember(ctx context.Context, member client.Client, r Removal, account types.UID, memberErr error, own, others []membership) error {
	// Without an answer, a second request would only time out.
	if answered := memberErr == nil || apierrors.ReasonForError(memberErr) != metav1.StatusReasonUnknown; answered {
		if err := checkSameCluster(ctx, member, own); err != nil {
			return err
		}
	}
	for _, m := range others {
		if sameUID(account, m.account.uid) {
			return errors.Errorf("Secret %q of cluster %q uses the account that would be deleted: nothing was deleted; --keep-member removes cluster %q from the hub only", m.path(), clusterOf(m.Secret), r.Cluster)
		}
	}
	return nil
}

// maxNames is the maximum number of names of clusters in an error.
const maxNames = 10

// errNoMembership returns the error for a cluster that is no member.
func errNoMembership(r Removal, others []membership) error {
	existing := "none of any cluster"
	if len(others) > 0 {
		var names []string
		for _, m := range others {
			names = append(names, fmt.Sprintf("%q", clusterOf(m.Secret)))
		}
		slices.Sort(names)
		if more := len(names) - maxNames; more > 0 {
			names = append(names[:maxNames], fmt.Sprintf("%d more", more))
		}
		existing = "those of " + strings.Join(names, ", ")
	}
	return errors.Errorf("hub: there is no Secret of cluster %q in namespace %q, which has %s; nothing was deleted; --force with --context deletes what is left in the member", r.Cluster, r.SecretNamespace, existing)
}

// checkSameCluster returns an error if a member is certainly not the cluster of a Secret.
func checkSameCluster(ctx context.Context, member client.Client, own []membership) error {
	for _, m := range own {
		var account corev1.ServiceAccount
		if m.account.uid == "" || member.Get(ctx, m.account.NamespacedName, &account) != nil {
			continue // An account that cannot be read cannot be deleted either.
		}
		if account.UID != m.account.uid {
			return errors.Errorf("the context is of another cluster than Secret %q: nothing was deleted", m.path())
		}
	}
	return nil
}
