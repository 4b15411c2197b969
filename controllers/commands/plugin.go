package commands

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// The names of the program as a plugin of kubectl, which runs the second one to complete a command line.
const (
	pluginName         = "kubectl-healthscope"
	pluginCompleteName = "kubectl_complete-healthscope"
)

// programName returns the name by which the program was started, which may be that of a link.
func programName() string {
	return strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
}

// calledAs returns how users call the program that was started by a name.
func calledAs(program string) string {
	if program == pluginName || program == pluginCompleteName {
		return "kubectl healthscope"
	}
	return "healthscope"
}

// argumentsOf returns the arguments of the program that was started by a name.
func argumentsOf(program string, args []string) []string {
	if program == pluginCompleteName {
		return append([]string{cobra.ShellCompRequestCmd}, args...)
	}
	return args
}
