package commands

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/controllers/app"
	"github.com/healthscope/healthscope/controllers/rsync"
	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

// contextTimeout is how long the commands about contexts may take by default.
const contextTimeout = time.Minute

// contextCommand is a command about contexts: the flags that all of them share and, while it runs, the configuration, the store and the output.
type contextCommand struct {
	configFile string
	timeout    time.Duration

	config      *configv1alpha1.Configuration
	store       *appcontext.Store
	out, errOut io.Writer
}

// newContext returns the command context.
func newContext() *cobra.Command {
	var o contextCommand
	c := &cobra.Command{Use: "context", Short: "Create AppContexts, and deploy them"}
	c.PersistentFlags().StringVar(&o.configFile, "config", "", "the configuration file, whose section appContext names the etcd with the contexts")
	c.PersistentFlags().DurationVar(&o.timeout, "timeout", contextTimeout, "how long the command may take")
	c.AddCommand(
		o.applyCommand(),
		newContextPlan(&o),
		o.eventCommand("instantiate ID", "Deploy a context to its clusters", deploy.EventInstantiate),
		o.eventCommand("terminate ID", "Delete from its clusters what a context has deployed", deploy.EventTerminate),
		o.eventCommand("update FROM TO", "Replace the context FROM by the context TO, and delete what TO lacks", deploy.EventUpdate),
		o.eventCommand("rollback FROM TO", "Undo an update from TO to FROM", deploy.EventUpdate),
		o.command("stop ID", "Stop the work on a context until the next of these commands", o.stop),
		o.command("list", "List the contexts, with their states", o.list),
		o.command("show ID", "Print the state of each resource of a context, and why", o.show),
	)
	return c
}

// command returns a command that calls run with the arguments that use names.
func (o *contextCommand) command(use, short string, run func(ctx context.Context, args []string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: exactArgs(strings.Count(use, " ")),
		RunE: func(c *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(c.Context(), o.timeout)
			defer cancel()
			var err error
			if o.config, err = app.LoadConfig(o.configFile); err != nil {
				return usageError(err)
			}
			if o.config.AppContext == nil {
				return usageError(errors.Errorf("the configuration %q has no section appContext, which names the etcd with the contexts", o.configFile))
			}
			if o.store, err = app.OpenAppContext(o.config.AppContext); err != nil {
				return usageError(err)
			}
			defer func() { _ = o.store.Close() }() // All requests have completed.
			o.out, o.errOut = c.OutOrStdout(), c.ErrOrStderr()
			err = run(ctx, args)
			if errors.Is(err, appcontext.ErrUnavailable) || errors.Is(err, appcontext.ErrDenied) || errors.Is(err, context.DeadlineExceeded) {
				return noAnswer(err)
			}
			return err
		},
	}
}

// eventCommand returns a command that adds an event to the queue of a context. Its arguments are the id of the context, or the id of the
// context that is updated and that of its update.
func (o *contextCommand) eventCommand(use, short string, event deploy.Event) *cobra.Command {
	var wait bool
	c := o.command(use, short, func(ctx context.Context, args []string) error {
		id, from := args[len(args)-1], ""
		if len(args) > 1 {
			from = args[0]
		}
		if err := rsync.Enqueue(ctx, o.store, id, event, from, time.Now()); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(o.out, "%s of context %s is in the queue\n", event, strings.Join(args, " to ")); err != nil || !wait {
			return err
		}
		slices.Reverse(args) // An update deletes what is left of the previous context last.
		return o.wait(ctx, args)
	})
	c.Flags().BoolVar(&wait, "wait", false, "wait until the work is done, at most for --timeout; if something fails, print what, and exit with 1")
	return c
}

