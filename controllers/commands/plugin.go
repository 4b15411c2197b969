package commands

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// The names of the program as a plugin of kubectl. kubectl runs pluginCompleteName to complete a command line.
const (
	pluginName         = "kubectl-healthscope"
	pluginCompleteName = "kubectl_complete-healthscope"
)

// programName returns the name with which the program was started. It may be the name of a link.
func programName() string {
	return strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
}

// displayName returns the command with which users start the program of a name.
func displayName(program string) string {
	if program == pluginName || program == pluginCompleteName {
		return "kubectl healthscope"
	}
	return "healthscope"
}

// programArgs returns the arguments for the root command of a program of a name.
func programArgs(program string, args []string) []string {
	if program == pluginCompleteName {
		return append([]string{cobra.ShellCompRequestCmd}, args...)
	}
	return args
}
