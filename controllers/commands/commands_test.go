package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// run runs the program and returns its exit code and its output.
func run(t *testing.T, args ...string) (code int, out, errOut string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = Main(args, strings.NewReader(""), &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

// clearKubeconfig makes the program find no kubeconfig file by default.
func clearKubeconfig(t *testing.T) {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
}

func TestJSONLogContainsOnlyJSON(t *testing.T) {
	clearKubeconfig(t)
	code, out, errOut := run(t, "controller", "--log-format", "json")
	var line struct{ Level, Msg, Err string }
	if err := json.Unmarshal([]byte(errOut), &line); err != nil {
		t.Fatalf("%v: %s%s", err, out, errOut)
	}
	if code != exitUsage || line.Level != "ERROR" || line.Msg != "Cannot run the controller" || !strings.Contains(line.Err, "there is no kubeconfig file") {
		t.Errorf("exit code %d: %+v", code, line)
	}
}

// TestALogHasNoAddresses: controller-runtime names a source of requests that is a function or a channel by its address. The log
// does not contain this name.
func TestALogHasNoAddresses(t *testing.T) {
	var out bytes.Buffer
	logger, err := (&managerFlags{logFormat: "json"}).setLogger(&out)
	if err != nil {
		t.Fatal(err)
	}
	function := source.Func(func(context.Context, workqueue.TypedRateLimitingInterface[reconcile.Request]) error { return nil })
	for _, s := range []any{function, source.Channel[client.Object](nil, nil)} {
		out.Reset()
		logger.WithValues("source", fmt.Sprint(s), "controller", "tokens").Info("Starting EventSource")
		var line map[string]any
		if err := json.Unmarshal(out.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		if _, named := line["source"]; named || line["controller"] != "tokens" {
			t.Errorf("%v: the line is %s", s, out.String())
		}
	}
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{{}, {"help"}, {"--help"}} {
		code, out, errOut := run(t, args...)
		if code != 0 || errOut != "" {
			t.Errorf("%q: exit code %d, error output %q", args, code, errOut)
		}
		for _, command := range []string{"controller", "monitor", "version"} {
			if !regexp.MustCompile(`(?m)^  ` + command + ` +[A-Z]`).MatchString(out) {
				t.Errorf("%q: there is no line about %q in\n%s", args, command, out)
			}
		}
	}
}

func TestLogLines(t *testing.T) {
	say := func(l logr.Logger) {
		l.Info("happened")
		l.V(1).Info("decided")
		l.V(4).Info("detail")
		l.Error(context.Canceled, "went wrong")
	}
	cases := map[string]struct {
		o    managerFlags
		want []string
	}{
		"text":      {managerFlags{logFormat: "text"}, []string{`level=INFO msg=happened`, `level=ERROR msg="went wrong" err="context canceled"`}},
		"decisions": {managerFlags{logFormat: "text", verbosity: 1}, []string{`level=INFO msg=happened`, `level=DEBUG msg=decided`, `level=ERROR msg="went wrong" err="context canceled"`}},
		"details":   {managerFlags{logFormat: "text", verbosity: 4}, []string{`level=INFO msg=happened`, `level=DEBUG msg=decided`, `level=DEBUG msg=detail`, `level=ERROR msg="went wrong" err="context canceled"`}},
		"JSON":      {managerFlags{logFormat: "json", verbosity: 2}, []string{`"level":"INFO","msg":"happened"}`, `"level":"DEBUG","msg":"decided"}`, `"level":"ERROR","msg":"went wrong","err":"context canceled"}`}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			l, err := c.o.setLogger(&out)
			if err != nil {
				t.Fatal(err)
			}
			say(l)
			var got []string
			for line := range strings.Lines(out.String()) {
				_, rest, _ := strings.Cut(strings.TrimSpace(line), map[string]string{"text": " ", "json": ","}[c.o.logFormat])
				got = append(got, rest)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestLeaseNamespace(t *testing.T) {
	if _, err := os.Stat(inClusterNamespace); err == nil {
		t.Fatalf("this test is not to run in a pod, and there is %s", inClusterNamespace)
	}
	for given, want := range map[string]string{"": "healthscope-system", "mine": "mine"} {
		if got := (&managerFlags{namespace: given}).leaseNamespace(); got != want {
			t.Errorf("--namespace %q gives %q, want %q", given, got, want)
		}
	}
}
