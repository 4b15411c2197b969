package app

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/healthscope"
)

// testTimeout is the timeout of the wait for an expected event.
const testTimeout = 20 * time.Second

// logs holds log lines for which a test can wait.
type logs struct {
	mu    sync.Mutex
	text  bytes.Buffer
	added chan struct{}
}

func newLogs() *logs { return &logs{added: make(chan struct{}, 1)} }

// Write implements io.Writer.
func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.added <- struct{}{}:
	default:
	}
	return l.text.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *logs) logger() logr.Logger {
	return logr.FromSlogHandler(slog.NewTextHandler(l, nil))
}

// waitFor waits until a text has been logged.
func (l *logs) waitFor(t *testing.T, text string) {
	t.Helper()
	deadline := time.After(testTimeout)
	for !strings.Contains(l.String(), text) {
		select {
		case <-l.added:
		case <-deadline:
			t.Fatalf("%q was not logged in\n%s", text, l.String())
		}
	}
}

// watchedFile is a configuration file under watch.
type watchedFile struct {
	path string
	logs *logs
	// changed receives the expressions of rules each time they change.
	changed chan []configv1alpha1.HealthCheckExpr
	// stopped receives each call that ends the program.
	stopped chan struct{}
	// metric reports whether the file is refused.
	metric prometheus.Collector
}

// watch watches a file, and ends with the test.
func watch(t *testing.T, path string) *watchedFile {
	t.Helper()
	leaks := goleak.IgnoreCurrent()
	running, err := LoadConfig(path)
	if err != nil {
		t.Fatal(err)
	}
	w := &watchedFile{path: path, logs: newLogs(), changed: make(chan []configv1alpha1.HealthCheckExpr, 100), stopped: make(chan struct{}, 100)}
	checks := newHealthChecks(running, w.logs.logger())
	checks.file, checks.stop = path, func() { w.stopped <- struct{}{} }
	checks.Subscribe(func() { w.changed <- checks.compiled.Load().exprs })
	w.metric = checks
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- checks.watch()(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the watch ends with %v", err)
		}
		goleak.VerifyNone(t, leaks)
	})
	return w
}

