package assets

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// kwokManifestFiles are the manifests in kwok's module that the control plane starts kwok with: the Stages that its
// kustomize/stage/fast selects.
func kwokManifestFiles() []string {
	return []string{
		"kustomize/stage/node/fast/node-initialize.yaml",
		"kustomize/stage/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
		"kustomize/stage/pod/fast/pod-complete.yaml",
		"kustomize/stage/pod/fast/pod-delete.yaml",
		"kustomize/stage/pod/fast/pod-ready.yaml",
	}
}

// copyKwokManifests copies kwok's manifests from its module, which the build of kwok has put into the module cache, to
// the new directory target.
func (b *builder) copyKwokManifests(ctx context.Context, target string) error {
	output, err := b.command(ctx, "list", "-m", "-f", "{{.Dir}}", kwokModule).Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("%w\n%s", err, strings.TrimSpace(string(exit.Stderr)))
		}
		return fmt.Errorf("cannot find the source of module %q: %w", kwokModule, err)
	}
	source := strings.TrimSpace(string(output))
	if source == "" {
		return fmt.Errorf("cannot find the source of module %q: it is not in the module cache", kwokModule)
	}
	if err := os.Mkdir(target, 0o750); err != nil {
		return fmt.Errorf("cannot copy kwok's manifests: %w", err)
	}
	for _, file := range kwokManifestFiles() {
		content, err := os.ReadFile(filepath.Join(source, filepath.FromSlash(file)))
		if err != nil {
			return fmt.Errorf("cannot copy kwok's manifests: %w", err)
		}
		copied := filepath.Join(target, filepath.Base(file))
		if err := os.WriteFile(copied, content, 0o600); err != nil { //nolint:gosec // The names are those of kwokManifestFiles.
			return fmt.Errorf("cannot copy kwok's manifests: %w", err)
		}
	}
	return nil
}
