package commands

import (
	"context"
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

	root := Command()
	root.InitDefaultCompletionCmd(args...)
	refuseStrays(root)
	// Until a command begins, all that can fail is the command line.
	begun := false
	notice(root, &begun)
	root.SetArgs(argumentsOf(programName(), args))
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	err := root.ExecuteContext(ctx)
	if !begun {
		err = usage(err)
	}
	if err != nil && !isSaid(err) {
		fmt.Fprintf(errOut, "%s: %v\n", calledAs(programName()), err)
	}
	return exitCode(err)
}

// rootLong is the help of the program.
const rootLong = `HealthScope shows whether an application is healthy in every Kubernetes cluster it
runs in, what is wrong, and since when.

The exit code of a command that answers a question is 0 for yes and 1 for no. It is
also 1 when a command fails, 2 when the command line or a file that it names is
invalid, and 3 when there is no answer.`

// notice sets begun when a command, or one below it, begins.
func notice(c *cobra.Command, begun *bool) {
	if run := c.RunE; run != nil {
		c.RunE = func(c *cobra.Command, args []string) error {
			*begun = true
			return run(c, args)
		}
	}
	for _, below := range c.Commands() {
		notice(below, begun)
	}
}

// refuseStrays makes commands that only have others below them refuse what is none of these; they print their help otherwise.
func refuseStrays(root *cobra.Command) {
	for _, c := range root.Commands() {
		if !c.Runnable() {
			c.Args = cobra.NoArgs
			c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
		}
	}
}

// Command returns the program's root command, with all others below it.
func Command() *cobra.Command {
	root := &cobra.Command{
		Use:           "healthscope",
		Short:         "Is my application healthy, in every cluster it runs in?",
		Long:          rootLong,
		Version:       Version(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	called := calledAs(programName())
	root.SetVersionTemplate(versionLine())
	mode := colorMode(colorAuto)
	root.PersistentFlags().Var(&mode, "color", "when to color states: auto (on a terminal, unless $NO_COLOR is set), always or never")
	root.AddCommand(newController(), newMonitor(), newExplain(), newAAI(), newClusters(), newContext(), newStatus(), newSupportBundle(), newVersion())
	addExamples(root, called)
	addCompletions(root)
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: called} // From here on, it is part of the commands' paths.
	return root
}
