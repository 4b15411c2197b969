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

		"pendingTimeoutSeconds":  {configHeader + "policy: {pendingTimeoutSeconds: -1}\n", []string{"policy.pendingTimeoutSeconds", "-1", "at least 0"}},
		"notPresentGraceSeconds": {configHeader + "policy: {notPresentGraceSeconds: -2}\n", []string{"policy.notPresentGraceSeconds", "-2"}},
		"failureGraceSeconds":    {configHeader + "policy: {failureGraceSeconds: -3}\n", []string{"policy.failureGraceSeconds", "-3"}},

		"labelKeys":     {configHeader + "monitor: {labelKeys: [ok/key, no/such/key]}\n", []string{"monitor.labelKeys[1]", `"no/such/key"`}},
		"allowedLabels": {configHeader + "monitor: {allowedLabels: ['a b']}\n", []string{"monitor.allowedLabels[0]", `"a b"`}},
		"namespaces":    {configHeader + "monitor: {namespaces: [Default]}\n", []string{"monitor.namespaces[0]", `"Default"`}},

		"bindAddress without port":     {configHeader + "api: {bindAddress: localhost}\n", []string{"api.bindAddress", `"localhost"`, "host:port"}},
		"bindAddress with a bad port":  {configHeader + "api: {bindAddress: '127.0.0.1:http'}\n", []string{"api.bindAddress", `"127.0.0.1:http"`, "port"}},
		"bindAddress with a high port": {configHeader + "api: {bindAddress: '127.0.0.1:65536'}\n", []string{"api.bindAddress", "65536"}},
		"bindAddress of all":           {configHeader + "api: {bindAddress: ':8082'}\n", []string{"api.certFile", "loopback", "tokens"}},
		"bindAddress of all, spelt":    {configHeader + "api: {bindAddress: '0.0.0.0:8082'}\n", []string{"api.certFile", "loopback"}},
		"bindAddress of all, IPv6":     {configHeader + "api: {bindAddress: '[::]:8082'}\n", []string{"api.certFile", "loopback"}},
		"bindAddress of a network":     {configHeader + "api: {bindAddress: '10.0.0.1:8082'}\n", []string{"api.certFile", "loopback"}},
		"bindAddress by a name":        {configHeader + "api: {bindAddress: 'host.example:8082'}\n", []string{"api.certFile", "loopback"}},
		"defaultNamespace":             {configHeader + "api: {defaultNamespace: '*'}\n", []string{"api.defaultNamespace", `"*"`}},

		"no url":               {configHeader + "inventory: {}\n", []string{"inventory.url", "Required"}},
		"url without scheme":   {configHeader + "inventory: {url: 'aai.example:8443'}\n", []string{"inventory.url", "http or https"}},
		"url of another kind":  {configHeader + "inventory: {url: 'ftp://aai.example'}\n", []string{"inventory.url", `"ftp://aai.example"`}},
		"url with a path":      {configHeader + "inventory: {url: 'https://aai.example/aai'}\n", []string{"inventory.url", `"https://aai.example/aai"`}},
		"url with a password":  {configHeader + "inventory: {url: 'https://me:canary@aai.example'}\n", []string{"inventory.url", "passwordFile"}},
		"url that is none":     {configHeader + "inventory: {url: 'https://me:canary@aai example'}\n", []string{"inventory.url"}},
		"selflinkBase":         {aai + "  selflinkBase: hub\n", []string{"inventory.selflinkBase", `"hub"`}},
		"schemaVersion":        {aai + "  schemaVersion: v23\n", []string{"inventory.schemaVersion", `"v23"`, "v24"}},
		"installation":         {aai + "  installation: My_Hub\n", []string{"inventory.installation", `"My_Hub"`}},
		"user, no password":    {aai + "  usernameFile: /u\n", []string{"inventory.usernameFile", `"/u"`, "passwordFile"}},
		"password, no user":    {aai + "  passwordFile: /p\n", []string{"inventory.usernameFile", "passwordFile"}},
		"timeoutSeconds":       {aai + "  timeoutSeconds: 0\n", []string{"inventory.timeoutSeconds", "0", "at least 1"}},
		"resyncSeconds":        {aai + "  resyncSeconds: 9\n", []string{"inventory.resyncSeconds", "9", "at least 10"}},
		"select":               {aai + "  select: some\n", []string{"inventory.select", `"some"`, `"all"`, `"scoped"`}},
		"kinds":                {aai + "  kinds: [Pod, Secret]\n", []string{"inventory.kinds[1]", "never"}},
		"region without where": {aai + "  regions: [{cluster: c}]\n", []string{"inventory.regions[0].cloudOwner", "inventory.regions[0].cloudRegionId", "inventory.regions[0].tenantId"}},
		"region of nothing":    {aai + "  regions: [{cloudOwner: o, cloudRegionId: r, tenantId: t}]\n", []string{"inventory.regions[0].cluster"}},
		"link of nobody":       {aai + "  links: [{genericVnfIds: ['*']}]\n", []string{"inventory.links[0].namespace"}},
		"several at once":      {configHeader + "policy: {failureGraceSeconds: -3}\napi: {defaultNamespace: '*'}\n", []string{"policy.failureGraceSeconds", "api.defaultNamespace"}},
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
		"on loopback, IPv6":    {configHeader + "api: {bindAddress: '[::1]:8082'}\n", complete(func(c *configv1alpha1.Configuration) { c.API.BindAddress = "[::1]:8082" })},
		"no server":            {configHeader + "api: {bindAddress: '0'}\n", complete(func(c *configv1alpha1.Configuration) { c.API.BindAddress = "0" })},
		"no limit":             {configHeader + "policy: {pendingTimeoutSeconds: 0}\n", complete(func(c *configv1alpha1.Configuration) { c.Policy.PendingTimeoutSeconds = new(int32(0)) })},
		"no labels":            {configHeader + "monitor: {allowedLabels: []}\n", complete(func(c *configv1alpha1.Configuration) { c.Monitor.AllowedLabels = []string{} })},
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
