package v1alpha1_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
)

// etcd is the smallest valid section appContext.
const etcd = "appContext: {endpoints: [\"http://etcd:2379\"]}\n"

// inventory is the smallest valid section inventory.
const inventory = "inventory:\n  url: https://aai.example:8443\n"

func TestValidate(t *testing.T) {
	cases := map[string]struct {
		text string
		// want lists the fields with errors, once for each error, and what the error says after a bar.
		want []string
	}{
		"an empty file":                   {``, nil},
		"an inventory by default":         {inventory, nil},
		"no time limits":                  {`policy: {pendingTimeoutSeconds: 0, notPresentGraceSeconds: 0, noStatusGraceSeconds: 0, failureGraceSeconds: 0, recoveryHoldSeconds: 0}`, nil},
		"negative time limits":            {`policy: {pendingTimeoutSeconds: -1, notPresentGraceSeconds: -1, noStatusGraceSeconds: -1, failureGraceSeconds: -1, recoveryHoldSeconds: -1}`, []string{"policy.pendingTimeoutSeconds|-1: must be at least 0", "policy.notPresentGraceSeconds|-1", "policy.noStatusGraceSeconds|-1", "policy.failureGraceSeconds|-1", "policy.recoveryHoldSeconds|-1"}},
		"label keys":                      {`monitor: {labelKeys: [emco/deployment-id, "a b"], allowedLabels: ["/x"]}`, []string{"monitor.labelKeys[1]|\"a b\"", "monitor.allowedLabels[0]|\"/x\""}},
		"namespaces":                      {`monitor: {namespaces: [store, Store]}`, []string{"monitor.namespaces[1]|\"Store\""}},
		"trusted namespaces":              {`monitor: {trustedNamespaces: [emco, "*"]}`, []string{"monitor.trustedNamespaces[1]"}},
		"trust without a look":            {`monitor: {namespaces: [a], trustedNamespaces: [a, b]}`, []string{"monitor.trustedNamespaces[1]"}},
		"labels without their reason":     {`oam: {labelServices: true}`, []string{"oam.labelServices"}},
		"kinds to monitor":                {`monitor: {kinds: [{apiVersion: v1, kind: Secret}, {apiVersion: cert-manager.io/v1, kind: Certificate}]}`, nil},
		"kinds that cannot be":            {`monitor: {kinds: [{kind: Certificate}, {apiVersion: a/b/c, kind: X}, {apiVersion: v1}, {apiVersion: k8splugin.io/v1alpha1, kind: ResourceBundleState}]}`, []string{"monitor.kinds[0].apiVersion", "monitor.kinds[1].apiVersion", "monitor.kinds[2].kind", "monitor.kinds[3].kind"}},
		"sizes at their ends":             {`monitor: {listBudgetKiB: 1, limitKiB: 1400}`, nil},
		"sizes beyond their ends":         {`monitor: {listBudgetKiB: 0, limitKiB: 1401}`, []string{"monitor.listBudgetKiB", "monitor.limitKiB"}},
		"no room for a bundle":            {`monitor: {limitKiB: 15}`, []string{"monitor.limitKiB"}},
		"bundles by the default label":    {`monitor: {createBundles: {}}`, nil},
		"bundles by a label that is none": {`monitor: {createBundles: {labelKey: "a b"}}`, []string{"monitor.createBundles.labelKey"}},
		"bundles of KubeVela":             {`monitor: {createBundles: {preset: kubevela}}`, nil},
		"presets that are none":           {`monitor: {createBundles: {preset: helm}}`, []string{"monitor.createBundles.preset"}},
		"a preset with another label":     {`monitor: {createBundles: {preset: kubevela, labelKey: app}}`, []string{"monitor.createBundles.labelKey"}},
		"a preset without its names":      {`monitor: {allowedLabels: [], createBundles: {preset: kubevela}}`, []string{"monitor.allowedLabels"}},
		"a fleet":                         {`fleet: {namespace: edges, monitorNamespace: watchers, queriesPerSecond: 1, burst: 1, timeoutSeconds: 60, budget: {bundles: 1, resources: 1, memoryMiB: 1, changesPerSecond: 1, totalMemoryMiB: 1}}`, nil},
		"a budget for nothing":            {`fleet: {budget: {bundles: 0, resources: 0, memoryMiB: 0, changesPerSecond: 0, totalMemoryMiB: -1}}`, []string{"fleet.budget.bundles", "fleet.budget.resources", "fleet.budget.memoryMiB", "fleet.budget.changesPerSecond", "fleet.budget.totalMemoryMiB"}},
		"a fleet that cannot be reached":  {`fleet: {namespace: "*", monitorNamespace: A, queriesPerSecond: 0, burst: 0, timeoutSeconds: 61}`, []string{"fleet.namespace", "fleet.monitorNamespace", "fleet.queriesPerSecond", "fleet.burst", "fleet.timeoutSeconds"}},
		"no API":                          {`api: {bindAddress: "0"}`, nil},
		"the API on loopback":             {`api: {bindAddress: "[::1]:0", defaultNamespace: store}`, nil},
		"the API for everybody":           {`api: {bindAddress: "0.0.0.0:8080", certFile: c, keyFile: k}`, nil},
		"the API without host":            {`api: {bindAddress: ":8080", certFile: c, keyFile: k}`, nil},
		"tokens in the clear":             {`api: {bindAddress: ":8080"}`, []string{"api.certFile|loopback address, such as 127.0.0.1:8082: tokens"}},
		"the same, spelt":                 {`api: {bindAddress: "0.0.0.0:8080"}`, []string{"api.certFile"}},
		"the same, IPv6":                  {`api: {bindAddress: "[::]:8080"}`, []string{"api.certFile"}},
		"tokens in a network":             {`api: {bindAddress: "10.0.0.1:8080"}`, []string{"api.certFile"}},
		"tokens at a name":                {`api: {bindAddress: "host.example:8080"}`, []string{"api.certFile"}},
		"a key without certificate":       {`api: {keyFile: k}`, []string{"api.certFile"}},
		"the API without tokens":          {`api: {bindAddress: "0", anonymousBindAddress: "127.0.0.1:0"}`, nil},
		"the API for everybody, unasked":  {`api: {anonymousBindAddress: ":8080", certFile: c, keyFile: k}`, []string{"api.anonymousBindAddress"}},
		"anonymous on no port":            {`api: {anonymousBindAddress: "localhost"}`, []string{"api.anonymousBindAddress"}},
		"no metrics":                      {`metrics: {bindAddress: "0"}`, nil},
		"metrics for everybody":           {`metrics: {bindAddress: ":8443"}`, nil},
		"metrics with a certificate":      {`metrics: {bindAddress: ":8443", certFile: c, keyFile: k, anonymousBindAddress: "[::1]:8084"}`, nil},
		"metrics without tokens":          {`metrics: {bindAddress: "0", anonymousBindAddress: "127.0.0.1:8080"}`, nil},
		"neither metrics":                 {`metrics: {bindAddress: "0", anonymousBindAddress: "0"}`, nil},
		"metrics for everybody, unasked":  {`metrics: {anonymousBindAddress: ":8084"}`, []string{"metrics.anonymousBindAddress"}},
		"metrics with half a certificate": {`metrics: {bindAddress: ":8443", keyFile: k}`, []string{"metrics.certFile"}},
		"metrics without port":            {`metrics: {bindAddress: localhost, anonymousBindAddress: "localhost:x"}`, []string{"metrics.bindAddress", "metrics.anonymousBindAddress"}},
		"two listeners at one address":    {`metrics: {anonymousBindAddress: "127.0.0.1:8080"}`, []string{"metrics.anonymousBindAddress"}},
		"traces":                          {`tracing: {endpoint: "http://collector:4318", samplingPercent: 0}`, nil},
		"traces, all of them":             {`tracing: {endpoint: "https://collector.example/", samplingPercent: 100}`, nil},
		"traces to nowhere":               {`tracing: {}`, []string{"tracing.endpoint"}},
		"traces to no URL":                {`tracing: {endpoint: "collector:4317", samplingPercent: 101}`, []string{"tracing.endpoint", "tracing.samplingPercent"}},
		"traces with a password":          {`tracing: {endpoint: "https://me:canary@collector:4318", samplingPercent: -1}`, []string{"tracing.endpoint", "tracing.samplingPercent"}},
		"an etcd":                         {`{appContext: {endpoints: ["http://etcd:2379", "http://etcd-1:2379/"], timeoutSeconds: 15}, recorder: {}}`, nil},
		"an etcd with everything":         {`appContext: {endpoints: ["https://etcd:2379"], usernameFile: u, passwordFile: p, caFile: a, certFile: c, keyFile: k, timeoutSeconds: 1}`, nil},
		"no etcd":                         {`appContext: {}`, []string{"appContext.endpoints"}},
		"etcds that cannot be":            {`appContext: {endpoints: ["https://etcd:2379", "http://etcd:2379", "etcd:2379", "https://u:p@etcd:2379", "https://etcd:2379/v3"]}`, []string{"appContext.endpoints[1]", "appContext.endpoints[2]", "appContext.endpoints[3]", "appContext.endpoints[4]"}},
		"an etcd in capitals":             {`appContext: {endpoints: ["HTTPS://etcd:2379"]}`, []string{"appContext.endpoints[0]"}},
		"an authority for nothing":        {`appContext: {endpoints: ["http://etcd:2379"], caFile: a}`, []string{"appContext.endpoints[0]"}},
		"halves of pairs":                 {`appContext: {endpoints: ["https://etcd:2379"], passwordFile: p, certFile: c, timeoutSeconds: 16}`, []string{"appContext.usernameFile", "appContext.certFile", "appContext.timeoutSeconds"}},
		"gRPC in the clear":               {etcd + `rsync: {enabled: true, grpc: {bindAddress: ":9031"}}`, []string{"rsync.grpc.certFile"}},
		"gRPC in the clear, by name":      {etcd + `rsync: {enabled: true, grpc: {bindAddress: ":9031", allowPlaintext: true}}`, nil},
		"gRPC on loopback":                {etcd + `rsync: {enabled: true, grpc: {}}`, nil},
		"gRPC with TLS":                   {etcd + `rsync: {enabled: true, grpc: {bindAddress: ":9031", certFile: c, keyFile: k, clientCAFile: a}}`, nil},
		"gRPC with TLS and without":       {etcd + `rsync: {enabled: true, grpc: {bindAddress: ":9031", certFile: c, keyFile: k, allowPlaintext: true}}`, []string{"rsync.grpc.allowPlaintext"}},
		"gRPC with half a certificate":    {etcd + `rsync: {enabled: true, grpc: {bindAddress: ":9031", keyFile: k, allowPlaintext: true}}`, []string{"rsync.grpc.certFile"}},
		"client authorities without TLS":  {etcd + `rsync: {enabled: true, grpc: {clientCAFile: a}}`, []string{"rsync.grpc.clientCAFile"}},
		"gRPC at no address":              {etcd + `rsync: {enabled: true, grpc: {bindAddress: "x", allowPlaintext: true}}`, []string{"rsync.grpc.bindAddress"}},
		"EMCO's order of deletion":        {etcd + `rsync: {enabled: true, deletionOrder: Listed}`, nil},
		"an order that is none":           {etcd + `rsync: {enabled: true, deletionOrder: reverse}`, []string{"rsync.deletionOrder"}},
		"rsync without etcd":              {`rsync: {enabled: true}`, []string{"rsync.enabled"}},
		"a recorder without etcd":         {`recorder: {}`, []string{"recorder"}},
		"the API twice at one address":    {`api: {anonymousBindAddress: "127.0.0.1:8082"}`, []string{"api.anonymousBindAddress"}},
		"metrics twice at one port":       {`metrics: {bindAddress: ":8080", anonymousBindAddress: "127.0.0.1:8080"}`, []string{"metrics.anonymousBindAddress"}},
		"metrics at two addresses":        {`metrics: {bindAddress: "192.0.2.2:8080", anonymousBindAddress: "127.0.0.1:8080"}`, nil},
		"the API without port":            {`api: {bindAddress: localhost}`, []string{"api.bindAddress|\"localhost\": must be host:port"}},
		"the API on a port too far":       {`api: {bindAddress: "localhost:65536"}`, []string{"api.bindAddress|65536"}},
		"the API on a port by name":       {`api: {bindAddress: "127.0.0.1:http"}`, []string{"api.bindAddress|\"127.0.0.1:http\": the port"}},
		"a namespace that is none":        {`api: {defaultNamespace: "*"}`, []string{"api.defaultNamespace|\"*\""}},
		"no URL":                          {`inventory: {}`, []string{"inventory.url|Required"}},
		"a URL that is none":              {`inventory: {url: "aai.example:8443"}`, []string{"inventory.url|http or https"}},
		"a URL of another kind":           {`inventory: {url: "ftp://aai.example"}`, []string{"inventory.url|\"ftp://aai.example\""}},
		"a URL with a path":               {`inventory: {url: "https://aai.example/aai/v32"}`, []string{"inventory.url|\"https://aai.example/aai/v32\""}},
		"links that are none":             {inventory + "  selflinkBase: hub\n", []string{"inventory.selflinkBase|\"hub\""}},
		"a schema without k8s-resource":   {inventory + "  schemaVersion: v23\n", []string{"inventory.schemaVersion|\"v23\": must be v24"}},
		"a schema of the future":          {inventory + "  schemaVersion: v40\n", nil},
		"a user without password":         {inventory + "  usernameFile: /etc/aai/user\n", []string{"inventory.usernameFile|\"/etc/aai/user\": usernameFile and passwordFile"}},
		"a password without user":         {inventory + "  passwordFile: /etc/aai/password\n", []string{"inventory.usernameFile|passwordFile"}},
		"user and password":               {inventory + "  usernameFile: /etc/aai/user\n  passwordFile: /etc/aai/password\n", nil},
		"no time to answer":               {inventory + "  timeoutSeconds: 0\n  resyncSeconds: 9\n", []string{"inventory.timeoutSeconds|0: must be at least 1", "inventory.resyncSeconds|9: must be at least 10"}},
		"a certificate without key":       {inventory + "  certFile: /etc/aai/tls.crt\n", []string{"inventory.certFile"}},
		"limits at their ends":            {inventory + "  maxRequestsPerSecond: 1\n  maxDeletionPercent: 100\n  policy: upsert-only\n", nil},
		"limits beyond their ends":        {inventory + "  maxRequestsPerSecond: 0\n  maxDeletionPercent: 0\n", []string{"inventory.maxRequestsPerSecond", "inventory.maxDeletionPercent"}},
		"more than all":                   {inventory + "  maxDeletionPercent: 101\n", []string{"inventory.maxDeletionPercent"}},
		"a policy that is none":           {inventory + "  policy: delete-only\n", []string{"inventory.policy"}},
		"a selection that is none":        {inventory + "  select: some\n", []string{"inventory.select|\"some\": supported values: \"scoped\", \"all\""}},
		"Secrets":                         {inventory + "  kinds: [Pod, Secret]\n", []string{"inventory.kinds[1]|never"}},
		"an installation that is none":    {inventory + "  installation: Edge One\n", []string{"inventory.installation|\"Edge One\""}},
		"patterns that are none":          {inventory + "  regions: [{cluster: 'edge[', namespace: 'a\\', cloudOwner: o, cloudRegionId: r, tenantId: t}]\n  links: [{namespace: '[', genericVnfIds: [ok, '[']}]\n", []string{"inventory.regions[0].cluster", "inventory.regions[0].namespace", "inventory.links[0].namespace", "inventory.links[0].genericVnfIds[1]"}},
		"a region with gaps":              {inventory + "  regions: [{cluster: edge, cloudOwner: o, cloudRegionId: r, tenantId: t}, {namespace: store}]\n", []string{"inventory.regions[1].cluster", "inventory.regions[1].cloudOwner", "inventory.regions[1].cloudRegionId", "inventory.regions[1].tenantId"}},
		"a link without namespace":        {inventory + "  links: [{namespace: \"*\"}, {genericVnfIds: [v]}]\n", []string{"inventory.links[1].namespace"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var c configv1alpha1.Configuration
			if err := yaml.UnmarshalStrict([]byte(tc.text), &c); err != nil {
				t.Fatal(err)
			}
			configv1alpha1.SetDefaults(&c)
			var got []string
			for i, err := range configv1alpha1.Validate(&c) {
				got = append(got, err.Error())
				if i < len(tc.want) {
					if name, text, _ := strings.Cut(tc.want[i], "|"); err.Field == name && strings.Contains(err.Error(), text) {
						got[i] = tc.want[i]
					}
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("fields with an error (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnErrorDoesNotTellAPassword(t *testing.T) {
	c := configv1alpha1.Configuration{Inventory: &configv1alpha1.Inventory{URL: "https://aai:s3cr3t@aai.example"}}
	configv1alpha1.SetDefaults(&c)
	want := `inventory.url: Invalid value: "https://aai:xxxxx@aai.example": must not hold a password: use usernameFile and passwordFile`
	if got := configv1alpha1.Validate(&c).ToAggregate(); got == nil || got.Error() != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

func TestAFileOfAnotherKindIsRefused(t *testing.T) {
	c := configv1alpha1.Configuration{}
	configv1alpha1.SetDefaults(&c)
	c.APIVersion, c.Kind = "v1", "ConfigMap"
	if errs := configv1alpha1.Validate(&c); len(errs) != 2 || errs[0].Field != "apiVersion" || errs[1].Field != "kind" {
		t.Errorf("got %v", errs)
	}
}

func TestDefaultsKeepWhatIsSet(t *testing.T) {
	text := `{clusterName: north, policy: {pendingTimeoutSeconds: 5}, monitor: {labelKeys: [a], allowedLabels: [], listBudgetKiB: 8, limitKiB: 64, createBundles: {labelKey: app}}, api: {bindAddress: "0"}, inventory: {url: "http://a", select: all, kinds: [Pod], regions: [{cluster: north, namespace: store}]}}`
	var c configv1alpha1.Configuration
	if err := yaml.UnmarshalStrict([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	set := c.DeepCopy()
	configv1alpha1.SetDefaults(&c)
	got := configv1alpha1.Configuration{
		ClusterName: c.ClusterName, Policy: configv1alpha1.Policy{PendingTimeoutSeconds: c.Policy.PendingTimeoutSeconds},
		Monitor: c.Monitor, API: configv1alpha1.API{BindAddress: c.API.BindAddress},
		Inventory: &configv1alpha1.Inventory{URL: c.Inventory.URL, Select: c.Inventory.Select, Kinds: c.Inventory.Kinds, Regions: c.Inventory.Regions},
	}
	if diff := cmp.Diff(*set, got); diff != "" {
		t.Errorf("what was set (-want +got):\n%s", diff)
	}
}
