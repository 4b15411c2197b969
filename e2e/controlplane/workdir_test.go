package controlplane

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/healthscope/healthscope/e2e/controlplane/filelock"
)

func TestSweepRemovesWhatDeadOwnersLeft(t *testing.T) {
	parent := t.TempDir()
	now := time.Now()
	makeDir := func(name string, age time.Duration) string {
		path := filepath.Join(parent, name)
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(path, lockFile), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	makeDir(dirPrefix+"dead", time.Hour)
	makeDir(dirPrefix+"young", time.Second)
	makeDir("somebody-else", time.Hour)
	living := makeDir(dirPrefix+"living", time.Hour)
	lock, err := filelock.TryLock(filepath.Join(living, lockFile))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Release() }()

	sweep(parent, now)

	entries, err := os.ReadDir(parent)
	if err != nil {
		t.Fatal(err)
	}
	left := make([]string, 0, len(entries))
	for _, entry := range entries {
		left = append(left, entry.Name())
	}
	want := []string{dirPrefix + "living", dirPrefix + "young", "somebody-else"}
	if diff := cmp.Diff(want, left); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
}

func TestOpenWorkdirRefusesForeignDirectories(t *testing.T) {
	dir := t.TempDir()
	precious := filepath.Join(dir, "thesis.txt")
	if err := os.WriteFile(precious, []byte("years of work"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := openWorkdir(dir, false)
	if err == nil || !strings.Contains(err.Error(), "not empty and no control plane made it") {
		t.Fatalf("want a refusal, got %v", err)
	}
	if _, err := os.Stat(precious); err != nil {
		t.Errorf("the refusal did harm: %v", err)
	}
}

func TestWorkdirCloseKeepsOrRemoves(t *testing.T) {
	for name, keep := range map[string]bool{"kept": true, "removed": false} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "plane")
			work, err := openWorkdir(dir, keep)
			if err != nil {
				t.Fatalf("openWorkdir: %v", err)
			}
			if err := work.close(); err != nil {
				t.Fatalf("close: %v", err)
			}
			if _, err := os.Stat(dir); keep != (err == nil) {
				t.Errorf("after close: %v", err)
			}
		})
	}
}
