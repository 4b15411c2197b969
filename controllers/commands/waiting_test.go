package commands

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestProgramsWithoutClusterOrRights is the rest of the table of TestEveryCommand. Without a cluster or rights, controller and
// monitor keep trying to lead, log the problem, and stop without an error when they are asked to. Without the right to list
// scopes the controller ends with an error.
func TestProgramsWithoutClusterOrRights(t *testing.T) {
	clearKubeconfig(t)
	forbidden := writeFile(t, "kubeconfig", strings.Replace(contexts, `{server: "https://hub:6443"}`, clusterOf(refusingCluster(t)), 1))
	dead := writeFile(t, "kubeconfig", strings.ReplaceAll(contexts, "https://hub:6443", "https://127.0.0.1:1"))
	config := writeFile(t, "config.yaml", configHeader+"metrics: {bindAddress: '0'}\napi: {bindAddress: '0'}\n")
	for _, c := range []struct {
		command, kubeconfig string
		says                []string // texts of one line of the log
		code                int
	}{
		{"monitor", forbidden, []string{`msg="Error retrieving lease lock"`, `err="no right"`}, 0},
		{"monitor", dead, []string{`msg="Error retrieving lease lock"`, "connection refused"}, 0},
		{"controller", forbidden, []string{"healthscope: cannot run the controller: cannot list HealthScopes: no right"}, 1},
		{"controller", dead, []string{`msg="Error retrieving lease lock"`, "connection refused"}, 0},
	} {
		t.Run(c.command, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, os.Args[0])
			cmd.Args = []string{"healthscope", "healthscope", c.command, "--kubeconfig", c.kubeconfig, "--config", config, "--health-probe-bind-address", "0"}
			out, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			said, lines := false, bufio.NewScanner(out)
			for lines.Scan() {
				if !said && containsAll(lines.Text(), c.says) {
					said = true
					_ = cmd.Process.Signal(syscall.SIGTERM) // It may have ended.
				}
			}
			_ = cmd.Wait() // The exit code is checked below.
			if code := cmd.ProcessState.ExitCode(); !said || code != c.code {
				t.Errorf("it says %q: %t, and exits with %d, want %d", c.says, said, code, c.code)
			}
		})
	}
}

func containsAll(text string, parts []string) bool {
	for _, p := range parts {
		if !strings.Contains(text, p) {
			return false
		}
	}
	return true
}