func (o *contextCommand) applyCommand() *cobra.Command {
	var file string
	c := o.command("apply", "Create the context of a composite app, to be instantiated later, and print its id", func(ctx context.Context, _ []string) error {
		data, err := os.ReadFile(file)
		if err != nil {
			return usageError(errors.Wrap(err, "cannot read the composite app"))
		}
		var composite rsync.CompositeApp
		if err := yaml.UnmarshalStrict(data, &composite); err != nil {
			return usageError(errors.Wrapf(err, "cannot read composite app %q", file))
		}
		id, err := rsync.CreateContext(ctx, o.store, composite, func(name string) ([]byte, error) {
			if !filepath.IsAbs(name) {
				name = filepath.Join(filepath.Dir(file), name)
			}
			return os.ReadFile(name)
		}, time.Now())
		if err != nil {
			return usageError(errors.Wrapf(err, "cannot make the context of %q", file))
		}
		_, err = fmt.Fprintln(o.out, id)
		return err
	})
	c.Flags().StringVarP(&file, "filename", "f", "", "the YAML file of the composite app; the paths of its manifests are relative to its directory")
	if err := c.MarkFlagRequired("filename"); err != nil {
		panic(err) // There is no such flag.
	}
	return c
}

func (o *contextCommand) stop(ctx context.Context, args []string) error {
	if err := rsync.Stop(ctx, o.store, args[0], time.Now()); err != nil {
		return err
	}
	_, err := fmt.Fprintf(o.out, "context %s is stopped\n", args[0])
	return err
}

// printStandingDown prints why the controller has stopped all work on contexts, if it has.
func (o *contextCommand) printStandingDown(ctx context.Context) error {
	reason, err := o.store.Sidecar(ctx, deploy.StandingDownHandle)
	if err == nil && reason != "" {
		_, err = fmt.Fprintf(o.out, "nothing is deployed until the controller is started again: %s\n", printable(reason))
	}
	return err
}

func (o *contextCommand) list(ctx context.Context, _ []string) error {
	ids, err := o.store.ContextIDs(ctx)
	if err != nil {
		return err
	}
	if err := o.printStandingDown(ctx); err != nil {
		return err
	}
	t := table{columns: []string{"ID", "STATE", "FOR"}}
	for _, id := range ids {
		s, err := o.store.Snapshot(ctx, id, "status", "meta")
		if errors.Is(err, appcontext.ErrNotFound) {
			continue // It has been deleted meanwhile.
		}
		if err != nil {
			return err
		}
		state, err := s.Status()
		if err != nil {
			return err
		}
		name := ""
		meta, _ := s.Meta() // If meta cannot be read, the subject is unknown.
		if subject, ok := meta.DeploymentRef(); ok {
			name = subject.String()
		}
		t.add("", id, string(state), name)
	}
	return t.print(o.out, false)
}

func (o *contextCommand) show(ctx context.Context, args []string) error {
	id := args[0]
	s, err := o.store.Snapshot(ctx, id)
	if err != nil {
		return err
	}
	l, err := deploy.ReadLifecycle(s)
	if err != nil {
		return err
	}
	problem, err := o.store.Sidecar(ctx, rsync.ProblemHandle(id))
	if err != nil {
		return err
	}
	if err := o.printStandingDown(ctx); err != nil {
		return err
	}
	fmt.Fprintf(o.out, "state %s, desired %s\n", cmp.Or(l.Current, "-"), cmp.Or(l.Desired, "-"))
	for _, e := range l.Queue {
		fmt.Fprintf(o.out, "event %s: %s\n", e.Event, e.Status)
	}
	if problem != "" {
		fmt.Fprintf(o.out, "problem: %s\n", printable(problem))
	}
	if l.Current == appcontext.StateInstantiating { // Otherwise what is stored is left over from a wait that was interrupted.
		if err := o.printWaiting(ctx, s); err != nil {
			return err
		}
	}
	return o.printResources(ctx, s)
}

// printWaiting prints which apps of a context wait for others, and why.
func (o *contextCommand) printWaiting(ctx context.Context, s *appcontext.Snapshot) error {
	for _, a := range s.Apps() {
		waits, err := o.store.ListSidecars(ctx, rsync.WaitReasonHandle(s.ID(), a.Name()))
		if err != nil {
			return err
		}
		for _, other := range slices.Sorted(maps.Keys(waits)) {
			fmt.Fprintf(o.out, "app %s waits until app %s is Ready: %s\n", a.Name(), other, printable(waits[other]))
		}
	}
	return nil
}

// statusSnapshot reads the context that stores the states of a context's resources: after updates, the first of the contexts.
func (o *contextCommand) statusSnapshot(ctx context.Context, of *appcontext.Snapshot) (*appcontext.Snapshot, error) {
	id, err := of.StatusContextID()
	if err != nil {
		return nil, err
	}
	return o.store.Snapshot(ctx, id)
}

