package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/healthscope/healthscope/controllers/app"
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
	if errors.Is(err, app.ErrRestart) && ctx.Err() == nil {
		err = runAgain()
	}
	if err != nil && !errors.Is(err, errNotReady) {
		fmt.Fprintf(errOut, "healthscope: %v\n", err)
	}
	return exitCode(err)
}

// runAgain replaces the program in its own process by itself. It returns only when that fails.
func runAgain() error {
	program, err := os.Executable()
	if err == nil {
		err = syscall.Exec(program, os.Args, os.Environ()) //nolint:gosec // The same program, with the same arguments.
	}
	return fmt.Errorf("cannot start anew with the changed configuration: %w", err)
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
