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
	"time"

	"github.com/healthscope/healthscope/e2e/process"
)

// program is a binary and the package that it is built from.
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

// kwokStages returns the files in kwok's module with the Stages that the control plane starts kwok with. They are those
// that its kustomize/stage/fast selects.
func kwokStages() []string {
	return []string{
		"kustomize/stage/node/fast/node-initialize.yaml",
		"kustomize/stage/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
		"kustomize/stage/pod/fast/pod-complete.yaml",
		"kustomize/stage/pod/fast/pod-delete.yaml",
		"kustomize/stage/pod/fast/pod-ready.yaml",
	}
}

// Build builds the programs that do not exist yet, and returns their location. The go command compiles them (about nine
// minutes on two cores, once per machine) one after the other, because they share most of their packages. Build renames a
// program to its final name when it is complete. A second build waits for the first. Build writes its progress to log.
//
// If KUBEBUILDER_ASSETS is set, Build builds nothing, and the error names the programs that its directory lacks.
func Build(ctx context.Context, log io.Writer) (_ Set, err error) {
	set, err := Locate()
	if err != nil {
		return Set{}, err
	}
	if set.Require(all()...) == nil || os.Getenv(environmentVariable) != "" {
		fmt.Fprintf(log, "control plane: nothing is built, for the programs are in %s\n", set.dir)
		return set, set.Require(all()...)
	}
	work, err := os.Getwd()
	if err != nil {
		return Set{}, fmt.Errorf("cannot build the control plane: %w", err)
	}
	module, versions, err := findBuildModule(work)
	if err != nil {
		return Set{}, fmt.Errorf("cannot build the control plane: %w", err)
	}
	if err := os.MkdirAll(set.dir, 0o750); err != nil {
		return Set{}, fmt.Errorf("cannot build the control plane: %w", err)
	}
	release, err := process.Lock(set.dir + ".lock")
	if err != nil {
		return Set{}, fmt.Errorf("cannot build the control plane: %w", err)
	}
	defer func() { err = errors.Join(err, release()) }()
	fmt.Fprintf(log, "control plane: building %s in %s: about nine minutes on two cores, once per machine\n", versions, set.dir)
	flags, err := versions.linkerFlags()
	if err != nil {
		return Set{}, err
	}
	for i, p := range programs() {
		if set.Require(p.name) == nil {
			continue
		}
		begin := time.Now()
		fmt.Fprintf(log, "[%d/%d] %s ... compiling\n", i+1, len(programs()), p.name)
		if _, err := command(ctx, module, "build", "-trimpath", "-ldflags", flags, "-o", set.Path(p.name+".new"), p.packagePath); err != nil {
			return Set{}, fmt.Errorf("cannot build %s: %w", p.name, err)
		}
		if err := os.Rename(set.Path(p.name+".new"), set.Path(p.name)); err != nil {
			return Set{}, fmt.Errorf("cannot build %s: %w", p.name, err)
		}
		fmt.Fprintf(log, "[%d/%d] %s ... built in %s\n", i+1, len(programs()), p.name, time.Since(begin).Round(time.Second))
	}
	return set, copyStages(ctx, module, set)
}

// copyStages copies kwok's Stages from its module, which the build of kwok has downloaded to the module cache.
func copyStages(ctx context.Context, module string, set Set) error {
	source, err := command(ctx, module, "list", "-m", "-f", "{{.Dir}}", kwokModule)
	if err != nil {
		return fmt.Errorf("cannot find the source of kwok: %w", err)
	}
	unfinished := set.Path(KwokManifests + ".new")
	if err := errors.Join(os.RemoveAll(unfinished), os.Mkdir(unfinished, 0o750)); err != nil {
		return fmt.Errorf("cannot copy kwok's Stages: %w", err)
	}
	for _, file := range kwokStages() {
		content, err := os.ReadFile(filepath.Join(source, filepath.FromSlash(file)))
		if err == nil {
			err = os.WriteFile(filepath.Join(unfinished, filepath.Base(file)), content, 0o600) //nolint:gosec // The names are those of kwokStages.
		}
		if err != nil {
			return fmt.Errorf("cannot copy kwok's Stages: %w", err)
		}
	}
	if err := os.Rename(unfinished, set.Path(KwokManifests)); err != nil {
		return fmt.Errorf("cannot copy kwok's Stages: %w", err)
	}
	return nil
}

// command runs the go command in the build module and returns its output. The environment variables make the result
// independent of the user's settings.
func command(ctx context.Context, module string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // The arguments are written in this package.
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOWORK=off", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	output, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%w\n%s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return strings.TrimSpace(string(output)), err
}
