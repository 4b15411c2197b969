package commands

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/yaml"

	"github.com/healthscope/healthscope/controllers/enrol"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
)

// clustersLong is the help of the command clusters.
const clustersLong = `List the clusters of the hub, as the controller sees them.

The exit code is 0 when all are Connected, 1 when some are not, or when there is no
controller that could tell, and 2 when nothing can be said.`

// errNotConnected is how the command clusters ends when some cluster is not Connected, as far as is known.
var errNotConnected = errors.New("not all clusters are Connected")

// clustersList are the flags of the command clusters.
type clustersList struct {
	hub    hubFlags
	output string
}

func newClustersList(name, short string) *cobra.Command {
	var o clustersList
	c := &cobra.Command{
		Use: name, Short: short, Long: clustersLong,
		Args: func(c *cobra.Command, args []string) error { return unusable(cobra.NoArgs(c, args)) },
		RunE: func(c *cobra.Command, _ []string) error {
			return o.run(c.Context(), c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return unusable(err) })
	o.hub.add(c.Flags())
	c.Flags().StringVarP(&o.output, "output", "o", "table", "the form of the output: table, wide, json or yaml")
	return c
}

func (o *clustersList) run(ctx context.Context, out, errOut io.Writer) error {
	printReport, err := clusterPrinter(o.output)
	if err != nil {
		return unusable(err)
	}
	hub, _, err := o.hub.client("clusters")
	if err != nil {
		return unusable(err)
	}
	now := time.Now()
	var r enrol.Report
	err = within(ctx, o.hub.timeout, func(ctx context.Context) (err error) {
		r, err = enrol.Read(ctx, hub, o.hub.namespace, now)
		return err
	})
	if err != nil {
		return unusable(errors.Wrap(err, "cannot list the clusters"))
	}
	if err := printReport(out, errOut, r, now); err != nil {
		return unusable(errors.Wrap(err, "cannot print the clusters"))
	}
	if !r.AllConnected() {
		return errNotConnected
	}
	return nil
}

// clusterPrinter returns what prints a report in a form.
func clusterPrinter(form string) (func(out, errOut io.Writer, r enrol.Report, now time.Time) error, error) {
	switch form {
	case "table", "wide":
		return func(out, errOut io.Writer, r enrol.Report, now time.Time) error {
			return printClusters(out, errOut, r, form == "wide", now)
		}, nil
	case "json":
		return func(out, _ io.Writer, r enrol.Report, _ time.Time) error {
			data, err := json.MarshalIndent(r, "", "  ")
			if err == nil {
				_, err = fmt.Fprintf(out, "%s\n", data)
			}
			return err
		}, nil
	case "yaml":
		return func(out, _ io.Writer, r enrol.Report, _ time.Time) error {
			data, err := yaml.Marshal(r)
			if err == nil {
				_, err = out.Write(data)
			}
			return err
		}, nil
	default:
		return nil, errors.Errorf("--output is %q; it must be table, wide, json or yaml", form)
	}
}

// printClusters prints a table, and says if it is not of now.
func printClusters(out, errOut io.Writer, r enrol.Report, wide bool, now time.Time) error {
	if !r.Controller.Running {
		old := "of an unknown time"
		if at := r.Controller.LastRenewed; at != nil {
			old = age(at, now) + " old"
		}
		fmt.Fprintf(errOut, "warning: the controller does not run: %s; what follows is %s\n", r.Controller.Message, old)
	}
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	columns := []string{"NAME", "STATE", "AGE", "LAST SEEN", "MESSAGE"}
	if wide {
		columns = []string{"NAME", "STATE", "AGE", "LAST SEEN", "SINCE", "MAINTENANCE", "MESSAGE"}
	}
	fmt.Fprintln(w, strings.Join(columns, "\t"))
	for _, c := range r.Clusters {
		cells := []string{printable(c.Name), string(c.State), age(c.Since, now), lastSeen(c, r.Controller, now)}
		if wide {
			since := "<unknown>"
			if c.Since != nil {
				since = c.Since.Format(time.RFC3339)
			}
			cells = append(cells, since, cmp.Or(printable(c.Maintenance), "-"))
		}
		fmt.Fprintln(w, strings.Join(append(cells, cmp.Or(printable(c.Message), "-")), "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if r.Omitted > 0 {
		fmt.Fprintf(errOut, "warning: %d clusters more are not shown: there are too many to publish\n", r.Omitted)
	}
	return nil
}

// lastSeen says when a cluster was seen last. One that is Connected is seen for as long as the controller runs, unless its
// bundles are another monitor's, of which nobody can see whether it lives.
func lastSeen(c enrol.Cluster, controller enrol.Controller, now time.Time) string {
	switch {
	case c.State == fleet.Connected && c.LastSeen != nil:
		return ago(c.LastSeen, now)
	case c.State == fleet.Connected && controller.Running:
		return "now"
	case c.State == fleet.Connected:
		return ago(controller.LastRenewed, now)
	case c.LastSeen == nil:
		return "never"
	default:
		return ago(c.LastSeen, now)
	}
}

func age(at *time.Time, now time.Time) string {
	if at == nil {
		return "<unknown>"
	}
	return duration.HumanDuration(max(now.Sub(*at), 0))
}

func ago(at *time.Time, now time.Time) string {
	if at == nil {
		return "<unknown>"
	}
	return age(at, now) + " ago"
}

// printable returns a text as one line and cell: whoever writes kubeconfigs and annotations may not control a terminal.
func printable(text string) string { return healthscope.Clean(text) }
