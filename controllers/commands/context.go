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

	"github.com/healthscope/healthscope/controllers/app"
	"github.com/healthscope/healthscope/controllers/rsync"
	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

// contextTimeout is how long the commands about contexts may take by default.
const contextTimeout = time.Minute

// contextFlags are the flags that all context commands share.
type contextFlags struct {
	config  string
	timeout time.Duration
}

// contextFunc does the work of a command about contexts.
type contextFunc func(ctx context.Context, store *appcontext.Store, args []string, out io.Writer) error

// newContext returns the command context.
func newContext() *cobra.Command {
	var f contextFlags
	c := &cobra.Command{Use: "context", Short: "Create AppContexts, and deploy them"}
	c.PersistentFlags().StringVar(&f.config, "config", "", "the configuration file, whose section appContext names the etcd with the contexts")
	c.PersistentFlags().DurationVar(&f.timeout, "timeout", contextTimeout, "how long the command may take")
	c.AddCommand(
		newContextApply(&f),
		newContextPlan(&f),
		f.eventCommand("instantiate ID", "Deploy a context to its clusters", 1, enqueue(deploy.EventInstantiate)),
		f.eventCommand("terminate ID", "Delete from its clusters what a context has deployed", 1, enqueue(deploy.EventTerminate)),
		f.eventCommand("update FROM TO", "Replace the context FROM by the context TO, and delete what TO lacks", 2, enqueue(deploy.EventUpdate)),
		f.eventCommand("rollback FROM TO", "Undo an update from TO to FROM", 2, enqueue(deploy.EventUpdate)),
		f.command("stop ID", "Stop the work on a context until the next of these commands", 1, stopContext),
		f.command("list", "List the contexts, with their states", 0, listContexts),
		f.command("show ID", "Print the state of each resource of a context, and why", 1, showContext),
	)
	return c
}

// command returns a command that calls run with the store of the contexts.
func (f *contextFlags) command(use, short string, args int, run contextFunc) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: exactArgs(args),
		RunE: func(c *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(c.Context(), f.timeout)
			defer cancel()
			config, err := app.LoadConfig(f.config)
			if err != nil {
				return usageError(err)
			}
			if config.AppContext == nil {
				return usageError(errors.Errorf("the configuration %q has no section appContext, which names the etcd with the contexts", f.config))
			}
			store, err := app.OpenAppContext(config.AppContext)
			if err != nil {
				return usageError(err)
			}
			defer func() { _ = store.Close() }() // All requests have completed.
			err = run(ctx, store, args, c.OutOrStdout())
			if errors.Is(err, appcontext.ErrUnavailable) || errors.Is(err, appcontext.ErrDenied) {
				return noAnswer(err)
			}
			return err
		},
	}
}

// eventCommand returns a command that adds an event to the queues of contexts.
func (f *contextFlags) eventCommand(use, short string, args int, add contextFunc) *cobra.Command {
	var wait bool
	var c *cobra.Command
	c = f.command(use, short, args, func(ctx context.Context, store *appcontext.Store, args []string, out io.Writer) error {
		if err := add(ctx, store, args, out); err != nil || !wait {
			return err
		}
		slices.Reverse(args) // An update deletes what is left of the previous context last.
		return waitForContexts(ctx, store, args, out, c.ErrOrStderr())
	})
	c.Flags().BoolVar(&wait, "wait", false, "wait until the work is done, at most for --timeout; if something fails, print what, and exit with 1")
	return c
}

func newContextApply(f *contextFlags) *cobra.Command {
	var file string
	c := f.command("apply", "Create the context of a composite app, to be instantiated later, and print its id", 0, func(ctx context.Context, store *appcontext.Store, _ []string, out io.Writer) error {
		data, err := os.ReadFile(file)
		if err != nil {
			return usageError(errors.Wrap(err, "cannot read the composite app"))
		}
		var composite rsync.CompositeApp
		if err := yaml.UnmarshalStrict(data, &composite); err != nil {
			return usageError(errors.Wrapf(err, "cannot read composite app %q", file))
		}
		id, err := rsync.CreateContext(ctx, store, composite, func(name string) ([]byte, error) {
			if !filepath.IsAbs(name) {
				name = filepath.Join(filepath.Dir(file), name)
			}
			return os.ReadFile(name)
		}, time.Now())
		if err != nil {
			return usageError(errors.Wrapf(err, "cannot make the context of %q", file))
		}
		_, err = fmt.Fprintln(out, id)
		return err
	})
	c.Flags().StringVarP(&file, "filename", "f", "", "the YAML file of the composite app; the paths of its manifests are relative to its directory")
	if err := c.MarkFlagRequired("filename"); err != nil {
		panic(err) // There is no such flag.
	}
	return c
}

