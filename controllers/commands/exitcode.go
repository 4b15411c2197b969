package commands

import (
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/spf13/cobra"
)

// Exit codes of the program. They mean the same in all commands.
const (
	// exitOK means that a command did what it is for, and that its answer, if it gives one, is yes: everything is healthy, or nothing is to be done.
	exitOK = 0
	// exitNo means that the answer is no, or that the command could not do what it is for.
	exitNo = 1
	// exitUsage means that the command line, or a file that it names, cannot be used.
	exitUsage = 2
	// exitUnknown means that there is no answer: what was to be asked cannot be reached or refuses, or it does not know itself.
	exitUnknown = 3
)

// exitError is an error with the exit code that it ends the program with.
type exitError struct {
	code   int
	causes []error
}

// Error implements error. Each cause has its line.
func (e *exitError) Error() string {
	lines := make([]string, len(e.causes))
	for i, cause := range e.causes {
		lines[i] = cause.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the causes.
func (e *exitError) Unwrap() []error { return e.causes }

// usage returns an error that ends the program with exitUsage; nil when there is no cause.
func usage(causes ...error) error { return withCode(exitUsage, causes...) }

// noAnswer returns an error that ends the program with exitUnknown; nil when there is no cause.
func noAnswer(causes ...error) error { return withCode(exitUnknown, causes...) }

// exactArgs is cobra.ExactArgs, and shows how the command is used instead.
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

// Errors of commands whose answer has been printed: there is nothing more to say.
var (
	errNo      = errors.New("the answer is no")
	errUnknown = errors.New("the answer is not known")
)

// loggedError is an error that has been logged: a program that logs JSON writes nothing else.
type loggedError struct{ error }

// Unwrap returns the error.
func (e loggedError) Unwrap() error { return e.error }

// isSaid reports whether whoever gave the command knows already what an error says.
func isSaid(err error) bool {
	return errors.Is(err, errNo) || errors.Is(err, errUnknown) || errors.As(err, new(loggedError))
}

// exitCode returns the exit code of the program when a command has ended with err.
func exitCode(err error) int {
	var coded *exitError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &coded):
		return coded.code
	case errors.Is(err, errUnknown):
		return exitUnknown
	default:
		return exitNo
	}
}
