package newcomer

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/healthscope/healthscope/e2e/installation"
	"github.com/healthscope/healthscope/e2e/observed"
	"github.com/healthscope/healthscope/e2e/process"
	"github.com/healthscope/healthscope/e2e/suite"
)

// tutorials is the directory of the tutorials, from the root of the source tree.
const tutorials = "config/docs/tutorials"

// TestTheTutorialsAreTrue runs the tutorials, one after the other, in an environment like that of `go run ./e2e/env up`.
func TestTheTutorialsAreTrue(t *testing.T) {
	suite.NeedsControlPlane(t)
	s := enter(t)
	for _, page := range []string{"deployments", "two-clusters", "alerts", "inventory", "group", "local-cluster"} {
		passed := t.Run(page, func(t *testing.T) {
			if page == "alerts" {
				s.findPrometheus(t)
			}
			name := filepath.Join(tutorials, page+".md")
			if steps := s.follow(t, name, read(t, name)); steps == 0 {
				t.Errorf("%s has no commands", name)
			}
		})
		if !passed {
			return // Objects that this page has left behind would make the next pages fail.
		}
	}
	t.Run("plugin", s.plugIn)
}

// completion is the command by which a shell asks kubectl to complete the command line of a plugin, with its output.
const completion = "```console" + `
$ kubectl __complete healthscope clusters remove ""
vfw-cluster-provider+edge01
vfw-cluster-provider+edge02
:4
` + "```\n"

// plugIn installs the program as a plugin of kubectl, as its page says, and checks the completion.
func (s *shell) plugIn(t *testing.T) {
	bin := filepath.Join(s.dir, ".local", "bin")
	check(t, os.MkdirAll(bin, 0o700))
	s.addToPath(bin)
	const name = "config/docs/commands.md"
	if steps := s.follow(t, name, section(read(t, name), "As a plugin of kubectl")); steps == 0 {
		t.Fatalf("%s does not say how the program becomes a plugin", name)
	}
	s.follow(t, "the test", completion)
}

// addToPath adds a directory to PATH.
func (s *shell) addToPath(dir string) {
	for i, variable := range s.env {
		if path, is := strings.CutPrefix(variable, "PATH="); is {
			s.env[i] = "PATH=" + path + string(filepath.ListSeparator) + dir
		}
	}
}

// enter starts the environment, and returns a shell in which its variables are set.
func enter(t *testing.T) *shell {
	t.Helper()
	root, err := filepath.Abs("../..")
	check(t, err)
	bin, err := installation.Build(t.Context(), root)
	check(t, err)
	env, err := installation.StartEnvironment(t.Context(), installation.Options{Root: root, Bin: bin, Dir: t.TempDir()}, "")
	check(t, err)
	t.Cleanup(func() { check(t, env.Stop()) })
	for _, edge := range env.Edges {
		check(t, env.Join(t.Context(), edge))
	}
	variables, err := env.Variables()
	check(t, err)
	s := &shell{root: root, dir: t.TempDir(), sync: func(context.Context) error { return nil }, logs: env.LogTails}
	check(t, os.Symlink(filepath.Join(root, "config"), s.path("config")))
	s.env = slices.Concat(variables, []string{"HOME=" + s.dir, "KUBECACHEDIR=" + s.path("kubectl-cache"), "KUBERC=off"})
	return s
}

// findPrometheus adds the directory of Prometheus's programs to PATH, and sets PROMETHEUS to a free address.
func (s *shell) findPrometheus(t *testing.T) {
	t.Helper()
	dir := filepath.Dir(observed.Program(t, "prometheus"))
	port, err := process.ReservePort()
	check(t, err)
	s.addToPath(dir)
	s.env = append(s.env, fmt.Sprintf("PROMETHEUS=127.0.0.1:%d", port.Number))
}
