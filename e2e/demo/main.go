// Command demo shows HealthScope at work on this machine: a hub and two edge
// clusters, an A&AI, monitors and the controller, and an application at both edges
// whose health travels from Kubernetes objects to kubectl, REST, metrics and A&AI,
// also when one of the edges is cut off.
//
// It stays up until Ctrl-C; with --once it tells the story, checks every step,
// and exits with 0, or names the step that failed. It is run from the root of
// the source tree, after the programs have been built: make demo.
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
	"syscall"
	"time"

	"github.com/healthscope/healthscope/e2e/chart"
	"github.com/healthscope/healthscope/e2e/installation"
)

// startTimeout bounds everything up to the moment when HealthScope runs.
const startTimeout = 5 * time.Minute

func main() {
	var s settings
	flag.BoolVar(&s.once, "once", false, "tell the story once, without a terminal, and exit")
	flag.BoolVar(&s.chart, "chart", false, "install HealthScope by its Helm chart, and not by the manifests in config (the first time, building Helm takes some minutes)")
	flag.Parse()
	s.bin = "bin"
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, s)
	stop()
	switch {
	case err == nil:
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "demo: stopped")
		os.Exit(130)
	default:
		fmt.Fprintf(os.Stderr, "\ndemo: %v\n", err)
		os.Exit(1)
	}
}

// settings say how the demo is run.
type settings struct {
	once, chart bool
	// bin is the folder with the programs.
	bin string
}

// options returns how HealthScope is installed; dir is a directory for what it needs.
func (s settings) options(ctx context.Context, dir string, log io.Writer, edges []*edge) (installation.Options, error) {
	root, err := filepath.Abs(".")
	if err != nil {
		return installation.Options{}, err
	}
	bin, err := filepath.Abs(s.bin)
	if err != nil {
		return installation.Options{}, err
	}
	o := installation.Options{Root: root, Bin: bin, Dir: dir, Log: log, Regions: installation.Regions(edges[0].cluster(), edges[1].cluster())}
	if s.chart {
		o.Helm, err = chart.New(ctx, root, filepath.Join(dir, "helm"))
	}
	return o, err
}

// run starts everything, tells the story, and takes everything down again. It is called in the root of the source tree.
func run(ctx context.Context, out io.Writer, settings settings) (err error) {
	dir, err := os.MkdirTemp("", "healthscope-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	begin := time.Now()
	startCtx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	heading(out, "A hub and two edge clusters, each a Kubernetes control plane; an A&AI; and HealthScope")
	edges := []*edge{{name: "edge01"}, {name: "edge02"}}
	defer func() {
		for _, e := range edges {
			err = errors.Join(err, e.stop())
		}
	}()
	hub, err := startPlanes(startCtx, indent(out), edges)
	if hub != nil {
		defer func() { err = errors.Join(err, hub.Stop()) }()
	}
	if err != nil {
		return err
	}
	options, err := settings.options(startCtx, dir, indent(out), edges)
	if err != nil {
		return err
	}
	i, err := installation.Start(startCtx, hub, options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, i.Stop()) }()

	s := &story{out: out, cp: hub, hs: i, edges: edges}
	if err := s.tell(ctx); err != nil {
		return err
	}
	if settings.once {
		fmt.Fprintf(out, "\nEvery step was checked; all is well, after %s.\n", time.Since(begin).Round(time.Second))
		return nil
	}
	s.invite()
	<-ctx.Done()
	fmt.Fprintln(out, "\nTaking everything down ...")
	return nil
}
