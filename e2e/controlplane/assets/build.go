package assets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/healthscope/healthscope/e2e/controlplane/filelock"
)

// cancelGrace is how long a killed compiler may hold on to its output.
const cancelGrace = 10 * time.Second

// program is a binary and the package it is built from.
type program struct {
	name        string
	packagePath string
}

func programs() []program {
	return []program{
		{Etcd, etcdModule},
		{KubeAPIServer, kubernetesModule + "/cmd/kube-apiserver"},
		{KubeControllerManager, kubernetesModule + "/cmd/kube-controller-manager"},
		{KubeScheduler, kubernetesModule + "/cmd/kube-scheduler"},
		{Kubectl, kubernetesModule + "/cmd/kubectl"},
		{Kwok, kwokModule + "/cmd/kwok"},
	}
}

// Build makes sure that every program is there and returns where. What is complete is left alone and no command is run.
// Otherwise the go command compiles the programs (about nine minutes on two cores, once per machine) into a directory
// beside the final one, which then takes its name: an interrupted build leaves nothing half done. Two builds at the same
// time do not disturb each other: the second waits and finds the result. Lines for people go to log.
//
// With KUBEBUILDER_ASSETS set nothing is built; the error then names what its directory lacks.
func Build(ctx context.Context, log io.Writer) (Set, error) {
	if dir := os.Getenv(environmentVariable); dir != "" {
		set, err := Locate()
		if err != nil {
			return Set{}, err
		}
		fmt.Fprintf(log, "control plane: %s is set, nothing is built: %s\n", environmentVariable, dir)
		return set, set.Require(all()...)
	}
	work, err := os.Getwd()
	if err != nil {
		return Set{}, fmt.Errorf("cannot build the control plane: %w", err)
	}
	b := builder{log: log, heartbeat: heartbeatInterval}
	if b.module, b.versions, err = findBuildModule(work); err != nil {
		return Set{}, fmt.Errorf("cannot build the control plane: %w", err)
	}
	return b.build(ctx)
}

// builder holds what a build needs.
type builder struct {
	module    string
	versions  Versions
	log       io.Writer
	heartbeat time.Duration
}

// build returns the cached set, and fills it first when it is incomplete.
func (b *builder) build(ctx context.Context) (_ Set, err error) {
	set, err := cached(b.versions)
	if err != nil {
		return Set{}, err
	}
	if set.Require(all()...) == nil {
		fmt.Fprintf(b.log, "control plane: %s, built already: %s\n", b.versions, set.dir)
		return set, nil
	}
	if err := os.MkdirAll(filepath.Dir(set.dir), 0o750); err != nil {
		return Set{}, fmt.Errorf("cannot build the control plane: %w", err)
	}
	lock, err := filelock.Acquire(ctx, set.dir+".lock", func() {
		fmt.Fprintln(b.log, "control plane: another build is running, waiting for its result")
	})
	if err != nil {
		return Set{}, fmt.Errorf("cannot build the control plane: %w", err)
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	if set.Require(all()...) == nil {
		fmt.Fprintf(b.log, "control plane: %s, built meanwhile: %s\n", b.versions, set.dir)
		return set, nil
	}
	return set, b.fill(ctx, set)
}

// fill builds in a temporary directory and gives it the set's name. The caller holds the lock, so every other temporary
// directory is a leftover of a build that was killed.
func (b *builder) fill(ctx context.Context, set Set) (err error) {
	leftovers, err := filepath.Glob(set.dir + ".tmp-*")
	if err != nil {
		return fmt.Errorf("cannot look for interrupted builds of the control plane: %w", err)
	}
	for _, leftover := range leftovers {
		if err := os.RemoveAll(leftover); err != nil {
			return fmt.Errorf("cannot remove interrupted build of the control plane: %w", err)
		}
	}
	temporary, err := os.MkdirTemp(filepath.Dir(set.dir), filepath.Base(set.dir)+".tmp-")
	if err != nil {
		return fmt.Errorf("cannot build the control plane: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temporary)) }()

	result := filepath.Join(temporary, "result")
	for _, dir := range []string{result, filepath.Join(temporary, "work")} {
		if err := os.Mkdir(dir, 0o750); err != nil {
			return fmt.Errorf("cannot build the control plane: %w", err)
		}
	}
	if err := b.compileAll(ctx, temporary, result); err != nil {
		return err
	}
	if err := b.copyKwokManifests(ctx, filepath.Join(result, KwokManifests)); err != nil {
		return err
	}
	// What lies there is incomplete, for somebody removed a part of it; rename does not replace a directory with content.
	if err := os.RemoveAll(set.dir); err != nil {
		return fmt.Errorf("cannot replace the control plane's programs: %w", err)
	}
	if err := os.Rename(result, set.dir); err != nil {
		return fmt.Errorf("cannot put the control plane's programs in place: %w", err)
	}
	fmt.Fprintf(b.log, "control plane: %s\n", set.dir)
	return nil
}

// compileAll compiles one program after the other, for they share most of their packages.
func (b *builder) compileAll(ctx context.Context, temporary, result string) error {
	flags, err := b.versions.linkerFlags()
	if err != nil {
		return err
	}
	todo := programs()
	fmt.Fprintf(b.log, "control plane: building %s: %d programs, about nine minutes on two cores, once per machine\n", b.versions, len(todo))
	for i, p := range todo {
		label := fmt.Sprintf("[%d/%d] %s", i+1, len(todo), p.name)
		fmt.Fprintf(b.log, "%s ... compiling\n", label)
		output := filepath.Join(result, p.name)
		cmd := b.command(ctx, "build", "-v", "-trimpath", "-ldflags", flags, "-o", output, p.packagePath)
		cmd.Env = append(cmd.Env, "GOTMPDIR="+filepath.Join(temporary, "work"))
		begin := time.Now()
		if err := b.run(ctx, cmd, label+" ... compiling"); err != nil {
			return fmt.Errorf("cannot build %s: %w", p.name, err)
		}
		info, err := os.Stat(output)
		if err != nil {
			return fmt.Errorf("cannot build %s: %w", p.name, err)
		}
		fmt.Fprintf(b.log, "%s ... built in %s, %d MB\n", label, since(begin), info.Size()/1_000_000)
	}
	return nil
}

// command is the go command in the build module, in its own process group: its compilers end with it. The environment
// variables make the result independent of the user's settings.
func (b *builder) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // The arguments are written in this package.
	cmd.Dir = b.module
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOWORK=off", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = cancelGrace
	return cmd
}

// run runs cmd, which ends with ctx, with a heartbeat that begins with prefix.
func (b *builder) run(ctx context.Context, cmd *exec.Cmd, prefix string) error {
	var output activity
	cmd.Stdout, cmd.Stderr = &output, &output
	stop := heartbeat(b.log, b.heartbeat, prefix, &output)
	err := cmd.Run()
	stop()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("%w\n%s", err, strings.TrimSpace(output.Tail()))
	}
	return nil
}
