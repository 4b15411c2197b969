package assets

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fakeGo is a go command that "compiles" by writing a file, and notes what it was asked for, with which settings and how
// often.
const fakeGo = `#!/bin/sh
echo "$1 CGO_ENABLED=$CGO_ENABLED GOFLAGS=$GOFLAGS GOWORK=$GOWORK in $(basename "$PWD") $*" >> "$FAKE_GO_JOURNAL"
case "$1" in
list)
	echo "$FAKE_GO_KWOK"
	;;
build)
	echo "go: downloading example.com/module v1.2.3" >&2
	echo "example.com/module/package" >&2
	$FAKE_GO_TROUBLE
	while [ "$1" != -o ]; do shift; done
	echo program > "$2"
	;;
esac
`

// workshop is a place to build in, with a fake go command and an empty cache.
type workshop struct {
	builder
	journal string
	cache   string
	output  *lockedBuffer
}

// lockedBuffer is a buffer for several writers.
type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

func newWorkshop(t *testing.T) *workshop {
	t.Helper()
	root := t.TempDir()
	w := &workshop{journal: filepath.Join(root, "journal"), cache: filepath.Join(root, "cache"), output: &lockedBuffer{}}
	kwok := filepath.Join(root, "kwok")
	for _, file := range kwokManifestFiles() {
		writeFile(t, filepath.Join(kwok, file), "kind: Manifest\n", 0o444)
	}
	writeFile(t, filepath.Join(root, "bin", "go"), fakeGo, 0o700)
	module := filepath.Join(root, "build")
	if err := os.Mkdir(module, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Join(root, "bin")+":"+os.Getenv("PATH"))
	t.Setenv("HOME", root) // Where os.UserCacheDir looks depends on the platform.
	t.Setenv("XDG_CACHE_HOME", w.cache)
	t.Setenv("FAKE_GO_JOURNAL", w.journal)
	t.Setenv("FAKE_GO_KWOK", kwok)
	t.Setenv("FAKE_GO_TROUBLE", ":")
	w.builder = builder{
		module:    module,
		versions:  Versions{Kubernetes: "v1.37.2", Etcd: "v3.7.3", Kwok: "v0.8.0"},
		log:       w.output,
		heartbeat: time.Hour,
	}
	return w
}

func writeFile(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

// calls are the lines of the fake go command's journal.
func (w *workshop) calls(t *testing.T) []string {
	t.Helper()
	content, err := os.ReadFile(w.journal)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.FieldsFunc(string(content), func(r rune) bool { return r == '\n' })
}

// checkNothingHalfDone checks that the cache holds nothing but the lock file and, if complete is set, the set.
func (w *workshop) checkNothingHalfDone(t *testing.T, complete bool) {
	t.Helper()
	set, err := cached(w.versions)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{w.versions.key() + ".lock"}
	if complete {
		want = []string{w.versions.key(), w.versions.key() + ".lock"}
	}
	entries, err := os.ReadDir(filepath.Dir(set.Dir()))
	if err != nil {
		t.Fatal(err)
	}
	got := make([]string, 0, len(entries))
	for _, entry := range entries {
		got = append(got, entry.Name())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the cache (-want +got):\n%s", diff)
	}
}

func TestBuildFillsTheCacheOnce(t *testing.T) {
	w := newWorkshop(t)
	set, err := w.build(t.Context())
	if err != nil {
		t.Fatalf("build: %v", err)
	}
	if err := set.Require(all()...); err != nil {
		t.Errorf("after build: %v", err)
	}
	w.checkNothingHalfDone(t, true)
	calls := w.calls(t)
	if len(calls) != 7 {
		t.Fatalf("want six builds and a question, got %q", calls)
	}
	for _, call := range calls {
		if !strings.Contains(call, "CGO_ENABLED=0 GOFLAGS=-mod=readonly GOWORK=off in build ") {
			t.Errorf("settings of the go command: %s", call)
		}
	}
	for _, want := range []string{"[2/6] kube-apiserver ... compiling\n", "[2/6] kube-apiserver ... built in ", "about nine minutes"} {
		if !strings.Contains(w.output.String(), want) {
			t.Errorf("want %q in the progress:\n%s", want, w.output)
		}
	}

	w.output.buffer.Reset()
	if _, err := w.build(t.Context()); err != nil {
		t.Fatalf("second build: %v", err)
	}
	if again := w.calls(t); len(again) != len(calls) {
		t.Errorf("a complete cache needs no go command, got %q", again[len(calls):])
	}
	if lines := strings.Count(w.output.String(), "\n"); lines != 1 {
		t.Errorf("want one line when there is nothing to do, got:\n%s", w.output)
	}
}

func TestBuildRepairsAnIncompleteCache(t *testing.T) {
	w := newWorkshop(t)
	set, err := w.build(t.Context())
	if err != nil {
		t.Fatalf("build: %v", err)
	}
	if err := os.Remove(set.Path(KubeScheduler)); err != nil {
		t.Fatal(err)
	}
	writeFile(t, set.Dir()+".tmp-killed/result/etcd", "half", 0o600)
	if _, err := w.build(t.Context()); err != nil {
		t.Fatalf("second build: %v", err)
	}
	if err := set.Require(all()...); err != nil {
		t.Errorf("after repair: %v", err)
	}
	w.checkNothingHalfDone(t, true)
}

func TestAFailedBuildSaysWhyAndLeavesNothing(t *testing.T) {
	w := newWorkshop(t)
	t.Setenv("FAKE_GO_TROUBLE", "exec ls /no/such/package")
	_, err := w.build(t.Context())
	if err == nil || !strings.HasPrefix(err.Error(), "cannot build etcd: ") || !strings.Contains(err.Error(), "/no/such/package") {
		t.Errorf("want an error with the compiler's words, got %v", err)
	}
	w.checkNothingHalfDone(t, false)
}

func TestAnInterruptedBuildLeavesNothing(t *testing.T) {
	w := newWorkshop(t)
	t.Setenv("FAKE_GO_TROUBLE", "sleep 600") // A child of the go command, as a compiler is.
	ctx, cancel := context.WithCancel(t.Context())
	w.heartbeat = time.Millisecond
	w.log = interrupter{after: "now example.com/module/package", interrupt: cancel}
	if _, err := w.build(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("want context.Canceled, got %v", err)
	}
	w.checkNothingHalfDone(t, false)
}

// interrupter calls interrupt when a line contains after.
type interrupter struct {
	after     string
	interrupt func()
}

func (i interrupter) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(i.after)) {
		i.interrupt()
	}
	return len(p), nil
}

func TestAnEmptyCacheIsAnErrorThatTellsWhatToDo(t *testing.T) {
	w := newWorkshop(t)
	set, err := cached(w.versions)
	if err != nil {
		t.Fatalf("cached: %v", err)
	}
	err = set.Require(Etcd, Kubectl)
	if !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "missing: etcd, kubectl; run `make controlplane` first") {
		t.Errorf("got %v", err)
	}
}

func TestEnvironmentVariableReplacesTheCache(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(environmentVariable, dir)
	var output bytes.Buffer
	_, err := Build(t.Context(), &output)
	if !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl, kwok, kwok-manifests") {
		t.Errorf("an empty directory: got %v", err)
	}
	for _, name := range all() {
		writeFile(t, filepath.Join(dir, name), "", 0o700)
	}
	set, err := Build(t.Context(), &output)
	if err != nil || set.Dir() != dir {
		t.Errorf("a complete directory: got %q, error %v", set.Dir(), err)
	}
}
