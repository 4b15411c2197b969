package newcomer

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/healthscope/healthscope/e2e/chart"
	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/e2e/process"
)

const (
	// commandTimeout bounds one command of the README.
	commandTimeout = 3 * time.Minute
	// patience is for how long somebody looks again before they believe that what is printed is not what the README shows.
	patience = 30 * time.Second
	poll     = 200 * time.Millisecond
)

// TestTheReadmeIsTrue runs all of its commands, from the first to the last.
func TestTheReadmeIsTrue(t *testing.T) {
	steps, err := readSteps(readme(t))
	if err != nil {
		t.Fatalf("README.md, %v", err)
	}
	s := prepare(t)
	shown, begin := 0, time.Now()
	for _, step := range steps {
		if len(step.output) > 0 {
			shown++
		}
		s.take(t, step)
	}
	t.Logf("%d commands took %s", len(steps), time.Since(begin).Round(time.Second))
	if len(steps) < 8 || shown < 5 || len(s.kubelet.running) == 0 {
		t.Errorf("README.md has %d commands, %d with output, and %d programs run: too few for a way that leads anywhere", len(steps), shown, len(s.kubelet.running))
	}
}

// shell is where somebody types the commands: a checkout of the project, and kubectl, helm and a cluster.
type shell struct {
	root, dir string
	env       []string
	kubelet   *kubelet
}

// prepare makes the directory, which looks like a checkout with what `make build` makes, and starts the cluster.
func prepare(t *testing.T) *shell {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	s := &shell{root: root, dir: t.TempDir()}
	program := filepath.Join(s.dir, "bin", "healthscope")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	helm, err := chart.New(t.Context(), root, s.path("helm"))
	if err != nil {
		t.Fatal(err)
	}
	plane, err := controlplane.Start(t.Context(), controlplane.Options{Name: "newcomer", Controllers: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { check(t, plane.Stop()) })
	for _, name := range []string{"helm", "tools", "pods"} {
		check(t, os.Mkdir(s.path(name), 0o700))
	}
	for name, target := range map[string]string{
		"charts": filepath.Join(root, "charts"), "config": filepath.Join(root, "config"),
		"tools/kubectl": plane.Kubectl(), "tools/helm": helm.Command(t.Context()).Path,
	} {
		check(t, os.Symlink(target, s.path(name)))
	}
	s.env = []string{
		"PATH=" + s.path("tools") + string(filepath.ListSeparator) + os.Getenv("PATH"), "HOME=" + s.path("helm"),
		"KUBECONFIG=" + plane.KubeconfigPath(), "KUBECACHEDIR=" + s.path("kubectl-cache"), "KUBERC=off",
	}
	s.kubelet = &kubelet{plane: plane, api: newClient(t, plane), program: program, dir: s.path("pods"), running: map[string]*process.Process{}}
	t.Cleanup(func() {
		for _, p := range s.kubelet.running {
			check(t, p.Stop(stopGrace))
		}
	})
	return s
}

func newClient(t *testing.T, plane *controlplane.ControlPlane) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	check(t, corev1.AddToScheme(scheme))
	check(t, appsv1.AddToScheme(scheme))
	api, err := client.New(plane.Config(), client.Options{Scheme: scheme})
	check(t, err)
	return api
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (s *shell) path(name string) string { return filepath.Join(s.dir, name) }

// take types a command, and looks at what it prints; again for a while where nothing but looking is done.
func (s *shell) take(t *testing.T, step step) {
	t.Helper()
	if make, is := strings.CutPrefix(step.command, "make "); is {
		target, _, _ := strings.Cut(make, " ")
		dryRun := exec.CommandContext(t.Context(), "make", "--dry-run", target)
		dryRun.Dir = s.root
		if out, err := dryRun.CombinedOutput(); err != nil {
			t.Fatalf("README.md:%d: %q: %v\n%s", step.line, step.command, err, out)
		}
		return
	}
	begin := time.Now()
	for {
		printed, err := s.run(t, step.command)
		if err != nil {
			t.Fatalf("README.md:%d: %q: %v\n%s%s", step.line, step.command, err, printed, s.logs())
		}
		check(t, s.kubelet.sync(t.Context()))
		diff := step.difference(printed)
		if diff == "" {
			t.Logf("README.md:%d: %s after %s", step.line, strings.SplitN(step.command, "\n", 2)[0], time.Since(begin).Round(10*time.Millisecond))
			return
		}
		if !looks(step.command) || time.Since(begin) > patience {
			t.Fatalf("README.md:%d: %q (-README +printed):\n%s%s", step.line, step.command, diff, s.logs())
		}
	}
}

// looks says whether a command only looks, so that it may be given again.
func looks(command string) bool {
	return strings.HasPrefix(command, "kubectl get ") || strings.HasPrefix(command, "bin/healthscope clusters")
}

// run runs a command, and returns what it prints on its standard output, or all that it prints if it fails.
func (s *shell) run(t *testing.T, command string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", command) //nolint:gosec // The commands are those of the README.
	cmd.Dir, cmd.Env = s.dir, s.env
	var out, problems strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		return out.String() + problems.String(), err
	}
	return out.String(), nil
}

// logs returns the ends of the programs' logs.
func (s *shell) logs() string {
	var text strings.Builder
	for name, p := range s.kubelet.running {
		text.WriteString("\n" + name + ":\n" + p.LogTail() + "\n")
	}
	return text.String()
}
