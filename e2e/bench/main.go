// Command bench measures HealthScope on this machine, on a real API server and
// etcd, with monitor, controller and a simulated A&AI as processes of their
// own:
//
//	bench [flags]       prints a table: the work, the peers' figures, the targets, and what was measured
//	bench soak [flags]  churns for a time while much goes wrong, and fails when processes grow, errors have no explanation, or anything ends up wrong
//
// Nothing but this program writes the objects that HealthScope looks at: there
// are no Kubernetes controllers. A figure never makes it fail, only a result
// that is wrong, or something that cannot be done. It is run from the root of
// the source tree, after the programs have been built: make bench, make soak.
// What the rows measure, and how, is in config/docs/benchmarks.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	interrupted := ctx.Err() != nil
	stop()
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case interrupted:
		fmt.Fprintf(os.Stderr, "bench: stopped: %v\n", err)
		os.Exit(130)
	default:
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

// shortestSoak is the shortest soak: in less, there is no time for every trouble and, after them, for a look at who has grown.
const shortestSoak = 2 * time.Minute

// options are the command line.
type options struct {
	root, bin string
	// keep is a directory for the logs, which then stay; empty for a temporary one.
	keep string
	// only are the rows to measure; empty for all.
	only []string
	// scale multiplies the numbers of objects, samples and seconds.
	scale float64
	json  string
	// soak says that this is a soak; duration is how long the soak churns, and rate the changes in a second.
	soak     bool
	duration time.Duration
	rate     float64
	// seed makes the changes of a soak, and what goes wrong when, others; with the same seed they are the same.
	seed uint64
}

// run runs a command: results go to stdout, the story of how they came about to stderr.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	switch {
	case err != nil:
		return err
	case o.soak:
		return soak(ctx, o, stdout, stderr)
	default:
		return measureRows(ctx, o, stdout, stderr)
	}
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	name := "bench"
	if len(args) > 0 && args[0] == "soak" {
		o.soak, name, args = true, "bench soak", args[1:]
	}
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.root, "root", ".", "root of the source tree, where the manifests are")
	f.StringVar(&o.bin, "bin", "bin", "directory with the programs healthscope and aai-simulator")
	f.StringVar(&o.keep, "keep", "", "directory for logs, which then stay there")
	f.StringVar(&o.json, "json", "", "file for the results in JSON")
	f.Float64Var(&o.scale, "scale", 1, "multiplies the numbers of objects, samples and seconds, from 0.01 to 1")
	only := ""
	if !o.soak {
		f.StringVar(&only, "only", "", "rows to measure, separated by commas: "+strings.Join(rowIDs(), ",")+" (default all)")
	} else {
		f.DurationVar(&o.duration, "duration", time.Hour, "how long to churn")
		f.Float64Var(&o.rate, "rate", 25, "changes in a second, at most")
		f.Uint64Var(&o.seed, "seed", 20261120, "what is changed, and what goes wrong when: the same with the same seed")
	}
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if only != "" {
		o.only = strings.Split(only, ",")
	}
	if err := o.validate(f.Args()); err != nil {
		return o, err
	}
	for _, path := range []*string{&o.root, &o.bin, &o.keep} {
		if *path == "" {
			continue
		}
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return o, fmt.Errorf("cannot use directory %q: %w", *path, err)
		}
		*path = absolute
	}
	return o, nil
}

func (o options) validate(rest []string) error {
	for _, id := range o.only {
		if !slices.Contains(rowIDs(), id) {
			return fmt.Errorf("invalid value %q for --only: want one of %s", id, strings.Join(rowIDs(), ", "))
		}
	}
	switch {
	case len(rest) > 0:
		return fmt.Errorf("unexpected argument %q", rest[0])
	case o.scale < 0.01 || o.scale > 1:
		return fmt.Errorf("invalid value %v for --scale: want 0.01 to 1", o.scale)
	case o.soak && o.duration < shortestSoak:
		return fmt.Errorf("invalid value %s for --duration: want at least %s", o.duration, shortestSoak)
	case o.soak && (o.rate <= 0 || o.rate > 1000):
		return fmt.Errorf("invalid value %v for --rate: want more than 0, at most 1000", o.rate)
	}
	return nil
}

// scaled returns n at the scale of the run, but not less than least.
func (o options) scaled(n, least int) int {
	return max(int(float64(n)*o.scale), min(least, n))
}

// scaledTime returns a duration at the scale of the run, but not less than least.
func (o options) scaledTime(d, least time.Duration) time.Duration {
	return max(time.Duration(float64(d)*o.scale), min(least, d))
}