// enqueue returns a function that adds an event to the queue of a context. The arguments are its id, or the id of the context that is updated
// and its own.
func enqueue(event deploy.Event) contextFunc {
	return func(ctx context.Context, store *appcontext.Store, args []string, out io.Writer) error {
		id, from := args[len(args)-1], ""
		if len(args) > 1 {
			from = args[0]
		}
		if err := rsync.Enqueue(ctx, store, id, event, from, time.Now()); err != nil {
			return err
		}
		_, err := fmt.Fprintf(out, "%s of context %s is in the queue\n", event, strings.Join(args, " to "))
		return err
	}
}

func stopContext(ctx context.Context, store *appcontext.Store, args []string, out io.Writer) error {
	if err := rsync.Stop(ctx, store, args[0], time.Now()); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "context %s is stopped\n", args[0])
	return err
}

// printStandingDown prints why the controller has stopped all work on contexts, if it has.
func printStandingDown(ctx context.Context, store *appcontext.Store, out io.Writer) error {
	reason, err := store.Sidecar(ctx, deploy.StandingDownHandle)
	if err == nil && reason != "" {
		_, err = fmt.Fprintf(out, "nothing is deployed until the controller is started again: %s\n", printable(reason))
	}
	return err
}

func listContexts(ctx context.Context, store *appcontext.Store, _ []string, out io.Writer) error {
	ids, err := store.ContextIDs(ctx)
	if err != nil {
		return err
	}
	if err := printStandingDown(ctx, store, out); err != nil {
		return err
	}
	t := table{columns: []string{"ID", "STATE", "FOR"}}
	for _, id := range ids {
		s, err := store.Snapshot(ctx, id, "status", "meta")
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
	_, err = io.WriteString(out, t.render(false))
	return err
}

func showContext(ctx context.Context, store *appcontext.Store, args []string, out io.Writer) error {
	id := args[0]
	s, err := store.Snapshot(ctx, id)
	if err != nil {
		return err
	}
	l, err := deploy.ReadLifecycle(s)
	if err != nil {
		return err
	}
	problem, err := store.Sidecar(ctx, rsync.ProblemHandle(id))
	if err != nil {
		return err
	}
	if err := printStandingDown(ctx, store, out); err != nil {
		return err
	}
	fmt.Fprintf(out, "state %s, desired %s\n", cmp.Or(l.Current, "-"), cmp.Or(l.Desired, "-"))
	for _, e := range l.Queue {
		fmt.Fprintf(out, "event %s: %s\n", e.Event, e.Status)
	}
	if problem != "" {
		fmt.Fprintf(out, "problem: %s\n", printable(problem))
	}
	if err := printWaiting(ctx, store, s, l, out); err != nil {
		return err
	}
	statuses, err := statusSnapshot(ctx, store, id)
	if err != nil {
		return err
	}
	if statuses.ID() != id {
		fmt.Fprintf(out, "resources are those of context %s\n", statuses.ID())
	}
	return printResources(ctx, store, statuses, out)
}

// printWaiting prints which apps wait for others, and why, while a context is instantiated.
func printWaiting(ctx context.Context, store *appcontext.Store, s *appcontext.Snapshot, l deploy.Lifecycle, out io.Writer) error {
	if l.Current != appcontext.StateInstantiating {
		return nil // What is stored is left over from a wait that was interrupted.
	}
	for _, a := range s.Apps() {
		waits, err := store.ListSidecars(ctx, rsync.WaitReasonHandle(s.ID(), a.Name()))
		if err != nil {
			return err
		}
		for _, other := range slices.Sorted(maps.Keys(waits)) {
			fmt.Fprintf(out, "app %s waits until app %s is Ready: %s\n", a.Name(), other, printable(waits[other]))
		}
	}
	return nil
}

// statusSnapshot returns the context that stores the states of a context's resources. After updates, this is the first of the contexts.
func statusSnapshot(ctx context.Context, store *appcontext.Store, id string) (*appcontext.Snapshot, error) {
	s, err := store.Snapshot(ctx, id, "statusappctxid")
	if err != nil {
		return nil, err
	}
	statusID, err := s.StatusContextID()
	if err != nil {
		return nil, err
	}
	return store.Snapshot(ctx, statusID)
}

// printResources prints a table of the resources whose states a context stores.
func printResources(ctx context.Context, store *appcontext.Store, s *appcontext.Snapshot, out io.Writer) error {
	t := table{columns: []string{"APP", "CLUSTER", "RESOURCE", "STATUS", "PROBLEM"}}
	for _, a := range s.Apps() {
		for _, c := range a.Clusters() {
			for _, r := range c.Resources() {
				status, err := r.Status()
				if err != nil {
					return err
				}
				reason, err := store.Sidecar(ctx, r.Handle().Level("status"))
				if err != nil {
					return err
				}
				t.add("", a.Name(), c.Name(), r.Name(), string(cmp.Or(status, appcontext.ResourcePending)), reason)
			}
		}
	}
	_, err := io.WriteString(out, t.render(false))
	return err
}
