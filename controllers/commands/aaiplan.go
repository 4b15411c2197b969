package commands

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/spf13/cobra"

	"github.com/healthscope/healthscope/aai"
	"github.com/healthscope/healthscope/aai/plan"
	"github.com/healthscope/healthscope/controllers/app"
	"github.com/healthscope/healthscope/controllers/inventory"
)

// aaiPlanLong is the help of the command aai plan.
const aaiPlanLong = `Print what the controller would do in A&AI now, and change nothing.

It reads scopes and bundles from the cluster, and A&AI by its REST API. It writes to
neither.

The exit code is 0 when there is nothing to do, 1 when there is something to do or
something waits, 2 when the command line or a file that it names is invalid, and 3
when there is no answer.`

func newAAI() *cobra.Command {
	var o managerFlags
	var timeout time.Duration
	c := &cobra.Command{
		Use: "plan", Short: "Print what the controller would do in A&AI, and change nothing", Long: aaiPlanLong,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(c.Context(), timeout)
			defer cancel()
			p := newProgress(c.ErrOrStderr())
			p.showf("reading scopes and bundles, and A&AI")
			preview, err := planAAI(ctx, &o)
			p.clear()
			if err != nil {
				return errors.Wrap(err, "cannot plan")
			}
			return printPlan(c.OutOrStdout(), preview)
		},
	}
	c.Flags().StringVar(&o.config, "config", "", "the configuration file, with the section inventory")
	c.Flags().StringVar(&o.kubeconfig, "kubeconfig", "", "the kubeconfig file of the cluster; the default is $KUBECONFIG, the cluster the program runs in, or ~/.kube/config")
	c.Flags().DurationVar(&timeout, "timeout", time.Minute, "how long the command may take")
	group := &cobra.Command{Use: "aai", Short: "Compare the inventory with A&AI"}
	group.AddCommand(c)
	return group
}

// planAAI returns the changes that the controller would make in A&AI.
func planAAI(ctx context.Context, o *managerFlags) (preview inventory.Preview, err error) {
	o.logFormat = "text"
	logger, err := o.setLogger(io.Discard) // The controllers complain that they may not write.
	if err != nil {
		return preview, err
	}
	config, err := app.LoadConfig(o.config)
	if err != nil {
		return preview, usageError(err)
	}
	if config.Inventory == nil {
		return preview, usageError(errors.New("the configuration has no section inventory"))
	}
	restConfig, err := o.restConfig("aai-plan")
	if err != nil {
		return preview, err
	}
	preview, err = app.PreviewInventory(ctx, app.Options{REST: restConfig, Version: Version()}, config, logger)
	return preview, noAnswer(err)
}

// printPlan prints one line for each change, and a summary.
func printPlan(out io.Writer, preview inventory.Preview) error {
	var lines []string
	verbs := map[plan.Verb]int{}
	skipped, conflicts, waiting := 0, 0, len(preview.MissingModules)
	for _, p := range preview.Tenants {
		for _, op := range p.Plan.Operations {
			verbs[op.Verb]++
		}
		lines = append(lines, tenantLines(p)...)
		skipped, conflicts, waiting = skipped+len(p.Plan.Skipped), conflicts+len(p.Plan.Conflicts), waiting+len(p.Waiting)
	}
	lines = append(lines, moduleLines(preview)...)
	changes := verbs[plan.Update] + verbs[plan.Relate] + verbs[plan.Unrelate] + len(preview.Modules)
	lines = append(lines, fmt.Sprintf("%d to create, %d to change, %d to delete, %d deletions held, %d conflicts, %d waiting\n", verbs[plan.Create], changes, verbs[plan.Delete], skipped, conflicts, waiting))
	if _, err := io.WriteString(out, strings.Join(lines, "\n")); err != nil {
		return errors.Wrap(err, "cannot print the plan")
	}
	if changes+verbs[plan.Create]+verbs[plan.Delete]+waiting > 0 {
		return errNo
	}
	return nil
}

// moduleLines returns one line for each module that is to be changed, or is missing, sorted by VNF and module.
func moduleLines(preview inventory.Preview) (lines []string) {
	texts := map[aai.VFModule]string{}
	for _, c := range preview.Modules {
		texts[c.Module] = fmt.Sprintf("~ vf-module %s: operational-status=%s, now %q", c.Module, c.To, c.From)
	}
	for _, m := range preview.MissingModules {
		texts[m] = fmt.Sprintf("! vf-module %s does not exist in A&AI: its operational-status waits", m)
	}
	for _, m := range slices.SortedFunc(maps.Keys(texts), aai.VFModule.Compare) {
		lines = append(lines, texts[m])
	}
	return lines
}

// tenantLines returns the lines for the objects of a tenant. They are sorted by the resources that the objects describe and not by
// operation, so that two plans can be compared with diff. Operations on one object keep their order.
func tenantLines(p inventory.TenantPreview) (texts []string) {
	type line struct{ name, id, text string }
	var lines []line
	add := func(sign string, key aai.Key, document aai.Document, detail string) {
		name := documentName(document)
		lines = append(lines, line{name, key.ID, fmt.Sprintf("%s %s in %s%s", sign, name, key.Tenant, detail)})
	}
	// documentOf returns what an operation is about: what is to be created does not exist yet.
	documentOf := func(op plan.Operation) aai.Document {
		if op.Verb == plan.Create {
			return op.Document
		}
		return p.Current[op.Key]
	}
	for _, op := range p.Plan.Operations {
		sign, detail := describeOperation(op, p.Current[op.Key])
		add(sign, op.Key, documentOf(op), detail)
	}
	for _, w := range p.Waiting {
		add("!", w.Key, documentOf(w.Operation), ": waits, "+w.Message)
	}
	for _, k := range p.Plan.Skipped {
		add("=", k.Key, p.Current[k.Key], ": not deleted, "+k.Message)
	}
	for _, c := range p.Plan.Conflicts {
		add("!", c.Key, p.Current[c.Key], fmt.Sprintf(": its place belongs to data-owner %q", c.Owner))
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.id, b.id)) })
	for _, l := range lines {
		texts = append(texts, l.text)
	}
	return texts
}

// describeOperation returns the sign of an operation, and what it changes in the current document.
func describeOperation(op plan.Operation, current aai.Document) (sign, detail string) {
	sign = "~"
	switch op.Verb {
	case plan.Create:
		sign = "+"
	case plan.Delete:
		sign = "-"
	case plan.Relate:
		detail = ": relate to " + op.Relationship.Target()
	case plan.Unrelate:
		detail = ": relate no more to " + op.Relationship.Target()
	case plan.Update:
		detail = ": fields"
	}
	for _, label := range op.Document.Labels {
		if _, status, ok := strings.Cut(label, "/"+aai.LabelStatus+"="); ok && !slices.Contains(current.Labels, label) {
			detail = ": " + aai.LabelStatus + "=" + status
		}
	}
	return sign, detail
}

// documentName returns the name of the resource that a document describes, with its cluster: a tenant may have resources of many clusters.
func documentName(d aai.Document) string {
	name := d.Kind + "/" + d.Namespace + "/" + d.Name
	if d.DataSource != "" {
		name += " of " + d.DataSource
	}
	return name
}
