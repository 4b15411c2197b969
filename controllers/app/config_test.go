package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/controllers/monitor"
	"github.com/healthscope/healthscope/healthscope"
)

// configHeader begins every configuration file.
const configHeader = "apiVersion: config.healthscope.io/v1alpha1\nkind: Configuration\n"

// writeConfig writes a configuration file and returns its path.
func writeConfig(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoadConfigRejectsInvalidFiles(t *testing.T) {
	const aai = configHeader + "inventory:\n  url: https://aai.example:8443\n"
	cases := map[string]struct {
		file string
		// want are texts in the error, mostly the field and the value.
		want []string
	}{
		"nothing":            {"", []string{"apiVersion and kind", `"config.healthscope.io/v1alpha1"`, `"Configuration"`}},
		"no kind":            {"apiVersion: config.healthscope.io/v1alpha1\n", []string{"apiVersion and kind"}},
		"other apiVersion":   {"apiVersion: config.healthscope.io/v2\nkind: Configuration\n", []string{"apiVersion", `"config.healthscope.io/v2"`, `"config.healthscope.io/v1alpha1"`}},
		"other kind":         {"apiVersion: config.healthscope.io/v1alpha1\nkind: Config\n", []string{"kind", `"Config"`, `"Configuration"`}},
		"no YAML":            {configHeader + "policy: [\n", []string{"line 3"}},
		"two documents":      {configHeader + "---\nclusterName: hub\n", []string{"2 YAML documents"}},
		"a field twice":      {configHeader + "clusterName: a\nclusterName: b\n", []string{`"clusterName"`, "already set"}},
		"unknown field":      {configHeader + "clustername2: x\n", []string{`unknown field "clustername2"`}},
		"unknown field deep": {aai + "  regions:\n  - {cluster: c, cloudowner2: x}\n", []string{`unknown field`, `cloudowner2`}},
		"wrong type":         {configHeader + "policy: {pendingTimeoutSeconds: soon}\n", []string{"policy.pendingTimeoutSeconds is a string", "int32"}},
		"wrong shape":        {configHeader + "monitor: all\n", []string{"monitor is a string"}},
		"fraction":           {configHeader + "policy: {pendingTimeoutSeconds: 1.5}\n", []string{"policy.pendingTimeoutSeconds", "1.5"}},

		"url that is none": {configHeader + "inventory: {url: 'https://me:canary@aai example'}\n", []string{"inventory.url"}},
		"several at once":  {configHeader + "policy: {failureGraceSeconds: -3}\napi: {defaultNamespace: '*'}\n", []string{"policy.failureGraceSeconds", "api.defaultNamespace"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			path := writeConfig(t, c.file)
			_, err := LoadConfig(path)
			if err == nil {
				t.Fatal("it is taken")
			}
			for _, want := range append(c.want, "cannot use configuration file", path) {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v\ndoes not say %s", err, want)
				}
			}
			if strings.Contains(err.Error(), "canary") {
				t.Errorf("%v\ntells a password", err)
			}
		})
	}
}

