package assets

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeGo is a go command that "compiles" by writing a file, unless $TROUBLE makes it fail. It records its arguments.
const fakeGo = `#!/bin/sh
echo "$*" >> "$JOURNAL"
case "$1" in
list)
	echo "$KWOK"
	;;
build)
	while [ "$1" != -o ]; do shift; done
	echo program > "$2"
	$TROUBLE
	;;
esac
`

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
		t.Fatal(err)
	}
}

// TestBuild checks that a failed build reports the cause, and that the next build continues after the programs that exist.
func TestBuild(t *testing.T) {
	root := t.TempDir()
	journal := filepath.Join(root, "journal")
	for _, file := range kwokStages() {
		write(t, filepath.Join(root, "kwok", file), "kind: Stage\n")
	}
	write(t, filepath.Join(root, "bin", "go"), fakeGo)
	t.Setenv("PATH", filepath.Join(root, "bin")+":"+os.Getenv("PATH"))
	t.Setenv("HOME", root) // The variable that os.UserCacheDir reads depends on the platform.
	t.Setenv("XDG_CACHE_HOME", filepath.Join(root, "cache"))
	t.Setenv("KUBEBUILDER_ASSETS", "")
	t.Setenv("JOURNAL", journal)
	t.Setenv("KWOK", filepath.Join(root, "kwok"))

	t.Setenv("TROUBLE", "eval case $2 in *kube-scheduler*) echo 'no space left' >&2; exit 1; esac")
	if _, err := Build(t.Context(), t.Output()); err == nil || !strings.Contains(err.Error(), "cannot build kube-scheduler") || !strings.Contains(err.Error(), "no space left") {
		t.Fatalf("a program that cannot be compiled: %v", err)
	}
	set, err := Locate()
	if err != nil {
		t.Fatal(err)
	}
	if err := set.Require(KubeScheduler); err == nil || !strings.Contains(err.Error(), "missing: kube-scheduler; run `make controlplane`") {
		t.Errorf("a program that was not compiled is there: %v", err)
	}

	t.Setenv("TROUBLE", ":")
	if _, err := Build(t.Context(), t.Output()); err != nil {
		t.Fatal(err)
	}
	if err := set.Require(all()...); err != nil {
		t.Error(err)
	}
	if _, err := Build(t.Context(), t.Output()); err != nil {
		t.Fatal(err)
	}
	calls, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(calls, []byte("build ")); n != len(programs())+1 {
		t.Errorf("%d programs were compiled, want each once and one a second time:\n%s", n, calls)
	}

	t.Setenv("KUBEBUILDER_ASSETS", root)
	if _, err := Build(t.Context(), t.Output()); err == nil || !strings.Contains(err.Error(), "unset KUBEBUILDER_ASSETS") {
		t.Errorf("a directory without programs: %v", err)
	}
}
