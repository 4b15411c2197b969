package controlplane

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/healthscope/healthscope/e2e/controlplane/assets"
)

// useFakePrograms makes Start use shell scripts as programs.
func useFakePrograms(t *testing.T, scripts map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, script := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
			t.Fatalf("cannot write program: %v", err)
		}
	}
	t.Setenv("KUBEBUILDER_ASSETS", dir)
}

func TestAFailedStartNamesTheComponentAndLeavesNothing(t *testing.T) {
	const forever = "exec sleep 600\n"
	cases := map[string]struct {
		scripts map[string]string
		want    []string
	}{
		"etcd fails": {
			scripts: map[string]string{assets.Etcd: "echo no space >&2; exit 3\n", assets.KubeAPIServer: forever, assets.Kubectl: forever},
			want:    []string{`control plane "test"`, "etcd ended: exit status 3", "no space"},
		},
		"the API server fails": {
			scripts: map[string]string{assets.Etcd: forever, assets.KubeAPIServer: "echo address already in use; exit 1\n", assets.Kubectl: forever},
			want:    []string{`control plane "test"`, "kube-apiserver ended: exit status 1", "address already in use"},
		},
		"a program cannot be run": {
			scripts: map[string]string{assets.Etcd: forever, assets.KubeAPIServer: "#!/nonexistent\n", assets.Kubectl: forever},
			want:    []string{`control plane "test"`, "kube-apiserver ended"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			temporary := t.TempDir()
			t.Setenv("TMPDIR", temporary)
			useFakePrograms(t, tc.scripts)
			_, err := Start(t.Context(), Options{Name: "test"})
			if err == nil {
				t.Fatal("want an error")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("want %q in the error, got: %v", want, err)
				}
			}
			checkEmpty(t, temporary)
		})
	}
}

func TestACancelledStartLeavesNothing(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	useFakePrograms(t, map[string]string{assets.Etcd: "exec sleep 600\n", assets.KubeAPIServer: "echo up to here; exec sleep 600\n", assets.Kubectl: ""})
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("somebody pressed Ctrl-C")
	_, err := Start(ctx, Options{Log: writerFunc(func(line string) {
		if strings.Contains(line, "starting kube-apiserver") {
			cancel(enough)
		}
	})})
	if !errors.Is(err, enough) {
		t.Errorf("want the cause of the cancellation, got: %v", err)
	}
	checkEmpty(t, temporary)
}

func TestMissingProgramsAreNamed(t *testing.T) {
	useFakePrograms(t, map[string]string{assets.Etcd: "", assets.KubeAPIServer: ""})
	_, err := Start(t.Context(), Options{Controllers: true})
	if !errors.Is(err, assets.ErrMissing) {
		t.Fatalf("want assets.ErrMissing, got %v", err)
	}
	want := "missing: kubectl, kube-controller-manager, kube-scheduler, kwok, kwok-manifests; unset KUBEBUILDER_ASSETS"
	if !strings.Contains(err.Error(), want) {
		t.Errorf("want %q in the error, got: %v", want, err)
	}
}

// writerFunc hands each written text to a function.
type writerFunc func(string)

func (f writerFunc) Write(p []byte) (int, error) {
	f(string(p))
	return len(p), nil
}

// checkEmpty checks that a directory is empty and no process has anything to do with it.
func checkEmpty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > 0 {
		t.Errorf("files are left: %v (error %v)", entries, err)
	}
	if err := noProcesses(t.Context(), dir); err != nil {
		t.Error(err)
	}
}
