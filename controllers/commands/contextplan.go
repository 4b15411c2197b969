package commands

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/healthscope/healthscope/controllers/app"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/controllers/rsync"
	"github.com/healthscope/healthscope/healthscope/appcontext"
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

// contextPlan are the flags of the command context plan.
type contextPlan struct {
	*contextFlags

	hub       hubFlags
	from      string
	terminate bool
	output    string
}

func newContextPlan(f *contextFlags) *cobra.Command {
	o := &contextPlan{contextFlags: f}
	c := f.command("plan ID", "Print what would be created, changed and deleted in which cluster", 1, o.run)
	c.Long = contextPlanLong
	o.hub.addConnectionFlags(c.Flags())
	c.Flags().StringVar(&o.from, "from", "", "print what an update from this context would change")
	c.Flags().BoolVar(&o.terminate, "terminate", false, "print what the termination would change")
	c.Flags().StringVarP(&o.output, "output", "o", formatTable, "the output format: table, json or yaml")
	return c
}

func (o *contextPlan) run(ctx context.Context, store *appcontext.Store, args []string, out io.Writer) error {
	if err := checkFormat(o.output, formatTable, formatJSON, formatYAML); err != nil {
		return usageError(err)
	}
	if o.from != "" && o.terminate {
		return usageError(errors.New("--from and --terminate exclude each other"))
	}
	preview, err := o.read(ctx, store, args[0])
	if err != nil {
		return err
	}
	access, err := o.access(ctx)
	if err != nil {
		return err
	}
	previews := preview(ctx, access)
	if o.output == formatTable {
		err = printPreviews(out, previews)
	} else {
		err = encode(out, o.output, previews)
	}
	if err != nil {
		return err
	}
	return previewResult(previews)
}

// clusterAccess returns the access to a cluster, if there is one.
type clusterAccess func(cluster string) (fleet.Access, bool)

// read reads what would be deployed, and returns a function that asks the clusters what would change.
func (o *contextPlan) read(ctx context.Context, store *appcontext.Store, id string) (func(context.Context, clusterAccess) []rsync.Preview, error) {
	if o.from != "" {
		update, err := rsync.ReadUpdate(ctx, store, o.from, id)
		return func(ctx context.Context, a clusterAccess) []rsync.Preview { return rsync.PreviewUpdate(ctx, update, a) }, err
	}
	snapshot, err := store.Snapshot(ctx, id)
	if err != nil {
		return nil, err
	}
	plan, err := deploy.NewPlan(snapshot)
	if o.terminate {
		return func(ctx context.Context, a clusterAccess) []rsync.Preview {
			return rsync.PreviewTermination(ctx, plan, a)
		}, err
	}
	return func(ctx context.Context, a clusterAccess) []rsync.Preview {
		return rsync.PreviewInstantiation(ctx, plan, a)
	}, err
}

// access returns a function that returns the access to a cluster: one with a Secret in the hub, or the hub itself.
func (o *contextPlan) access(ctx context.Context) (clusterAccess, error) {
	config, err := app.LoadConfig(o.config)
	if err != nil {
		return nil, usageError(err)
	}
	hub, local, err := o.hub.client("context-plan")
	if err != nil {
		return nil, usageError(err)
	}
	members, err := fleet.ReadAccess(ctx, hub, o.hub.namespace, config.ClusterName)
	if err != nil {
		return nil, noAnswer(err)
	}
	httpClient, err := rest.HTTPClientFor(local)
	if err != nil {
		return nil, usageError(err)
	}
	return func(cluster string) (fleet.Access, bool) {
		if cluster == config.ClusterName {
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