// printResources prints a table of a context's resources.
func (o *contextCommand) printResources(ctx context.Context, of *appcontext.Snapshot) error {
	s, err := o.statusSnapshot(ctx, of)
	if err != nil {
		return err
	}
	if s.ID() != of.ID() {
		fmt.Fprintf(o.out, "resources are those of context %s\n", s.ID())
	}
	t := table{columns: []string{"APP", "CLUSTER", "RESOURCE", "STATUS", "PROBLEM"}}
	for _, a := range s.Apps() {
		for _, c := range a.Clusters() {
			for _, r := range c.Resources() {
				status, err := r.Status()
				if err != nil {
					return err
				}
				reason, err := o.store.Sidecar(ctx, r.Handle().Level("status"))
				if err != nil {
					return err
				}
				t.add("", a.Name(), c.Name(), r.Name(), string(cmp.Or(status, appcontext.ResourcePending)), reason)
			}
		}
	}
	return t.print(o.out, false)
}

// wait waits until no work is left on contexts, and prints the state of the first one, whose event finishes before those of the others. If
// the last event of a context has failed, wait prints why and returns errNo.
func (o *contextCommand) wait(ctx context.Context, ids []string) error {
	p := newProgress(o.errOut)
	defer p.clear()
	failed := ""
	for _, id := range ids {
		done, err := o.waitFor(ctx, id, p)
		if ctx.Err() != nil {
			return noAnswer(errors.Errorf("the work on context %q is not done: \"healthscope context show\" prints its progress; a controller with rsync.enabled must run", ids[0]))
		}
		if err != nil {
			return err
		}
		if !done && failed == "" {
			failed = id
		}
	}
	p.clear()
	if failed != "" {
		if err := o.show(ctx, []string{failed}); err != nil {
			return err
		}
		return errNo
	}
	s, err := o.store.Snapshot(ctx, ids[0], "status")
	if err != nil {
		return err
	}
	state, err := s.Status()
	if err == nil {
		_, err = fmt.Fprintf(o.out, "context %s is %s\n", ids[0], state)
	}
	return err
}

// waitFor watches a context until no work is left on it, and reports whether its last event is done.
func (o *contextCommand) waitFor(ctx context.Context, id string, p *progress) (done bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	finished := false
	watchErr := o.store.WatchLevels(ctx, id, nil, func() {
		if ctx.Err() != nil {
			return // A change that was received before the watch ended.
		}
		var s *appcontext.Snapshot
		var l deploy.Lifecycle
		if s, err = o.store.Snapshot(ctx, id, append(deploy.LifecycleLevels(), "statusappctxid")...); err == nil {
			l, err = deploy.ReadLifecycle(s)
		}
		switch n := len(l.Queue); {
		case err != nil:
		case l.Active():
			err = o.showProgress(ctx, s, l.Current, p)
		default:
			finished, done = true, n > 0 && l.Queue[n-1].Status == deploy.EventDone
		}
		if finished || err != nil {
			cancel()
		}
	})
	if finished || err != nil {
		return done, err
	}
	return false, watchErr
}

// showProgress shows the number of resources of a context by status.
func (o *contextCommand) showProgress(ctx context.Context, of *appcontext.Snapshot, state appcontext.State, p *progress) error {
	if !p.live {
		return nil
	}
	s, err := o.statusSnapshot(ctx, of)
	if err != nil {
		return err
	}
	counts := map[appcontext.ResourceStatus]int{}
	for _, a := range s.Apps() {
		for _, c := range a.Clusters() {
			for _, r := range c.Resources() {
				if status, err := r.Status(); err == nil {
					counts[status]++
				}
			}
		}
	}
	var parts []string
	for _, status := range []appcontext.ResourceStatus{appcontext.ResourcePending, appcontext.ResourceApplied, appcontext.ResourceRetrying, appcontext.ResourceFailed, appcontext.ResourceDeleted} {
		if counts[status] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[status], status))
		}
	}
	p.showf("context %s is %s: %s", of.ID(), state, strings.Join(parts, ", "))
	return nil
}
