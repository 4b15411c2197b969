package chart

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

const (
	// Release is the name of the release in Render. With this name, objects have the same names as in config.
	Release = "healthscope"
	// Namespace is the namespace of the release in Render.
	Namespace = "healthscope-system"
	// Timeout is the maximum duration of Run. Helm waits for CRDs, and not for pods.
	Timeout = time.Minute
	// toolModule is the go.mod that selects the version of Helm, relative to the root of the source tree.
	toolModule = "config/tools/helm/go.mod"
)

// Helm runs the program helm on the project's chart.
type Helm struct {
	root    string
	program string
	// home is the directory for Helm's own files.
	home string
}

// New builds Helm from its source. The first build takes some minutes, and the go command caches it. root is the root of the source
// tree. home is a directory that Helm may write to, and that New creates if it does not exist.
func New(ctx context.Context, root, home string) (*Helm, error) {
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make a home for helm: %w", err)
	}
	cmd := exec.CommandContext(ctx, "go", "tool", "-modfile="+toolModule, "-n", "helm")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOWORK=off")
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("cannot build helm: %w\n%s", err, problems.String())
	}
	return &Helm{root: root, program: strings.TrimSpace(out.String()), home: home}, nil
}

// Chart returns the folder of the chart.
func (h *Helm) Chart() string { return filepath.Join(h.root, "charts", "healthscope") }

// Command returns the command helm with arguments. It does not use the user's settings, plugins and clusters. It does not
// collect garbage, because it ends before that would pay.
func (h *Helm) Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, h.program, args...) //nolint:gosec // The program is the one that New has built.
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + h.home, "HELM_CACHE_HOME=" + filepath.Join(h.home, "cache"),
		"HELM_CONFIG_HOME=" + filepath.Join(h.home, "config"), "HELM_DATA_HOME=" + filepath.Join(h.home, "data"),
		"GOGC=off",
	}
	return cmd
}

// Render returns the objects that the chart renders with values, each a YAML document. Later values override earlier ones.
// It does not need a cluster. The error contains Helm's output.
func (h *Helm) Render(ctx context.Context, values ...string) ([]*unstructured.Unstructured, error) {
	return h.RenderIn(ctx, Namespace, values...)
}

// RenderIn is like Render, for a release in another namespace than Namespace.
func (h *Helm) RenderIn(ctx context.Context, namespace string, values ...string) (_ []*unstructured.Unstructured, err error) {
	given, remove, err := h.values(values)
	if err != nil {
		return nil, fmt.Errorf("cannot render the chart: %w", err)
	}
	defer func() { err = errors.Join(err, remove()) }()
	args := append([]string{"template", Release, h.Chart(), "--namespace", namespace}, given...)
	cmd := h.Command(ctx, args...)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("cannot render the chart: %w: %s", err, strings.TrimSpace(problems.String()))
	}
	return Objects(&out)
}

// values writes values to files. It returns the arguments that name the files, and a function that removes them.
func (h *Helm) values(values []string) (args []string, remove func() error, err error) {
	dir, err := os.MkdirTemp(h.home, "values-")
	if err != nil {
		return nil, nil, err
	}
	remove = func() error { return os.RemoveAll(dir) }
	for i, text := range values {
		file := filepath.Join(dir, fmt.Sprintf("%d.yaml", i))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return nil, nil, errors.Join(err, remove())
		}
		args = append(args, "--values", file)
	}
	return args, remove, nil
}

// Run runs helm on the cluster of a kubeconfig file, with values, each a YAML document. Later values override earlier ones. It
// returns Helm's output; if Helm fails, the error contains it.
func (h *Helm) Run(ctx context.Context, kubeconfig string, values []string, args ...string) (_ string, err error) {
	given, remove, err := h.values(values)
	if err != nil {
		return "", fmt.Errorf("cannot run helm %s: %w", args[0], err)
	}
	defer func() { err = errors.Join(err, remove()) }()
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	cmd := h.Command(ctx, append(append(args, "--kubeconfig", kubeconfig), given...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("cannot run helm %s: %w: %s", args[0], err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// Objects reads the objects of a stream of YAML documents.
func Objects(stream io.Reader) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(stream, 4096); ; {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(&object.Object); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, fmt.Errorf("cannot read an object: %w", err)
		case len(object.Object) > 0:
			objects = append(objects, object)
		}
	}
}
