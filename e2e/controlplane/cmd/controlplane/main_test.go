package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// programVariable makes the test binary the program itself.
const programVariable = "HEALTHSCOPE_CONTROLPLANE_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(programVariable) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestRunExplainsWrongUsage(t *testing.T) {
	cases := map[string]struct {
		args   []string
		want   error
		stderr string
	}{
		"nothing":                {nil, errUsage, "Usage: controlplane <command>"},
		"an unknown command":     {[]string{"down"}, errUsage, `unknown command "down"`},
		"an unknown flag":        {[]string{"up", "--pods=3"}, errUsage, "flag provided but not defined: -pods"},
		"an unexpected argument": {[]string{"build", "everything"}, errUsage, `unexpected argument "everything"`},
		"a question":             {[]string{"up", "-h"}, flag.ErrHelp, "number of fake nodes"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			if err := run(t.Context(), tc.args, &stdout, &stderr); !errors.Is(err, tc.want) {
				t.Errorf("want %v, got %v", tc.want, err)
			}
			if !strings.Contains(stderr.String(), tc.stderr) {
				t.Errorf("want %q, got:\n%s", tc.stderr, &stderr)
			}
		})
	}
}

func TestUpLastsUntilCtrlC(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	program := exec.CommandContext(ctx, os.Args[0], "up", "--nodes=1")
	program.Env = append(os.Environ(), programVariable+"=1")
	program.Stderr = t.Output()
	stdout, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	kubeconfig, found := strings.CutPrefix(strings.TrimSpace(line), "export KUBECONFIG=")
	if err != nil || !found {
		t.Fatalf("want the line to export KUBECONFIG, got %q, error %v", line, err)
	}
	if _, err := os.Stat(kubeconfig); err != nil {
		t.Errorf("the kubeconfig is not there: %v", err)
	}
	if err := program.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := program.Wait(); err != nil {
		t.Errorf("after Ctrl-C: %v", err)
	}
	if _, err := os.Stat(filepath.Dir(kubeconfig)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is left after Ctrl-C: %v", err)
	}
}
