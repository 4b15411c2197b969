package app

import (
	"context"
	"io"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/spf13/cobra"

	"github.com/healthscope/healthscope/controllers/enrol"
)

// clustersRemoveLong is the help of the command clusters remove.
const clustersRemoveLong = `Make a cluster be no member of the hub any more.

It deletes the hub's Secret first, so that the controller forgets the cluster, and
then what "clusters add" has made in the member. What has another origin stays.`

// clustersRemove are the flags of the command clusters remove.
type clustersRemove struct {
	hub        hubFlags
	member     memberFlags
	keepMember bool
}

func newClustersRemove() *cobra.Command {
	var o clustersRemove
	c := &cobra.Command{
		Use: "remove NAME", Short: "Make a cluster be no member of the hub any more", Long: clustersRemoveLong, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			err := within(c.Context(), o.hub.timeout, func(ctx context.Context) error { return o.run(ctx, args[0], c.OutOrStdout()) })
			return errors.Wrapf(err, "cannot remove cluster %q", args[0])
		},
	}
	o.member.add(c.Flags())
	o.hub.add(c.Flags())
	c.Flags().BoolVar(&o.keepMember, "keep-member", false, "leave the member as it is, for instance because it does not exist any more")
	return c
}

func (o *clustersRemove) run(ctx context.Context, name string, out io.Writer) error {
	if o.keepMember && o.member.context != "" {
		return errors.New("--keep-member and --context exclude each other")
	}
	if !o.keepMember && o.member.context == "" {
		return errors.New("--context is missing: it says where the hub's account is to be deleted; --keep-member leaves it")
	}
	hub, hubConfig, err := o.hub.client("clusters-remove")
	if err != nil {
		return err
	}
	c := enrol.Clusters{Hub: hub, Report: printer(out)}
	if !o.keepMember {
		if c.MemberConfig, err = o.member.config("clusters-remove"); err != nil {
			return err
		}
		if c.MemberConfig.Host == hubConfig.Host {
			return errors.Errorf("context %q is of the hub itself", o.member.context)
		}
		if c.Member, err = newClient(c.MemberConfig); err != nil {
			return errors.Wrap(err, "cannot use the member")
		}
	}
	return enrol.Remove(ctx, c, name, o.hub.namespace)
}
