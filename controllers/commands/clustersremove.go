package commands

import (
	"context"
	"fmt"
	"io"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/healthscope/healthscope/controllers/enrol"
)

// clustersRemoveLong is the help of the command clusters remove.
const clustersRemoveLong = `Remove a cluster from the hub.

It first deletes the hub's Secret, and the controller then drops the cluster. After
that it deletes what "clusters add" has created in the member. Other objects stay, and
so does the namespace of the hub's account, as with "helm uninstall".

It refuses a name that the hub does not have, and a member whose account another
Secret of the hub uses.`

// clustersRemove are the flags of the command clusters remove.
type clustersRemove struct {
	hub        hubFlags
	member     memberFlags
	keepMember bool
	dryRun     bool
	force      bool
}

func newClustersRemove() *cobra.Command {
	var o clustersRemove
	c := &cobra.Command{
		Use: "remove NAME", Short: "Remove a cluster from the hub", Long: clustersRemoveLong, Args: exactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			err := withTimeout(c.Context(), o.hub.timeout, func(ctx context.Context) error { return o.run(ctx, args[0], c.OutOrStdout(), c.ErrOrStderr()) })
			return errors.Wrapf(err, "cannot remove cluster %q", args[0])
		},
	}
	o.member.add(c.Flags())
	o.hub.add(c.Flags())
	c.Flags().BoolVar(&o.keepMember, "keep-member", false, "leave the member as it is, for instance because it does not exist any more")
	c.Flags().BoolVar(&o.dryRun, "dry-run", false, "print what would be deleted, and delete nothing")
	c.Flags().BoolVar(&o.force, "force", false, "delete what is left in the member, even if the hub does not have the cluster any more")
	return c
}

func (o *clustersRemove) run(ctx context.Context, name string, out, errOut io.Writer) error {
	if o.keepMember && o.member.context != "" {
		return usageError(errors.New("--keep-member and --context exclude each other"))
	}
	if !o.keepMember && o.member.context == "" {
		return usageError(errors.New("--context is missing: it says where the hub's account is to be deleted; --keep-member leaves it"))
	}
	hub, hubConfig, err := o.hub.client("clusters-remove")
	if err != nil {
		return err
	}
	c := enrol.Clusters{Hub: hub, Report: printChanges(out)}
	if !o.keepMember {
		if c.MemberConfig, err = o.member.config("clusters-remove", o.hub.timeout); err != nil {
			return err
		}
		if c.MemberConfig.Host == hubConfig.Host {
			return usageError(errors.Errorf("context %q is of the hub itself", o.member.context))
		}
		if c.Member, err = newClient(c.MemberConfig); err != nil {
			return errors.Wrap(err, "cannot use the member")
		}
	}
	r := enrol.Removal{Cluster: name, SecretNamespace: o.hub.namespace, Force: o.force, DryRun: o.dryRun}
	if !r.DryRun {
		printRemoval(errOut, r, hubConfig, c.MemberConfig)
	}
	return enrol.Remove(ctx, c, r)
}

// printRemoval prints what is about to be deleted, and where.
func printRemoval(errOut io.Writer, r enrol.Removal, hub, member *rest.Config) {
	fmt.Fprintf(errOut, "deleting the Secret of cluster %q in %s", r.Cluster, hub.Host)
	if member != nil {
		fmt.Fprintf(errOut, ", then the hub's account and rights in %s", member.Host)
	}
	fmt.Fprintln(errOut)
}
