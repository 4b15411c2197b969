package commands

import (
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/spf13/cobra"
)

// Exit codes of the program. They mean the same in all commands.
const (
	// exitOK means that a command succeeded and that its answer, if it has one, is yes: everything is healthy, or there is nothing to do.
	exitOK = 0
	// exitNo means that the answer is no, or that the command failed.
	exitNo = 1
	// exitUsage means that the command line, or a file that it names, cannot be used.
	exitUsage = 2
	// exitUnknown means that there is no answer: the server cannot be reached, rejects the request, or does not know the answer.
	exitUnknown = 3
)

// exitError is an error that determines the exit code of the program.
type exitError struct {
	code   int
	causes []error
}

// Error implements error. It returns one line for each cause.
func (e *exitError) Error() string {
	lines := make([]string, len(e.causes))
	for i, cause := range e.causes {
		lines[i] = cause.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the causes.
func (e *exitError) Unwrap() []error { return e.causes }

// usageError returns an error with the exit code exitUsage, or nil if there is no cause.
func usageError(causes ...error) error { return withCode(exitUsage, causes...) }

// noAnswer returns an error with the exit code exitUnknown, or nil if there is no cause.
func noAnswer(causes ...error) error { return withCode(exitUnknown, causes...) }

// exactArgs is like cobra.ExactArgs, but its error shows the usage of the command.
func exactArgs(n int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != n {
			return errors.Errorf("usage: %s; the arguments given are %q", c.UseLine(), args)
		}
		return nil
	}
}

func withCode(code int, causes ...error) error {
	if causes = slices.DeleteFunc(causes, func(err error) bool { return err == nil }); len(causes) == 0 {
		return nil
	}
	return &exitError{code, causes}
}

// Errors of commands that have printed their answer. They are not printed.
var (
	errNo      = errors.New("the answer is no")
	errUnknown = errors.New("the answer is not known")
)

// loggedError is an error that has been logged. It is not printed: the output of a program that logs JSON contains only JSON.
type loggedError struct{ error }

// Unwrap returns the error.
func (e loggedError) Unwrap() error { return e.error }

// isReported reports whether an error has been printed or logged.
func isReported(err error) bool {
	return errors.Is(err, errNo) || errors.Is(err, errUnknown) || errors.As(err, new(loggedError))
}

// exitCode returns the exit code of the program when a command has ended with err.
func exitCode(err error) int {
	var exitErr *exitError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &exitErr):
		return exitErr.code
	case errors.Is(err, errUnknown):
		return exitUnknown
	default:
		return exitNo
	}
}
