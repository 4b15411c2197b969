package chart

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// root is the root of the source tree.
const root = "../.."

// helm is the Helm that the tests use.
var helm *Helm

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	home, err := os.MkdirTemp("", "healthscope-helm-")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(home) }() // A leftover directory does no harm.
	if helm, err = New(context.Background(), root, home); err != nil {
		panic(err)
	}
	return m.Run()
}

// installations holds values that cover every template and every branch in it, by their purpose.
var installations = map[string]string{
	"all in one": ``,
	"port 80":    `api: {port: 80}`,
	"hub":        `monitor: {enabled: false}`,
	"member": `
controller: {enabled: false}
prometheusRule: {enabled: true}
config: {clusterName: provider+edge01, policy: {pendingTimeoutSeconds: 10}}`,
	"highly available": `
commonLabels: {team: edge}
imagePullSecrets: [{name: registry}]
image: {digest: "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}
controller:
  replicas: 2
  priorityClassName: system-cluster-critical
  podAnnotations: {a/b: c}
  podLabels: {a/b: c}
  podDisruptionBudget: {maxUnavailable: 50%}
  nodeSelector: {zone: a}
  tolerations: [{key: edge, operator: Exists}]
  affinity:
    podAntiAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
      - {weight: 1, podAffinityTerm: {topologyKey: zone}}
  topologySpreadConstraints:
  - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway}
  - {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {my: own}}}
  extraArgs: [--verbosity=1]
  extraEnv: [{name: GOMAXPROCS, value: "2"}]
  extraVolumes: [{name: more, emptyDir: {}}]
  extraVolumeMounts: [{name: more, mountPath: /more}]
  serviceAccount: {annotations: {a/b: c}}
monitor: {replicas: 3, serviceAccount: {name: watcher}}`,
	"TLS from Secrets": `
api: {tls: {secretName: api}, service: {type: LoadBalancer, port: 8443, annotations: {a/b: c}}}
metrics: {tls: {secretName: metrics}}
serviceMonitor: {enabled: true, labels: {release: prometheus}, interval: 30s, scrapeTimeout: 10s}`,
	"TLS from another authority": `
metrics: {tls: {secretName: metrics}}
serviceMonitor: {enabled: true, ca: {configMap: {name: roots, key: ca.pem}}}`,
	"TLS from cert-manager": `
api: {tls: {certManager: {enabled: true, issuerRef: {name: ca, kind: ClusterIssuer}, dnsNames: [health.example.org]}}}
metrics: {tls: {certManager: {enabled: true, issuerRef: {name: ca, kind: ClusterIssuer}}}}
serviceMonitor: {enabled: true}`,
	"observed": `
serviceMonitor: {enabled: true}
prometheusRule: {enabled: true, labels: {release: prometheus}}
dashboards: {enabled: true, annotations: {grafana_folder: HealthScope}}
config: {tracing: {endpoint: "http://otel.monitoring:4318", samplingPercent: 10}}`,
	"another reader of metrics": `
serviceMonitor: {enabled: true, authorization: {credentials: {name: mine, key: token}}}`,
	"nothing served": `
api: {enabled: false}
metrics: {enabled: false}`,
	"A&AI and EMCO": `
config:
  clusterName: onap+hub
  inventory:
    url: https://aai.onap:8443
    resyncSeconds: 1234567
    regions: [{cluster: "*", cloudOwner: owner, cloudRegionId: region, tenantId: tenant}]
  appContext: {endpoints: ["https://etcd.emco:2379"]}
  recorder: {}
  healthCheckExprs:
  - {apiVersion: v1, kind: Pod, current: 'status.phase == "{{ Running }}"'}
inventory: {credentialsSecret: aai, caSecret: aai-ca, tlsSecret: aai-tls}
appContext: {credentialsSecret: etcd, caSecret: etcd-ca, tlsSecret: etcd-tls}
networkPolicy: {enabled: true}`,
	"rsync for EMCO": `
config:
  appContext: {endpoints: ["https://etcd.emco:2379"]}
  rsync: {enabled: true}
rsync: {tls: {certManager: {enabled: true, issuerRef: {name: ca}, dnsNames: [rsync]}}, clientCASecret: callers, service: {annotations: {a/b: c}}}
networkPolicy: {enabled: true, rsyncFrom: [{namespaceSelector: {matchLabels: {name: emco}}}]}`,
	"rsync in the clear": `
config:
  appContext: {endpoints: ["https://etcd.emco:2379"]}
  rsync: {enabled: true, grpc: {bindAddress: ":9031", allowPlaintext: true}}`,
	"every option of the monitor": `
config:
  monitor:
    createBundles: {}
    kinds: [{apiVersion: v1, kind: Secret}, {apiVersion: cert-manager.io/v1, kind: Certificate}]
    trustedNamespaces: [vfw]
    limitKiB: 1400`,
	"locked up": `
api: {tls: {secretName: api}}
networkPolicy:
  enabled: true
  dnsPorts: [1053]
  apiServerPorts: [6443]
  metricsFrom: [{namespaceSelector: {matchLabels: {name: monitoring}}}]
  apiFrom: [{podSelector: {}}]
  extraEgress: [{to: [{ipBlock: {cidr: 192.0.2.0/24}}], ports: [{port: 8443}]}]`,
	"status for users without a token": `
rbac: {statusReader: true}`,
	"beside OAM and EMCO": `
crds: {healthScope: false, resourceBundleState: false}`,
	"rights by somebody else": `
rbac: {create: false}
clustersNamespace: {create: false}
controller: {serviceAccount: {create: false, name: mine}}
monitor: {serviceAccount: {create: false, name: mine}}
serviceMonitor: {enabled: true}`,
	"other namespaces": `
fullnameOverride: health
monitor: {enabled: false}
config: {fleet: {namespace: members, monitorNamespace: monitors}}`,
	"more objects": `
extraObjects:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: "{{ .Release.Name }}-more", namespace: default}}
- |
  apiVersion: v1
  kind: ConfigMap
  metadata: {name: {{ .Release.Name }}-text, namespace: default}`,
}

