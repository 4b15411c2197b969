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

// Exit codes of the program.
const (
	exitOK    = 0
	exitError = 1
	// exitNotReady and exitUnusable are those of the commands explain and status.
	exitNotReady = 1
	exitUnusable = 2
)

// Main runs the program with the given arguments, until it is done or receives
// SIGINT or SIGTERM, and returns its exit code. A second signal ends the program at once.
func Main(args []string, in io.Reader, out, errOut io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)

	root := Command()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	err := root.ExecuteContext(ctx)
	if err != nil && !errors.Is(err, errNotReady) {
		fmt.Fprintf(errOut, "healthscope: %v\n", err)
	}
	return exitCode(err)
}

// Command returns the program's root command, with all others below it.
func Command() *cobra.Command {
	root := &cobra.Command{
		Use:           "healthscope",
		Short:         "Is my application healthy, in every cluster it runs in?",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(newController(), newMonitor(), newExplain(), newAAI(), newClusters(), newStatus(), newSupportBundle(), newVersion())
	return root
}
