package newcomer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/healthscope/healthscope/e2e/chart"
	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/e2e/kubelet"
	"github.com/healthscope/healthscope/e2e/process"
	"github.com/healthscope/healthscope/e2e/suite"
)

const (
	// commandTimeout is the maximum duration of one command of a page.
	commandTimeout = 3 * time.Minute
	// outputTimeout is how long a command is repeated until its output is that of the page.
	outputTimeout = 30 * time.Second
	poll          = time.Second
)

// TestTheReadmeIsTrue runs all commands of the README in their order, and then the commands that back up and restore the
// objects.
func TestTheReadmeIsTrue(t *testing.T) {
	suite.NeedsControlPlane(t)
	s, pods := prepare(t)
	begin := time.Now()
	text := read(t, "README.md")
	steps, shown := s.follow(t, "README.md", text), strings.Count(text, "\nNAME ")
	checkPicture(t, s.taken)
	t.Logf("%d commands took %s", steps, time.Since(begin).Round(time.Second))
	if steps < 8 || shown < 4 || len(pods.running) != 2 {
		t.Errorf("README.md has %d commands and %d tables, and %d programs run: that leads nowhere", steps, shown, len(pods.running))
	}

	if steps := s.follow(t, operations, section(read(t, operations), "Back up and restore")); steps == 0 {
		t.Errorf("%s does not say how to back up", operations)
	}
	s.follow(t, "the test", restoration)
}

const (
	operations = "config/docs/operations.md"
	// restoration deletes the objects and restores them from the backup as the page says. The monitor may have recreated some
	// bundles before.
	restoration = "```console" + `
$ kubectl delete healthscopes,resourcebundlestates --all
$ ! kubectl create -f objects.yaml 2>&1 | grep -v -e ' created$' -e AlreadyExists
$ kubectl wait --for=condition=Ready hs/vfw --timeout=2m
healthscope.core.oam.dev/vfw condition met
$ kubectl get hs
NAME   HEALTH    READY   PENDING   FAILED   CLUSTERS   AGE
vfw    healthy   9/9     0         0        1/1        3s
`
)

// follow takes all steps of a page, and returns their number.
func (s *shell) follow(t *testing.T, page, text string) int {
	t.Helper()
	steps, err := readSteps(text)
	if err != nil {
		t.Fatalf("%s, %v", page, err)
	}
	for _, step := range steps {
		s.take(t, page, step)
	}
	return len(steps)
}

// shell runs the commands of a page in a directory with the contents of a checkout of the project, and with an environment.
type shell struct {
	root, dir string
	env       []string
	// sync does what the cluster would do after a command.
	sync func(context.Context) error
	// logs returns the ends of the logs of the programs that run.
	logs func() string
	// taken are the executed steps, with their output.
	taken []step
}

