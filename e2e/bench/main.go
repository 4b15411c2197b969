// Command bench measures HealthScope on this machine, on a real API server and
// etcd, with monitor, controller and a simulated A&AI as separate processes:
//
//	bench [flags] [row...]  measures rows, all of them by default, and prints a table
//	bench soak [flags]      changes objects for a time while faults occur, and fails when a
//	                        process grows, an error has no explanation, or a result is wrong
//
// Run it in its own directory: go run -C e2e/bench . flip. There are no
// Kubernetes controllers: only this program writes the objects that HealthScope
// reads. A figure never makes it fail, only a wrong result does. The rows are in
// rows.go. config/docs/benchmarks.md describes what they measure, and how.
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

	"github.com/healthscope/healthscope/e2e/installation"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

// root is the root of the source tree, from the directory in which this program runs.
const root = "../.."

// shortestSoak is the minimum duration of a soak: a shorter one has no time for every fault and for a measurement of growth
// after them.
const shortestSoak = 2 * time.Minute

// options are the options and arguments of the command line.
type options struct {
	// rows are the ids of the rows to measure; empty for all.
	rows []string
	// scale multiplies the numbers of objects, samples and seconds.
	scale float64
	// keep is a directory for logs; empty for a temporary one that is removed.
	keep string
	// bin is the directory with the programs.
	bin string
	// out is a file for the results in Go's benchmark format.
	out string
	// duration is how long a soak changes objects.
	duration time.Duration
	// seed determines the changes and the faults of a soak, with their times.
	seed uint64
}

// run runs a command. Results go to stdout, progress to stderr.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(stderr)
	var o options
	f.Float64Var(&o.scale, "scale", 1, "multiplies the numbers of objects, samples and seconds, from 0.01 to 1")
	f.StringVar(&o.keep, "keep", "", "directory for logs, which then stay there")
	soaks := len(args) > 0 && args[0] == "soak"
	if soaks {
		args = args[1:]
		f.DurationVar(&o.duration, "duration", time.Hour, "how long to change objects")
		f.Uint64Var(&o.seed, "seed", 20261120, "what is changed, and what goes wrong when: the same with the same seed")
	} else {
		f.StringVar(&o.out, "out", "", "file for the results in Go's benchmark format, which benchstat compares")
		f.Usage = func() {
			fmt.Fprintln(stderr, "Usage: bench [flags] [row...], or bench soak [flags]. The rows:")
			for _, r := range slices.Concat(stages()...) {
				fmt.Fprintf(stderr, "  %-11s %s\n", r.id, r.work)
			}
			f.PrintDefaults()
		}
	}
	if err := f.Parse(args); err != nil {
		return err
	}
	o.rows = f.Args()
	if err := o.validate(soaks); err != nil {
		return err
	}
	fmt.Fprintln(stderr, "bench: building HealthScope (the first time, compiling takes a few minutes)")
	if o.bin, err = installation.Build(ctx, root); err != nil {
		return err
	}
	if soaks {
		return soak(ctx, o, stdout, stderr)
	}
	return measureRows(ctx, o, stdout, stderr)
}

func (o *options) validate(soaks bool) error {
	for _, id := range o.rows {
		if !slices.Contains(rowIDs(), id) || soaks {
			return fmt.Errorf("unexpected argument %q: want rows, of %s", id, strings.Join(rowIDs(), ", "))
		}
	}
	if o.scale < 0.01 || o.scale > 1 {
		return fmt.Errorf("invalid value %v for --scale: want 0.01 to 1", o.scale)
	}
	if soaks && o.duration < shortestSoak {
		return fmt.Errorf("invalid value %s for --duration: want at least %s", o.duration, shortestSoak)
	}
	if o.keep == "" {
		return nil
	}
	var err error
	o.keep, err = filepath.Abs(o.keep)
	return err
}

// scaled returns n at the scale of the run, but not less than least.
func (o options) scaled(n, least int) int {
	return max(int(float64(n)*o.scale), min(least, n))
}

// scaledTime returns a duration at the scale of the run, but not less than least.
func (o options) scaledTime(d, least time.Duration) time.Duration {
	return max(time.Duration(float64(d)*o.scale), min(least, d))
}
