package controlplane

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/healthscope/healthscope/e2e/process"
)

// startScript starts a shell script that ends with the test.
func startScript(t *testing.T, script string, onExit func(*process.Process)) *process.Process {
	t.Helper()
	work := t.TempDir()
	p, err := process.Start(process.Spec{Name: "test", Path: "/bin/sh", Args: []string{"-c", script}, Dir: work, LogPath: filepath.Join(work, "log"), OnExit: onExit})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func TestJanitorCleansUpAfterItsParent(t *testing.T) {
	for name, keep := range map[string]bool{"and removes the directory": false, "but keeps the directory": true} {
		t.Run(name, func(t *testing.T) {
			dir, remove := filepath.Join(t.TempDir(), "it's a plane"), ""
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if !keep {
				remove = dir
			}
			died := make(chan struct{})
			p := startScript(t, fmt.Sprintf("sh -c 'sleep 600; :' %q & wait", dir), func(*process.Process) { close(died) })
			j, err := startJanitor(remove)
			if err != nil {
				t.Fatalf("startJanitor: %v", err)
			}
			if err := j.watch(p.PID()); err != nil {
				t.Fatalf("watch: %v", err)
			}
			// This is what the kernel does when the parent dies.
			if err := j.input.Close(); err != nil {
				t.Fatalf("cannot close pipe: %v", err)
			}
			if err := j.cmd.Wait(); err != nil {
				t.Fatalf("janitor: %v", err)
			}
			<-died
			// Who is killed is there until the kernel comes to it.
			eventually(t, "its children die with it", func(ctx context.Context) error { return noProcesses(ctx, dir) })
			if _, err := os.Stat(dir); keep != (err == nil) {
				t.Errorf("directory: %v", err)
			}
		})
	}
}

func TestDismissedJanitorDoesNothing(t *testing.T) {
	dir := t.TempDir()
	j, err := startJanitor(dir)
	if err != nil {
		t.Fatalf("startJanitor: %v", err)
	}
	if err := j.dismiss(); err != nil {
		t.Fatalf("dismiss: %v", err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("the directory is gone: %v", err)
	}
}