// prepare creates the directory, with the contents of a checkout after `make build`, and starts the cluster.
func prepare(t *testing.T) (*shell, *pods) {
	t.Helper()
	root, err := filepath.Abs("../..")
	check(t, err)
	s := &shell{root: root, dir: t.TempDir()}
	program := filepath.Join(s.dir, "bin", "healthscope")
	check(t, process.Build(t.Context(), root, program, "."))
	helm, err := chart.New(t.Context(), root, s.path("helm"))
	check(t, err)
	plane, err := controlplane.Start(t.Context(), controlplane.Options{Name: "newcomer", Controllers: true})
	check(t, err)
	t.Cleanup(func() { check(t, plane.Stop()) })
	for _, name := range []string{"home", "tools", "pods"} {
		check(t, os.Mkdir(s.path(name), 0o700))
	}
	for name, target := range map[string]string{
		"charts": filepath.Join(root, "charts"), "config": filepath.Join(root, "config"),
		"tools/kubectl": plane.Kubectl(), "tools/helm": helm.Command(t.Context()).Path,
	} {
		check(t, os.Symlink(target, s.path(name)))
	}
	s.env = []string{
		"PATH=" + s.path("tools") + string(filepath.ListSeparator) + os.Getenv("PATH"), "HOME=" + s.path("home"),
		"KUBECONFIG=" + plane.KubeconfigPath(), "KUBECACHEDIR=" + s.path("kubectl-cache"), "KUBERC=off",
	}
	api, err := kubernetes.NewForConfig(plane.Config())
	check(t, err)
	pods := &pods{plane: plane, api: api, program: program, dir: s.path("pods"), pods: map[string]*kubelet.Pod{}, running: map[string]*process.Process{}}
	t.Cleanup(func() {
		for _, p := range pods.running {
			check(t, p.Stop(stopGrace))
		}
	})
	s.sync, s.logs = pods.sync, pods.logs
	return s, pods
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (s *shell) path(name string) string { return filepath.Join(s.dir, name) }

// take runs a command and compares its output with the page. A command that only reads is repeated until the output is that of
// the page, at most for outputTimeout.
func (s *shell) take(t *testing.T, page string, step step) {
	t.Helper()
	if s.takeSpecially(t, page, step) {
		return
	}
	begin, printed, diff := time.Now(), "", ""
	err := wait.PollUntilContextTimeout(t.Context(), poll, outputTimeout+commandTimeout, true, func(ctx context.Context) (bool, error) {
		var err error
		printed, err = s.run(ctx, step.command)
		if exit, is := errors.AsType[*exec.ExitError](err); is && exit.ExitCode() == 1 && step.output != nil && strings.Contains(step.command, "healthscope ") {
			err = nil // The program exits with 1 for a negative result, and the page shows its output.
		}
		again := looks(step.command) && time.Since(begin) < outputTimeout
		if err != nil && !again {
			return false, fmt.Errorf("%w\n%s", err, printed)
		}
		diff = step.difference(printed)
		return err == nil && (diff == "" || !again), s.sync(ctx)
	})
	switch {
	case err != nil:
		t.Fatalf("%s:%d: %q: %v\n%s", page, step.line, step.command, err, s.logs())
	case diff != "":
		t.Fatalf("%s:%d: %q (-documented +printed):\n%s%s", page, step.line, step.command, diff, s.logs())
	}
	step.output = strings.Split(strings.TrimRight(printed, "\n"), "\n")
	s.taken = append(s.taken, step)
	first, _, _ := strings.Cut(step.command, "\n")
	t.Logf("%s:%d: %s: after %s", page, step.line, first, time.Since(begin).Round(10*time.Millisecond))
}

// takeSpecially takes a step without output to compare, and reports whether the step was such a step: a make command, whose
// target must exist, a program that runs until the test ends, or the assignment of a variable.
func (s *shell) takeSpecially(t *testing.T, page string, step step) bool {
	t.Helper()
	if rest, is := strings.CutPrefix(step.command, "make "); is {
		target, _, _ := strings.Cut(rest, " ")
		dryRun := exec.CommandContext(t.Context(), "make", "--dry-run", target)
		dryRun.Dir = s.root
		if out, err := dryRun.CombinedOutput(); err != nil {
			t.Fatalf("%s:%d: %q: %v\n%s", page, step.line, step.command, err, out)
		}
		return true
	}
	if command, is := strings.CutSuffix(step.command, " &"); is {
		s.start(t, command)
		return true
	}
	if name, _, _ := strings.Cut(step.command, "="); variable.MatchString(name) {
		s.set(t, page, step, name)
		return true
	}
	return false
}

// looks reports whether a command only reads, so that it may be repeated.
func looks(command string) bool {
	return slices.ContainsFunc([]string{"kubectl get ", "bin/healthscope clusters", "curl ", "promtool query ", "healthscope aai plan ", "healthscope status ", "kubectl __complete "}, func(prefix string) bool {
		return strings.HasPrefix(command, prefix)
	}) || command == "healthscope clusters"
}

// set sets a variable for the commands that follow, as a terminal does.
func (s *shell) set(t *testing.T, page string, step step, name string) {
	t.Helper()
	value, err := s.run(t.Context(), "set -e; "+step.command+"; printf %s \"$"+name+"\"")
	if err != nil || value == "" {
		t.Fatalf("%s:%d: %q sets nothing: %v\n%s%s", page, step.line, step.command, err, value, s.logs())
	}
	s.env = append(s.env, name+"="+value)
}

// start starts a program that runs until the test ends.
func (s *shell) start(t *testing.T, command string) {
	t.Helper()
	cmd := exec.Command("bash", "-c", "exec "+command) //nolint:noctx // It is killed below.
	cmd.Dir, cmd.Env = s.dir, s.env
	check(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}

// run runs a command and returns its standard output. If the command fails, the standard error follows.
func (s *shell) run(ctx context.Context, command string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", command)
	cmd.Dir, cmd.Env = s.dir, s.env
	var out, problems strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		return out.String() + problems.String(), err
	}
	return out.String(), nil
}
