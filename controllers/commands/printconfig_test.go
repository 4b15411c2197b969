package commands

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/healthscope/healthscope/controllers/app"
)

// configHeader is the beginning of every configuration file.
const configHeader = "apiVersion: config.healthscope.io/v1alpha1\nkind: Configuration\n"

// writeFile writes a file and returns its path.
func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestPrintConfig: the output of --print-config is a configuration file with the same settings. It is printed unchanged when it
// is the input.
func TestPrintConfig(t *testing.T) {
	clearKubeconfig(t) // It needs no cluster.
	page, err := os.ReadFile("../../config/docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(page), "```yaml\n")
	example, _, _ = strings.Cut(example, "```")
	files := map[string]string{
		"nothing is said":  configHeader,
		"all is said":      example,
		"no labels":        configHeader + "monitor: {allowedLabels: [], labelKeys: [], namespaces: []}\n",
		"zeros":            configHeader + "policy: {pendingTimeoutSeconds: 0, notPresentGraceSeconds: 0, noStatusGraceSeconds: 0}\ntracing: {endpoint: 'http://c:4318', samplingPercent: 0}\n",
		"no servers":       configHeader + "api: {bindAddress: '0'}\nmetrics: {bindAddress: '0'}\n",
		"sections alone":   configHeader + "recorder: {}\nappContext: {endpoints: ['http://etcd:2379']}\nmonitor: {createBundles: {}}\n",
		"nothing for A&AI": configHeader + "inventory: {url: 'http://a', kinds: [], regions: [], links: [{namespace: a, genericVnfIds: []}]}\n",
		"rules":            configHeader + "healthCheckExprs: [{apiVersion: v1, kind: Pod, match: {}, current: '\"a: b\" == \"#\"', failed: 'false'}]\n",
	}
	for name, file := range files {
		t.Run(name, func(t *testing.T) {
			path := writeFile(t, "config.yaml", file)
			want, err := app.LoadConfig(path)
			if err != nil {
				t.Fatal(err)
			}
			code, printed, errOut := run(t, "controller", "--config", path, "--print-config")
			if code != 0 || errOut != "" {
				t.Fatalf("exit code %d, error output %q", code, errOut)
			}
			path = writeFile(t, "printed.yaml", printed)
			got, err := app.LoadConfig(path)
			if err != nil {
				t.Fatalf("what is printed cannot be used: %v\n%s", err, printed)
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || (want.Monitor.AllowedLabels == nil) != (got.Monitor.AllowedLabels == nil) || len(want.Monitor.AllowedLabels) != len(got.Monitor.AllowedLabels) {
				t.Errorf("what is printed says something else, -want +got:\n%s", diff)
			}
			if _, again, _ := run(t, "monitor", "--config", path, "--print-config"); again != printed {
				t.Errorf("what is printed is printed otherwise, -want +got:\n%s", cmp.Diff(printed, again))
			}
		})
	}
}

func TestPrintConfigHasDefaultsAndNoSecrets(t *testing.T) {
	clearKubeconfig(t)
	code, printed, _ := run(t, "monitor", "--print-config")
	for _, line := range []string{"apiVersion: config.healthscope.io/v1alpha1", "clusterName: local", "  bindAddress: 127.0.0.1:8080", "  pendingTimeoutSeconds: 600"} {
		if code != 0 || !strings.Contains(printed, line+"\n") {
			t.Errorf("exit code %d, and %q is not in\n%s", code, line, printed)
		}
	}
	password := writeFile(t, "password", "canary")
	file := configHeader + "inventory: {url: 'http://a', usernameFile: " + password + ", passwordFile: " + password + "}\n"
	if _, printed, _ = run(t, "controller", "--print-config", "--config", writeFile(t, "config.yaml", file)); strings.Contains(printed, "canary") || !strings.Contains(printed, password) {
		t.Errorf("a file is to be named, and not read:\n%s", printed)
	}
}