func TestLoadConfigAcceptsValidFiles(t *testing.T) {
	complete := func(change func(*configv1alpha1.Configuration)) *configv1alpha1.Configuration {
		c := &configv1alpha1.Configuration{}
		change(c)
		configv1alpha1.SetDefaults(c)
		return c
	}
	cases := map[string]struct {
		file string
		want *configv1alpha1.Configuration
	}{
		"nothing is said":      {configHeader, complete(func(*configv1alpha1.Configuration) {})},
		"comments and markers": {"# A file.\n---\n" + configHeader + "# The end.\n---\n# Really.\n", complete(func(*configv1alpha1.Configuration) {})},
		"on loopback, by name": {configHeader + "api: {bindAddress: 'localhost:0'}\n", complete(func(c *configv1alpha1.Configuration) { c.API.BindAddress = "localhost:0" })},
		"JSON": {
			`{"apiVersion":"config.healthscope.io/v1alpha1","kind":"Configuration","clusterName":"hub"}`,
			complete(func(c *configv1alpha1.Configuration) { c.ClusterName = "hub" }),
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := LoadConfig(writeConfig(t, c.file))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestLoadConfigFillsInDefaults(t *testing.T) {
	c, err := LoadConfig("")
	if err != nil {
		t.Fatal(err)
	}
	if errs := configv1alpha1.Validate(c); len(errs) > 0 {
		t.Errorf("the defaults are not valid: %v", errs.ToAggregate())
	}
	if c.ClusterName != "local" || c.API.BindAddress != "127.0.0.1:8082" || c.Inventory != nil {
		t.Errorf("got %+v", c)
	}
	if diff := cmp.Diff(healthscope.DefaultPolicy(), PolicyOf(c.Policy)); diff != "" {
		t.Errorf("-default +configured:\n%s", diff)
	}
}

func TestPolicyOf(t *testing.T) {
	c, err := LoadConfig(writeConfig(t, configHeader+"policy: {pendingTimeoutSeconds: 0, notPresentGraceSeconds: 5, noStatusGraceSeconds: 3, failureGraceSeconds: 7, recoveryHoldSeconds: 9}\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := healthscope.Policy{NotPresentGrace: 5 * time.Second, NoStatusGrace: 3 * time.Second, FailureGrace: 7 * time.Second, RecoveryHold: 9 * time.Second}
	if diff := cmp.Diff(want, PolicyOf(c.Policy)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// FuzzParseConfig checks that any file gives a valid configuration or an error.
func FuzzParseConfig(f *testing.F) {
	f.Add(configHeader)
	f.Add(configHeader + "inventory: {url: 'https://aai.example', regions: [{cluster: c}]}\n")
	f.Add("---\n---\n--- # x\n" + configHeader + "---")
	f.Add("apiVersion: [")
	f.Fuzz(func(t *testing.T, file string) {
		c, err := ParseConfig([]byte(file))
		switch {
		case err != nil && err.Error() == "":
			t.Error("an error without words")
		case err == nil && len(configv1alpha1.Validate(c)) > 0:
			t.Errorf("not valid: %v", configv1alpha1.Validate(c))
		}
	})
}

func TestMonitorOptions(t *testing.T) {
	c, err := LoadConfig(writeConfig(t, configHeader+`
monitor:
  labelKeys: [a]
  namespaces: [store]
  allowedLabels: [b]
  kinds: [{apiVersion: cert-manager.io/v1, kind: Certificate}, {apiVersion: v1, kind: Secret}]
  discover: true
  trustedNamespaces: [store]
  listBudgetKiB: 1
  limitKiB: 64
  createBundles: {}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := monitor.Options{
		LabelKeys: []string{"a"}, Namespaces: []string{"store"}, AllowedLabels: []string{"b"}, Discover: true, TrustedNamespaces: []string{"store"},
		Kinds:      append(monitor.DefaultKinds(), schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: "Certificate"}, schema.GroupVersionKind{Version: "v1", Kind: "Secret"}),
		ListBudget: 1024, HardLimit: 65536, CreateBundles: "healthscope.core.oam.dev/name",
	}
	if diff := cmp.Diff(want, monitorOptionsOf(c.Monitor)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestRsyncOptions(t *testing.T) {
	for file, want := range map[string]configv1alpha1.DeletionOrder{"rsync: {enabled: true}": "Reverse", "rsync: {enabled: true, deletionOrder: Listed}": "Listed"} {
		c, err := LoadConfig(writeConfig(t, configHeader+"appContext: {endpoints: ['http://etcd:2379']}\npolicy: {failureGraceSeconds: 7}\n"+file))
		if err != nil {
			t.Fatal(err)
		}
		if got := rsyncOptionsOf(c); got.DeletionOrder != want || got.Policy.FailureGrace != 7*time.Second {
			t.Errorf("%s: deletion order %q, policy %+v; want %q", file, got.DeletionOrder, got.Policy, want)
		}
	}
}
