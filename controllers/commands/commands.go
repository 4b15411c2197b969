package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// Main runs the program with the given arguments, until it is done or receives
// SIGINT or SIGTERM, and returns its exit code. A second signal ends the program at once.
func Main(args []string, in io.Reader, out, errOut io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)

	root := NewCommand()
	root.InitDefaultCompletionCmd(args...)
	rejectUnknownSubcommands(root)
	// Before a command starts, every error is one of the command line.
	started := false
	recordStart(root, &started)
	root.SetArgs(programArgs(programName(), args))
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	err := root.ExecuteContext(ctx)
	if !started {
		err = usageError(err)
	}
	if err != nil && !errors.Is(err, errReported) {
		fmt.Fprintf(errOut, "%s: %v\n", displayName(programName()), err)
	}
	return exitCode(err)
}

// rootLong is the help of the program.
const rootLong = `HealthScope shows whether an application is healthy in every Kubernetes cluster it
runs in, what is wrong, and since when.

The exit code of a command that answers a question is 0 for yes and 1 for no. It is
also 1 when a command fails, 2 when the command line or a file that it names is
invalid, and 3 when there is no answer.`

// recordStart makes a command and its subcommands set started when they start.
func recordStart(c *cobra.Command, started *bool) {
	if run := c.RunE; run != nil {
		c.RunE = func(c *cobra.Command, args []string) error {
			*started = true
			return run(c, args)
		}
	}
	for _, child := range c.Commands() {
		recordStart(child, started)
	}
}

// rejectUnknownSubcommands makes commands that only group others return an error for an unknown subcommand. Cobra would print their help.
func rejectUnknownSubcommands(root *cobra.Command) {
	for _, c := range root.Commands() {
		if !c.Runnable() {
			c.Args = cobra.NoArgs
			c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
		}
	}
}

// NewCommand returns the program's root command with all subcommands.
func NewCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "healthscope",
		Short:         "Is my application healthy, in every cluster it runs in?",
		Long:          rootLong,
		Version:       Version(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	called := displayName(programName())
	root.SetVersionTemplate(versionLine())
	mode := colorMode(colorAuto)
	root.PersistentFlags().Var(&mode, "color", "when to color states: auto (on a terminal, unless $NO_COLOR is set), always or never")
	root.AddCommand(newController(), newMonitor(), newExplain(), newAAI(), newClusters(), newContext(), newStatus(), newSupportBundle(), newVersion())
	addExamples(root, called)
	addCompletions(root)
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: called} // Only now: the annotation changes the commands' paths, by which examples and completions are found.
	return root
}
