package process

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// startScript starts a shell script.
func startScript(t *testing.T, script string) *Process {
	t.Helper()
	work := t.TempDir()
	p, err := Start(Spec{Name: "test", Path: "/bin/sh", Args: []string{"-c", script}, Dir: work, LogPath: filepath.Join(work, "log")})
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func TestFailureCarriesTheEndOfTheLog(t *testing.T) {
	p := startScript(t, `i=0; while [ $i -lt 5000 ]; do echo "line $i"; i=$((i+1)); done; echo "the reason" >&2; exit 7`)
	<-p.Exited()
	text := p.Failure().Error()
	if !strings.HasPrefix(text, "test ended: exit status 7; ") || !strings.HasSuffix(text, "line 4999\nthe reason") {
		t.Errorf("failure: %s", text)
	}
	if lines := strings.Count(text, "\n"); lines != tailLines {
		t.Errorf("want %d lines of the log, got %d", tailLines, lines)
	}
}

func TestRestartOnSuccess(t *testing.T) {
	work := t.TempDir()
	runs := filepath.Join(work, "runs")
	p, err := Start(Spec{
		Name: "test", Path: "/bin/sh", Args: []string{"-c", `echo >> runs; [ "$(wc -l < runs)" -ge 3 ] || exit 0; exit 7`}, Dir: work,
		LogPath: filepath.Join(work, "log"), RestartOnSuccess: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	<-p.Exited()
	if err := p.Failure(); !strings.Contains(err.Error(), "exit status 7") {
		t.Errorf("failure: %v", err)
	}
	if text, err := os.ReadFile(runs); err != nil || len(text) != 3 {
		t.Errorf("it ran %d times, want 3 (%v)", len(text), err)
	}
}

func TestStopAsksFirst(t *testing.T) {
	p := startScript(t, "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done")
	for !strings.Contains(p.LogTail(), "up") {
		if !p.Running() || t.Context().Err() != nil {
			t.Fatalf("the script did not start: %s", p.LogTail())
		}
		runtime.Gosched()
	}
	if err := p.Stop(10 * time.Second); err != nil {
		t.Fatalf("Stop: %v", err)
	}
	if !strings.HasSuffix(p.LogTail(), "bye") {
		t.Errorf("the process was not asked: its log is %q", p.LogTail())
	}
}

func TestStopSaysWhenItHadToKill(t *testing.T) {
	p := startScript(t, "trap '' TERM; echo up; while :; do sleep 0.05; done")
	for !strings.Contains(p.LogTail(), "up") {
		if !p.Running() || t.Context().Err() != nil {
			t.Fatalf("the script did not start: %s", p.LogTail())
		}
		runtime.Gosched()
	}
	if err := p.Stop(100 * time.Millisecond); err == nil || !strings.Contains(err.Error(), "did not stop within 100ms") {
		t.Errorf("Stop: %v", err)
	}
	if p.Running() {
		t.Error("still running after Stop")
	}
}
