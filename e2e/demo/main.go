// Command demo runs HealthScope on this machine: a hub and two edge clusters, an
// A&AI, monitors and the controller, and an application at both edges. It shows
// the application's health in kubectl, REST, metrics and A&AI, also while one of
// the edges is unreachable.
//
// It runs until Ctrl-C. With --once it runs and checks every step of the story
// and exits with 0, or names the step that failed. Run it in the root of the
// source tree after the programs have been built: make demo.
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
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/healthscope/healthscope/e2e/chart"
	"github.com/healthscope/healthscope/e2e/installation"
	"github.com/healthscope/healthscope/e2e/story"
)

// startTimeout is the maximum time until HealthScope runs.
const startTimeout = 5 * time.Minute

func main() {
	var s settings
	flag.BoolVar(&s.once, "once", false, "tell the story once, without a terminal, and exit")
	flag.BoolVar(&s.chart, "chart", false, "install HealthScope by its Helm chart, and not by the manifests in config (the first time, building Helm takes some minutes)")
	flag.Parse()
	ctrl.SetLogger(logr.Discard())
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

// settings holds the flags of the demo.
type settings struct{ once, chart bool }

// run starts the environment, runs the story, and stops the environment. The working directory must be the root of the source tree.
func run(ctx context.Context, out io.Writer, settings settings) (err error) {
	dir, err := os.MkdirTemp("", "healthscope-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	begin := time.Now()
	startCtx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	story.Heading(out, "A hub and two edge clusters, each a Kubernetes control plane; an A&AI; and HealthScope")
	root, err := filepath.Abs(".")
	if err != nil {
		return err
	}
	options := installation.Options{Root: root, Bin: filepath.Join(root, "bin"), Dir: dir, Log: indented{out}}
	if settings.chart {
		if options.Helm, err = chart.New(startCtx, root, filepath.Join(dir, "helm")); err != nil {
			return err
		}
	}
	env, err := installation.StartEnvironment(startCtx, options, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, env.Stop()) }()

	s := story.New(env, root, out)
	if err := s.Tell(ctx); err != nil {
		return err
	}
	if settings.once {
		fmt.Fprintf(out, "\nEvery step was checked; all is well, after %s.\n", time.Since(begin).Round(time.Second))
		return nil
	}
	if err := s.Again(ctx); err != nil {
		return err
	}
	s.Invite()
	<-ctx.Done()
	fmt.Fprintln(out, "\nTaking everything down ...")
	return nil
}

// indented indents each line by two spaces.
type indented struct{ out io.Writer }

// Write implements io.Writer for writers of whole lines.
func (i indented) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		if _, err := io.WriteString(i.out, "  "+line); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}
