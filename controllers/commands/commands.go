package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
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
	for _, c := range root.Commands() {
		if !c.Runnable() { // For an unknown subcommand, Cobra would print the help of a command that only groups others.
			c.Args, c.RunE = cobra.NoArgs, func(c *cobra.Command, _ []string) error { return c.Help() }
		}
	}
	// Before a command starts, every error is one of the command line.
	started := false
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error {
		err := c.ValidateRequiredFlags()
		started = err == nil
		return err
	}
	if programName() == pluginCompleteName {
		args = append([]string{cobra.ShellCompRequestCmd}, args...)
	}
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	err := root.ExecuteContext(ctx)
	if !started {
		err = usageError(err)
	}
	if err != nil && !errors.Is(err, errReported) {
		fmt.Fprintf(errOut, "%s: %v\n", displayName(), err)
	}
	return exitCode(err)
}

// The names of the program as a plugin of kubectl. kubectl runs pluginCompleteName to complete a command line.
const pluginName, pluginCompleteName = "kubectl-healthscope", "kubectl_complete-healthscope"

// programName returns the name with which the program was started. It may be the name of a link.
func programName() string { return strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe") }

// displayName returns the command with which users start the program.
func displayName() string {
	if name := programName(); name == pluginName || name == pluginCompleteName {
		return "kubectl healthscope"
	}
	return "healthscope"
}

// rootLong is the help of the program.
const rootLong = `HealthScope shows whether an application is healthy in every Kubernetes cluster it
runs in, what is wrong, and since when.

The exit code of a command that answers a question is 0 for yes and 1 for no. It is
also 1 when a command fails, 2 when the command line or a file that it names is
invalid, and 3 when there is no answer.`

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
	root.SetVersionTemplate(versionLine())
	mode := colorMode(colorAuto)
	root.PersistentFlags().Var(&mode, "color", "when to color states: auto (on a terminal, unless $NO_COLOR is set), always or never")
	root.AddCommand(newController(), newMonitor(), newExplain(), newAAI(), newClusters(), newContext(), newStatus(), newSupportBundle(), newVersion())
	finish(root)
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: displayName()} // Only now: the annotation changes the commands' paths, by which examples and completions are found.
	return root
}

// finish adds examples and completions to a command and those below it.
func finish(c *cobra.Command) {
	if text := examples[c.CommandPath()]; text != "" {
		c.Example = "  " + strings.NewReplacer("healthscope ", displayName()+" ", "\n", "\n  ").Replace(text)
	}
	complete(c)
	for _, child := range c.Commands() {
		finish(child)
	}
}

// examples are the examples in the help of each command, one a line, as they are typed.
var examples = map[string]string{
	"healthscope controller":          "healthscope controller --config config.yaml\nhealthscope controller --config config.yaml --print-config",
	"healthscope monitor":             "healthscope monitor --config config.yaml",
	"healthscope explain":             "healthscope explain deployment.yaml\nhealthscope explain -f manifests/ -o json",
	"healthscope aai":                 "healthscope aai plan --config config.yaml",
	"healthscope aai plan":            "healthscope aai plan --config config.yaml",
	"healthscope clusters":            "healthscope clusters\nhealthscope clusters -o wide",
	"healthscope clusters list":       "healthscope clusters list --hub-context hub",
	"healthscope clusters add":        "healthscope clusters add provider+edge01 --context edge01 --wait\nhealthscope clusters add provider+edge01 --context edge01 --dry-run",
	"healthscope clusters remove":     "healthscope clusters remove provider+edge01 --context edge01\nhealthscope clusters remove provider+edge01 --keep-member",
	"healthscope context":             "healthscope context list --config config.yaml",
	"healthscope context apply":       "healthscope context apply --config config.yaml -f shop.yaml",
	"healthscope context plan":        "healthscope context plan --config config.yaml 5577006791947779410",
	"healthscope context instantiate": "healthscope context instantiate --config config.yaml 5577006791947779410",
	"healthscope context terminate":   "healthscope context terminate --config config.yaml 5577006791947779410",
	"healthscope context update":      "healthscope context update --config config.yaml 5577006791947779410 8674665223082153551",
	"healthscope context rollback":    "healthscope context rollback --config config.yaml 8674665223082153551 5577006791947779410",
	"healthscope context stop":        "healthscope context stop --config config.yaml 5577006791947779410",
	"healthscope context list":        "healthscope context list --config config.yaml",
	"healthscope context show":        "healthscope context show --config config.yaml 5577006791947779410",
	"healthscope status": "healthscope status -A\nhealthscope status shop -n retail -o wide\nhealthscope status -w --sort-by .status.health\n" +
		"healthscope status retail/shop/v2/autumn --app web\nhealthscope status --server https://healthscope.example.com --token-file token",
	"healthscope support-bundle": "healthscope support-bundle\nhealthscope support-bundle --context hub -o bundle.tar.gz",
	"healthscope version":        "healthscope version\nhealthscope version -o json",
}