// save replaces the file in one step, as editors do.
func (w *watchedFile) save(t *testing.T, text string) {
	t.Helper()
	other := w.path + ".new"
	if err := os.WriteFile(other, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(other, w.path); err != nil {
		t.Fatal(err)
	}
}

// expect waits for a change of the rules to those of the given kinds.
func (w *watchedFile) expect(t *testing.T, kinds ...string) {
	t.Helper()
	select {
	case exprs := <-w.changed:
		var got []string
		for _, e := range exprs {
			got = append(got, e.Kind)
		}
		if diff := cmp.Diff(kinds, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	case <-time.After(testTimeout):
		t.Fatalf("no change to %q was seen; logged:\n%s", kinds, w.logs)
	}
}

// expectNoChange fails the test if the rules have changed.
func (w *watchedFile) expectNoChange(t *testing.T) {
	t.Helper()
	select {
	case exprs := <-w.changed:
		t.Errorf("a change without need: %v", exprs)
	default:
	}
}

// expectRefused fails the test if the metric differs from want.
func (w *watchedFile) expectRefused(t *testing.T, want float64) {
	t.Helper()
	if got := testutil.ToFloat64(w.metric); got != want {
		t.Errorf("healthscope_configuration_refused is %v, want %v; logged:\n%s", got, want, w.logs)
	}
}

// ruleFor returns a configuration with a rule for each of the given kinds.
func ruleFor(kinds ...string) string {
	var b strings.Builder
	b.WriteString(configHeader)
	b.WriteString("healthCheckExprs:\n")
	for _, kind := range kinds {
		b.WriteString("- {apiVersion: v1, kind: " + kind + ", current: 'true'}\n")
	}
	return b.String()
}

func TestReloadAppliesChangesOfTheFile(t *testing.T) {
	w := watch(t, writeConfig(t, configHeader))
	w.save(t, ruleFor("Pod"))
	w.expect(t, "Pod")
	if err := os.WriteFile(w.path, []byte(ruleFor("Pod", "Service")), 0o600); err != nil { // In place.
		t.Fatal(err)
	}
	w.expect(t, "Pod", "Service")
	w.save(t, configHeader)
	w.expect(t)
	w.expectNoChange(t)
}

func TestReloadIgnoresAnInvalidFile(t *testing.T) {
	w := watch(t, writeConfig(t, ruleFor("Pod")))
	w.expectRefused(t, 0)
	w.save(t, ruleFor("Service")+"unknown: field\n")
	w.logs.waitFor(t, `unknown field \"unknown\"`)
	w.expectRefused(t, 1)
	w.save(t, ruleFor("Pod", "Job"))
	w.expect(t, "Pod", "Job")
	w.expectRefused(t, 0)
	if err := os.Remove(w.path); err != nil {
		t.Fatal(err)
	}
	w.logs.waitFor(t, "cannot read the configuration file")
	w.expectRefused(t, 1)
	w.save(t, ruleFor("Pod", "Job"))
	w.save(t, ruleFor("Pod", "Pod2"))
	w.expect(t, "Pod", "Pod2")
	w.expectRefused(t, 0)
	w.expectNoChange(t)
}

func TestReloadStopsTheProgramWhenOtherSettingsChange(t *testing.T) {
	w := watch(t, writeConfig(t, ruleFor("Pod")))
	w.save(t, ruleFor("Pod")+"clusterName: north\napi: {bindAddress: '0'}\n")
	select {
	case <-w.stopped:
	case <-time.After(testTimeout):
		t.Fatalf("the program goes on:\n%s", w.logs)
	}
	if !strings.Contains(w.logs.String(), `settings="[clusterName api]"`) {
		t.Errorf("the settings are not named: %s", w.logs)
	}
	w.expectNoChange(t)
}

// TestReloadFollowsAMountedConfigMap changes the file like the kubelet, which replaces a link to the folder with the data.
func TestReloadFollowsAMountedConfigMap(t *testing.T) {
	dir := t.TempDir()
	publish := func(version, text string) {
		t.Helper()
		if err := os.Mkdir(filepath.Join(dir, version), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, version, "config.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(version, filepath.Join(dir, "..data_tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	publish("..1", ruleFor("Pod"))
	if err := os.Symlink("..data/config.yaml", filepath.Join(dir, "config.yaml")); err != nil {
		t.Fatal(err)
	}
	w := watch(t, filepath.Join(dir, "config.yaml"))
	publish("..2", ruleFor("Service"))
	w.expect(t, "Service")
	publish("..3", ruleFor("Pod"))
	w.expect(t, "Pod")
}

func TestFileWatchWaitsWhenWatchingFails(t *testing.T) {
	lines := newLogs()
	watch := watchFiles([]string{filepath.Join(t.TempDir(), "absent", "config.yaml")}, lines.logger(), nil)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- watch(ctx) }()
	lines.waitFor(t, "Cannot watch files")
	select {
	case err := <-ended:
		t.Errorf("it has ended before its context, with %v", err)
	default:
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestHealthChecksAreReplaced(t *testing.T) {
	lines := newLogs()
	pod := map[string]any{"apiVersion": "v1", "kind": "Pod"}
	exprs := func(text string) []configv1alpha1.HealthCheckExpr {
		t.Helper()
		c, err := ParseConfig([]byte(configHeader + "healthCheckExprs: " + text + "\n"))
		if err != nil {
			t.Fatal(err)
		}
		return c.HealthCheckExprs
	}
	state := func(h *healthChecks) healthscope.State {
		r, _, _ := h.Evaluate(pod)
		return r.State
	}
	h := newHealthChecks(&configv1alpha1.Configuration{}, lines.logger())
	if h.Covers("v1", "Pod") || h.Problem() != "" || state(h) != "" || testutil.CollectAndCount(h) != 0 {
		t.Error("there are no rules, and they do something")
	}

	h.use(exprs(`[{apiVersion: v1, kind: Pod, current: "true"}, {name: broken, apiVersion: v1, kind: Pod, failed: "1", current: "2"}, {name: other, apiVersion: v1, kind: Job, current: "x("}]`))
	if !h.Covers("v1", "Pod") || state(h) != healthscope.Ready {
		t.Errorf("the good rule does not count: %q", state(h))
	}
	const want = `2 of 3 health checks cannot be used: broken, other. The first: cannot use health check "broken": failed: the expression gives a value of type int; it must give true or false`
	if got := h.Problem(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	const metric = `# HELP healthscope_health_rule_errors 1 for each rule of yours that cannot be used. The others have no series. Monitor and controller have it, each replica.
# TYPE healthscope_health_rule_errors gauge
healthscope_health_rule_errors{rule="broken"} 1
healthscope_health_rule_errors{rule="other"} 1
`
	if err := testutil.CollectAndCompare(h, strings.NewReader(metric)); err != nil {
		t.Error(err)
	}
	if n := strings.Count(lines.String(), "A health check is left out"); n != 3 {
		t.Errorf("%d of 3 errors are logged:\n%s", n, lines)
	}

	h.use(exprs(`[{apiVersion: v1, kind: Pod, current: "false"}]`))
	if state(h) != healthscope.Pending || h.Problem() != "" || testutil.CollectAndCount(h) != 0 {
		t.Errorf("the new rules are not in force: %s, %q", state(h), h.Problem())
	}
}
