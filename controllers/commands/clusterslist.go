package commands

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/spf13/cobra"

	"github.com/healthscope/healthscope/controllers/enrol"
	"github.com/healthscope/healthscope/controllers/fleet"
)

// clustersLong is the help of the command clusters.
const clustersLong = `List the clusters of the hub, as the controller sees them.

The exit code is 0 when all are Connected, 1 when some are not, or when no
controller runs, 2 when the command line or a file that it names is invalid,
and 3 when there is no answer.`

// clustersList are the flags of the command clusters.
type clustersList struct {
	hub    hubFlags
	output string
	colour bool
}

func newClustersList(name, short string) *cobra.Command {
	var o clustersList
	c := &cobra.Command{
		Use: name, Short: short, Long: clustersLong,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			o.colour = hasColor(c)
			return o.run(c.Context(), c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	o.hub.add(c.Flags())
	c.Flags().StringVarP(&o.output, "output", "o", formatTable, "the output format: table, wide, json or yaml")
	return c
}

func (o *clustersList) run(ctx context.Context, out, errOut io.Writer) error {
	if err := checkFormat(o.output, formatTable, formatWide, formatJSON, formatYAML); err != nil {
		return usageError(err)
	}
	hub, _, err := o.hub.client("clusters")
	if err != nil {
		return usageError(err)
	}
	now := time.Now()
	var r enrol.Report
	err = withTimeout(ctx, o.hub.timeout, func(ctx context.Context) (err error) {
		r, err = enrol.Read(ctx, hub, o.hub.namespace, now)
		return err
	})
	if err != nil {
		return noAnswer(errors.Wrap(err, "cannot list the clusters"))
	}
	if err := printReport(out, errOut, o.output, o.colour, r, now); err != nil {
		return noAnswer(errors.Wrap(err, "cannot print the clusters"))
	}
	if !r.AllConnected() {
		return errNo
	}
	return nil
}

// printReport prints a report in an output format, and a warning if it is out of date.
func printReport(out, errOut io.Writer, format string, colour bool, r enrol.Report, now time.Time) error {
	wide := format == formatWide
	if format != formatTable && !wide {
		return encode(out, format, r)
	}
	if !r.Controller.Running {
		dataAge := "of an unknown time"
		if at := r.Controller.LastRenewed; at != nil {
			dataAge = age(*at, now) + " old"
		}
		fmt.Fprintf(errOut, "warning: the controller does not run: %s; what follows is %s\n", r.Controller.Message, dataAge)
	}
	columns := func(cells ...string) []string {
		if !wide {
			cells = slices.Delete(cells, 4, 6)
		}
		return cells
	}
	list := table{columns: columns("NAME", "STATE", "AGE", "LAST SEEN", "SINCE", "MAINTENANCE", "MESSAGE")}
	for _, c := range r.Clusters {
		since := unknownTime
		if c.Since != nil {
			since = c.Since.Format(time.RFC3339)
		}
		list.add(string(c.State), columns(c.Name, string(c.State), ageIfKnown(c.Since, now, ""), lastSeen(c, r.Controller, now), since, c.Maintenance, c.Message)...)
	}
	for _, s := range r.RejectedSecrets {
		list.add(string(fleet.Refused), columns("secret/"+s.Name, string(fleet.Refused), unknownTime, "never", unknownTime, "", s.Message)...)
	}
	if err := list.print(out, colour); err != nil {
		return err
	}
	if r.Omitted > 0 {
		fmt.Fprintf(errOut, "warning: %d clusters more are not shown: there are too many to publish\n", r.Omitted)
	}
	return nil
}

// lastSeen returns when a cluster was last seen. A Connected cluster without this time is seen as long as the controller runs.
// If the bundles of a cluster are those of another monitor, the time is set: such a monitor has no Lease that shows whether it is alive.
func lastSeen(c enrol.Cluster, controller enrol.Controller, now time.Time) string {
	switch {
	case c.LastSeen != nil:
		return ageIfKnown(c.LastSeen, now, " ago")
	case c.State != fleet.Connected:
		return "never"
	case controller.Running:
		return "now"
	default:
		return ageIfKnown(controller.LastRenewed, now, " ago")
	}
}

// unknownTime is printed for a time that is not known.
const unknownTime = "<unknown>"

// ageIfKnown returns the duration since a time, with a suffix, or unknownTime.
func ageIfKnown(at *time.Time, now time.Time, suffix string) string {
	if at == nil {
		return unknownTime
	}
	return age(*at, now) + suffix
}
