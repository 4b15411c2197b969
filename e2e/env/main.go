// Command env runs a hub with an A&AI, and two edge clusters that have joined it, on this machine until Ctrl-C. It is for
// contributors: run `go run ./e2e/env up` in the root of the source tree. It builds the programs from the source tree. When the
// user presses Enter, it builds and restarts the programs, and keeps the clusters, the objects and A&AI.
package main

import (
	"bufio"
	"context"
	"errors"
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

	"github.com/healthscope/healthscope/e2e/installation"
)

// startTimeout is the maximum duration of the start, including compilation, and of each restart of the programs.
const startTimeout = 10 * time.Minute

const usage = `Usage: go run ./e2e/env up [MANIFESTS...]

Keeps a hub with an A&AI and two edge clusters on this machine until Ctrl-C.
MANIFESTS are files and folders that are applied in the hub, such as config/samples/vfw.
Enter builds HealthScope's programs from the source tree and restarts them.
`

func main() {
	if len(os.Args) < 2 || os.Args[1] != "up" {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := up(ctx, os.Args[2:], os.Stdin, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "env: %v\n", err)
		os.Exit(1)
	}
}

// up runs the environment until ctx ends, with manifests applied in the hub. The working directory must be the root of the source
// tree. For each line of in, it builds and restarts the programs.
func up(ctx context.Context, manifests []string, in io.Reader, out io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "healthscope-env-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	root, err := filepath.Abs(".")
	if err != nil {
		return err
	}
	starting, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	o := installation.Options{Root: root, Dir: dir, Log: out}
	env, err := start(starting, o, manifests)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, env.Stop()) }()
	script := filepath.Join("bin", "env.sh")
	if err := writeVariables(env, script); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(script)) }()
	fmt.Fprintf(out, `
The environment is up; the logs are in %s. In another terminal, in this directory:

  . %s
  kubectl apply -f config/samples/vfw          # an application in the hub; --context edge01 and edge02 are the edges
  kubectl get healthscopes,resourcebundlestates
  curl "$API/scopes"
  curl -s "$METRICS" | grep ^healthscope_
  curl -s -H 'Accept: application/json' -H 'X-FromAppId: me' -H 'X-TransactionId: 1' "$AAI/k8s-resources"

Tutorials are in config/docs/tutorials. Enter builds the programs and restarts them; Ctrl-C ends all.
`, dir, script)
	pressed := make(chan struct{})
	go func() { // It ends with the program, because a read from a terminal has no deadline.
		for scanner := bufio.NewScanner(in); scanner.Scan(); {
			pressed <- struct{}{}
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-pressed:
		}
		if err := restart(ctx, env, o); err != nil && ctx.Err() == nil {
			fmt.Fprintf(out, "%v\nFix it, and press Enter.\n", err)
		} else if err == nil {
			fmt.Fprintln(out, "The programs have been built and restarted.")
		}
	}
}

// writeVariables writes a script that sets the environment's variables in a shell.
func writeVariables(env *installation.Environment, script string) error {
	variables, err := env.Variables()
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, v := range variables {
		name, value, _ := strings.Cut(v, "=")
		fmt.Fprintf(&text, "export %s='%s'\n", name, strings.ReplaceAll(value, "'", `'\''`))
	}
	return os.WriteFile(script, []byte(text.String()), 0o600)
}

// start builds the programs, starts the environment, joins the edges, and applies manifests in the hub.
func start(ctx context.Context, o installation.Options, manifests []string) (*installation.Environment, error) {
	fmt.Fprintln(o.Log, "Building the programs (the first time, compiling takes a few minutes) ...")
	var err error
	if o.Bin, err = installation.Build(ctx, o.Root); err != nil {
		return nil, err
	}
	env, err := installation.StartEnvironment(ctx, o, "")
	if err != nil {
		return nil, err
	}
	for _, edge := range env.Edges {
		if err := env.Join(ctx, edge); err != nil {
			return nil, errors.Join(err, env.Stop())
		}
	}
	for _, path := range manifests {
		text, err := env.Hub.KubectlCommand(ctx, "apply", "-f", path).CombinedOutput()
		fmt.Fprintf(o.Log, "%s", text)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("cannot apply %q: %w", path, err), env.Stop())
		}
	}
	return env, nil
}

// restart builds the programs, and restarts them if the build succeeds.
func restart(ctx context.Context, env *installation.Environment, o installation.Options) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if _, err := installation.Build(ctx, o.Root); err != nil {
		return err
	}
	return env.Restart(ctx)
}
