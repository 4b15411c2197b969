package commands

import (
	"errors"
	"fmt"

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
	error

	code int
}

// Unwrap returns the cause.
func (e *exitError) Unwrap() error { return e.error }

// usageError returns an error with the exit code exitUsage and a line for each cause, or nil if there is no cause.
func usageError(causes ...error) error { return withCode(exitUsage, causes...) }

// noAnswer returns an error with the exit code exitUnknown and a line for each cause, or nil if there is no cause.
func noAnswer(causes ...error) error { return withCode(exitUnknown, causes...) }

func withCode(code int, causes ...error) error {
	if err := errors.Join(causes...); err != nil {
		return &exitError{err, code}
	}
	return nil
}

// errReported is the cause of an error that is not printed, because the command has printed its answer or logged the error.
var errReported = errors.New("the answer has been printed")

// Errors of commands that have printed their answer.
var errNo, errUnknown = withCode(exitNo, errReported), withCode(exitUnknown, errReported)

// exitCode returns the exit code of the program when a command has ended with err.
func exitCode(err error) int {
	var exitErr *exitError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &exitErr):
		return exitErr.code
	default:
		return exitNo
	}
}

// exactArgs is like cobra.ExactArgs, but its error shows the usage of the command.
func exactArgs(n int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != n {
			return fmt.Errorf("usage: %s; the arguments given are %q", c.UseLine(), args)
		}
		return nil
	}
}
