// Command controlplane builds and starts the test control plane: etcd, kube-apiserver, kube-controller-manager,
// kube-scheduler and kwok as processes of the caller, without containers. Run it anywhere in a checkout:
//
//	go run ./e2e/controlplane/cmd/controlplane build   # compile the programs, once per machine
//	go run ./e2e/controlplane/cmd/controlplane up      # start a control plane, stop it with Ctrl-C
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/e2e/controlplane/assets"
)

const usage = `Usage: controlplane <command> [flags]

Commands:
  build   compile etcd, Kubernetes and kwok into the user's cache directory, unless they are there
  up      start a control plane with controllers and fake nodes, and keep it until Ctrl-C

Run "controlplane <command> -h" for the flags.
`

// errUsage says that the command line made no sense; what was wrong has been printed.
var errUsage = errors.New("wrong usage")

func main() {
	// The first signal stops in order. The second has the default effect, and then what was started ends by itself.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop)
	switch err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// run runs the command that args name.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		fmt.Fprint(stderr, usage)
		return errUsage
	}
	switch args[0] {
	case "build":
		return build(ctx, args[1:], stdout, stderr)
	case "up":
		return up(ctx, args[1:], stdout, stderr)
	case "help", "-h", "--help":
		fmt.Fprint(stdout, usage)
		return nil
	default:
		fmt.Fprintf(stderr, "unknown command %q\n\n%s", args[0], usage)
		return errUsage
	}
}

func build(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if err := parse(flags("build", stderr), args, stderr); err != nil {
		return err
	}
	_, err := assets.Build(ctx, stdout)
	return err
}

func up(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	options := controlplane.Options{Controllers: true, Log: stderr}
	set := flags("up", stderr)
	set.StringVar(&options.Name, "name", "controlplane", "name of the control plane, also of its context in the kubeconfig")
	set.IntVar(&options.Nodes, "nodes", controlplane.DefaultNodes, "number of fake nodes")
	set.StringVar(&options.Dir, "dir", "", "directory for its data, kept for the next start (default a temporary one)")
	if err := parse(set, args, stderr); err != nil {
		return err
	}
	options.KeepData = options.Dir != ""
	if _, err := assets.Build(ctx, stderr); err != nil {
		return err
	}
	plane, err := controlplane.Start(ctx, options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	fmt.Fprintf(stdout, "export KUBECONFIG=%s\n", plane.KubeconfigPath())
	fmt.Fprintf(stderr, "kubectl: %s\nlogs: %s\nPress Ctrl-C to stop.\n", plane.Kubectl(), plane.LogDir())
	return plane.Wait(ctx)
}

func flags(command string, stderr io.Writer) *flag.FlagSet {
	set := flag.NewFlagSet("controlplane "+command, flag.ContinueOnError)
	set.SetOutput(stderr)
	return set
}

// parse parses args, which may hold nothing but flags.
func parse(set *flag.FlagSet, args []string, stderr io.Writer) error {
	if err := set.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return errUsage // The flag set has printed what is wrong.
	}
	if set.NArg() > 0 {
		fmt.Fprintf(stderr, "%s: unexpected argument %q\n", set.Name(), set.Arg(0))
		return errUsage
	}
	return nil
}
