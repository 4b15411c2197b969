package commands

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/controllers/rsync"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

// contextPlanLong is the help of the command context plan.
const contextPlanLong = `Print what the instantiation of a context would create, change and delete. With
--terminate, print what its termination would delete, and with --from, what the update
from another context would change.

It reads the Secrets of clusters in the hub, asks the clusters, and changes nothing. It
prints the names of the fields that would change, not their values.

The exit code is 0 when the clusters would accept everything, 1 when one would refuse
something, 2 when the command line or a file that it names is invalid, and 3 when
there is no answer.`

// contextPlan is the command context plan.
type contextPlan struct {
	*contextCommand

	hub       hubFlags
	from      string
	terminate bool
	output    string
}

func newContextPlan(shared *contextCommand) *cobra.Command {
	o := &contextPlan{contextCommand: shared}
	c := o.command("plan ID", "Print what would be created, changed and deleted in which cluster", o.run)
	c.Long = contextPlanLong
	o.hub.addConnectionFlags(c.Flags())
	c.Flags().StringVar(&o.from, "from", "", "print what an update from this context would change")
	c.Flags().BoolVar(&o.terminate, "terminate", false, "print what the termination would change")
	c.Flags().StringVarP(&o.output, "output", "o", formatTable, "the output format: table, json or yaml")
	return c
}

func (o *contextPlan) run(ctx context.Context, args []string) error {
	if err := checkFormat(o.output, formatTable, formatJSON, formatYAML); err != nil {
		return usageError(err)
	}
	if o.from != "" && o.terminate {
		return usageError(errors.New("--from and --terminate exclude each other"))
	}
	previews, err := o.preview(ctx, args[0])
	if err != nil {
		return err
	}
	if o.output == formatTable {
		err = printPreviews(o.out, previews)
	} else {
		err = encode(o.out, o.output, previews)
	}
	if err != nil {
		return err
	}
	return previewResult(previews)
}

// preview reads what would be deployed, and asks the clusters what would change.
func (o *contextPlan) preview(ctx context.Context, id string) ([]rsync.Preview, error) {
	if o.from != "" {
		update, err := rsync.ReadUpdate(ctx, o.store, o.from, id)
		if err != nil {
			return nil, err
		}
		access, err := o.access(ctx)
		if err != nil {
			return nil, err
		}
		return rsync.PreviewUpdate(ctx, update, access), nil
	}
	snapshot, err := o.store.Snapshot(ctx, id)
	if err != nil {
		return nil, err
	}
	plan, err := deploy.NewPlan(snapshot)
	if err != nil {
		return nil, err
	}
	access, err := o.access(ctx)
	if err != nil {
		return nil, err
	}
	if o.terminate {
		return rsync.PreviewTermination(ctx, plan, access), nil
	}
	return rsync.PreviewInstantiation(ctx, plan, access), nil
}

// access returns a function that returns the access to a cluster: one with a Secret in the hub, or the hub itself.
func (o *contextPlan) access(ctx context.Context) (func(cluster string) (fleet.Access, bool), error) {
	hub, local, err := o.hub.client("context-plan")
	if err != nil {
		return nil, usageError(err)
	}
	members, err := fleet.ReadAccess(ctx, hub, o.hub.namespace, o.config.ClusterName)
	if err != nil {
		return nil, noAnswer(err)
	}
	httpClient, err := rest.HTTPClientFor(local)
	if err != nil {
		return nil, usageError(err)
	}
	return func(cluster string) (fleet.Access, bool) {
		if cluster == o.config.ClusterName {
			return fleet.Access{Config: local, Client: httpClient}, true
		}
		return members(cluster)
	}, nil
}

func printPreviews(out io.Writer, previews []rsync.Preview) error {
	t := table{columns: []string{"APP", "CLUSTER", "RESOURCE", "ACTION", "WHAT"}}
	count := map[rsync.PreviewAction]int{}
	for _, p := range previews {
		count[p.Action]++
		t.add("", p.App, p.Cluster, p.Resource, string(p.Action), strings.Join(p.Fields, ", ")+p.Problem)
	}
	_, err := fmt.Fprintf(out, "%s%d to create, %d to change, %d to delete, %d unchanged, %d refused, %d unknown\n", t.render(false),
		count[rsync.PreviewCreate], count[rsync.PreviewChange], count[rsync.PreviewDelete], count[rsync.PreviewUnchanged], count[rsync.PreviewRefused], count[rsync.PreviewUnknown])
	return err
}

// previewResult returns the error that determines the exit code: errNo if a cluster would reject something, or else errUnknown if a result is unknown.
func previewResult(previews []rsync.Preview) error {
	var result error
	for _, p := range previews {
		switch p.Action {
		case rsync.PreviewRefused:
			return errNo
		case rsync.PreviewUnknown:
			result = errUnknown
		case rsync.PreviewCreate, rsync.PreviewChange, rsync.PreviewUnchanged, rsync.PreviewDelete:
		}
	}
	return result
}