// render returns the objects that the chart renders with values.
func render(t *testing.T, values ...string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := helm.Render(t.Context(), values...)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// named returns the objects of a kind with a name, in any namespace.
func named(objects []*unstructured.Unstructured, kind, name string) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool { return o.GetKind() != kind || o.GetName() != name })
}

// one returns the only object with a kind and a name, as its Go type.
func one[T any](t *testing.T, objects []*unstructured.Unstructured, kind, name string) T {
	t.Helper()
	found := named(objects, kind, name)
	if len(found) != 1 {
		t.Fatalf("there are %d objects of kind %s with name %q; want one in %q", len(found), kind, name, names(objects))
	}
	var object T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(found[0].Object, &object, true); err != nil {
		t.Fatalf("cannot read %s %q: %v", kind, name, err)
	}
	return object
}

// names returns the names of objects, as kind/namespace/name, sorted.
func names(objects []*unstructured.Unstructured) []string {
	var all []string
	for _, o := range objects {
		all = append(all, strings.Join([]string{o.GetKind(), o.GetNamespace(), o.GetName()}, "/"))
	}
	slices.Sort(all)
	return all
}

// having returns the names of the objects of some kinds.
func having(objects []*unstructured.Unstructured, kinds ...string) []string {
	return slices.DeleteFunc(names(objects), func(name string) bool {
		kind, _, _ := strings.Cut(name, "/")
		return !slices.Contains(kinds, kind)
	})
}

func TestLint(t *testing.T) {
	args := []string{"lint", "--strict", helm.Chart(), "--values"}
	for name, values := range installations {
		file := filepath.Join(t.TempDir(), "values.yaml")
		if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := helm.Command(t.Context(), append(slices.Clone(args), file)...).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// TestFilesAreThoseOfConfig checks the chart's copies of files in config. They are copies because Helm cannot read files outside a chart.
func TestFilesAreThoseOfConfig(t *testing.T) {
	want := map[string]string{
		"rbac/controller_role.yaml": "rbac/controller_role.yaml", "rbac/controller_oam.yaml": "rbac/controller_oam.yaml", "rbac/monitor_role.yaml": "rbac/monitor_role.yaml",
		"prometheus/rules.yaml":                           "prometheus/rules.yaml",
		"rbac/controller_deploy.yaml":                     "rbac/deploy/role.yaml",
		"crd/core.oam.dev_applicationconfigurations.yaml": "integrations/oam/applicationconfigurations.yaml",
	}
	for pattern, name := range map[string]func(string) string{
		"crd/*_*.yaml":             func(path string) string { return path },
		"grafana/*.json":           func(path string) string { return path },
		"rbac/oam/*/role.yaml":     func(path string) string { return "rbac/controller_" + filepath.Base(filepath.Dir(path)) + ".yaml" },
		"rbac/options/*/role.yaml": func(path string) string { return "rbac/monitor_" + filepath.Base(filepath.Dir(path)) + ".yaml" },
	} {
		found, err := filepath.Glob(filepath.Join(root, "config", pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("cannot find config/%s: %d found, %v", pattern, len(found), err)
		}
		for _, path := range found {
			relative, _ := filepath.Rel(filepath.Join(root, "config"), path)
			want[name(relative)] = relative
		}
	}
	files := filepath.Join(helm.Chart(), "files")
	for copied, source := range want {
		original, err := os.ReadFile(filepath.Join(root, "config", source))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(files, copied)); err != nil || string(got) != string(original) {
			t.Errorf(`charts/healthscope/files/%s is not config/%s (%v): run "make generate"`, copied, source, err)
		}
	}
	err := filepath.WalkDir(files, func(path string, entry os.DirEntry, err error) error {
		if relative, _ := filepath.Rel(files, path); err == nil && !entry.IsDir() && want[relative] == "" {
			t.Errorf("charts/healthscope/files/%s comes from nowhere", relative)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
