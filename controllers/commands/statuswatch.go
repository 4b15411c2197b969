package commands

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/healthscope/healthscope/healthscope"
)

// statusSource is a server that has the status of a target.
type statusSource interface {
	// get returns the status in the output format, and the health. A document without health counts as healthy.
	get(ctx context.Context) (text string, health healthscope.Health, err error)
	// follow gets the status and calls show for it and for its changes, until the server ends the answer or the source fails.
	// It reports whether there was an answer.
	follow(ctx context.Context, show func(text string) error) (answered bool, err error)
}

// printError means that an answer cannot be printed.
type printError struct{ error }

// Unwrap returns the error.
func (e printError) Unwrap() error { return e.error }

// minReconnect and maxReconnect are the bounds of the backoff after failures.
const minReconnect, maxReconnect = time.Second, 30 * time.Second

// follow prints a status whenever it changes, until ctx ends. It follows the source again after interval and, while the source fails, with
// exponential backoff. It returns the error of the source if a retry cannot succeed.
func follow(ctx context.Context, source statusSource, interval time.Duration, show func(string) error, errOut io.Writer) error {
	for pause := minReconnect; ; {
		answered, err := source.follow(ctx, show)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // The command was interrupted.
		case isFinal(err):
			return err
		case answered:
			pause = minReconnect
		}
		wait := interval
		if err != nil {
			fmt.Fprintf(errOut, "warning: %v; trying again in %s\n", err, pause)
			wait, pause = pause, min(2*pause, maxReconnect)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// isFinal reports whether a retry cannot succeed. Other rejections by the API server may come from a proxy that has lost it for a moment.
func isFinal(err error) bool {
	var r responseError
	if errors.As(err, &r) {
		return r.code < http.StatusInternalServerError && r.code != http.StatusTooManyRequests && r.code != http.StatusRequestTimeout
	}
	return errors.As(err, new(printError)) || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
}

// statusPrinter prints the texts of a source one after the other.
type statusPrinter struct {
	*statusView

	out io.Writer
	// printed is true after the first output.
	printed bool
}

// print prints a text after the previous output. A table on a terminal replaces the previous output.
func (p *statusPrinter) print(text string) error {
	switch {
	case p.format == formatTable && p.terminal:
		text = "\x1b[H\x1b[2J" + text
	case p.format == formatTable && p.printed:
		text = "\n" + text
	}
	p.printed = true
	if _, err := io.WriteString(p.out, text); err != nil {
		return printError{err}
	}
	return nil
}
