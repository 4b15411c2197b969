// Package krew tests that krew installs the program from the files of a release.
package krew

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	root    = "../../.."
	version = "v0.0.0-check"
	// timeout limits each command. The first one may have to be compiled.
	timeout = 5 * time.Minute
	// script replaces the program. It prints the name with which it is called.
	script = "#!/bin/sh\nbasename \"$0\"\n"
)

var platforms = []string{"linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64"}

func TestKrewInstallsTheProgram(t *testing.T) {
	dist := t.TempDir()
	for _, platform := range platforms {
		writeArchive(t, archive(dist, platform))
	}
	run(t, root, nil, "make", "krew", "VERSION="+version, "DIST="+dist)
	manifest := filepath.Join(t.TempDir(), "healthscope.yaml") // validate-krew-manifest requires that the file has the name of the plugin.
	if err := os.Rename(filepath.Join(dist, "krew.yaml"), manifest); err != nil {
		t.Fatal(err)
	}
	run(t, ".", nil, "go", "tool", "validate-krew-manifest", "-manifest", manifest, "-skip-install")
	for _, platform := range platforms {
		system, architecture, _ := strings.Cut(platform, "_")
		home := t.TempDir()
		env := []string{"KREW_ROOT=" + home, "KREW_NO_UPGRADE_CHECK=1", "KREW_OS=" + system, "KREW_ARCH=" + architecture}
		run(t, ".", env, "go", "tool", "krew", "install", "--manifest", manifest, "--archive", archive(dist, platform))
		if out := run(t, ".", nil, filepath.Join(home, "bin", "kubectl-healthscope")); out != "kubectl-healthscope\n" {
			t.Errorf("the plugin for %s is called %q", platform, out)
		}
	}
}

// TestAManifestNeedsItsArchives asserts that make krew fails if an archive is missing. Otherwise users would be the first to
// notice.
func TestAManifestNeedsItsArchives(t *testing.T) {
	dist := t.TempDir()
	writeArchive(t, archive(dist, platforms[0]))
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	if out, err := command(ctx, root, nil, "make", "krew", "VERSION="+version, "DIST="+dist).CombinedOutput(); err == nil {
		t.Errorf("a manifest was made without archives:\n%s", out)
	}
}

func archive(dist, platform string) string {
	return filepath.Join(dist, "healthscope_"+version+"_"+platform+".tar.gz")
}

// writeArchive writes an archive like those of `make dist`.
func writeArchive(t *testing.T, name string) {
	t.Helper()
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	files := tar.NewWriter(zipped)
	for _, file := range []struct {
		name, content string
		mode          int64
	}{{"healthscope", script, 0o755}, {"LICENSE", "licence\n", 0o644}} {
		err := files.WriteHeader(&tar.Header{Name: file.name, Mode: file.mode, Size: int64(len(file.content))})
		if err == nil {
			_, err = files.Write([]byte(file.content))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := files.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, packed.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// run runs a program until it exits, and returns its output.
func run(t *testing.T, dir string, env []string, program string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	cmd := command(ctx, dir, env, program, args...)
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", cmd, err, out, problems.String())
	}
	return string(out)
}

// command returns a command without input. Its Wait returns at most one second after the context has ended.
func command(ctx context.Context, dir string, env []string, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, append(os.Environ(), env...), time.Second
	return cmd
}
