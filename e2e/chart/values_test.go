package chart

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestValuesThatAreRefused checks that Helm names the field of a mistake before it changes the cluster.
func TestValuesThatAreRefused(t *testing.T) {
	for values, want := range map[string]string{
		`replicas: 2`:                                            `'replicas' not allowed`,
		`controller: {replica: 2}`:                               `'/controller': additional properties 'replica' not allowed`,
		`controller: {replicas: "2"}`:                            `/controller/replicas`,
		`controller: {replicas: -1}`:                             `/controller/replicas`,
		`monitor: {resources: {request: {}}}`:                    `'/monitor/resources': additional properties 'request' not allowed`,
		`monitor: {podLabels: {a: 1}}`:                           `/monitor/podLabels/a`,
		`monitor: {extraArgs: ["v=1"]}`:                          `/monitor/extraArgs/0`,
		`controller: {podDisruptionBudget: {maxUnavailable: x}}`: `/controller/podDisruptionBudget/maxUnavailable`,
		`controller: {podDisruptionBudget: {minAvailable: 1}}`:   `'minAvailable' not allowed`,
		`controller: {serviceAccount: {create: "yes"}}`:          `/controller/serviceAccount/create`,
		`image: {tag: 1.0}`:                                      `/image/tag`,
		`image: {pullPolicy: Sometimes}`:                         `/image/pullPolicy`,
		`image: {digest: abc}`:                                   `/image/digest`,
		`image: {repository: ""}`:                                `/image/repository`,
		`imagePullSecrets: [registry]`:                           `/imagePullSecrets/0`,
		`logging: {format: xml}`:                                 `/logging/format`,
		`logging: {verbosity: -1}`:                               `/logging/verbosity`,
		`crds: {healthscope: false}`:                             `'/crds': additional properties 'healthscope' not allowed`,
		`config: {monitors: {}}`:                                 `'/config': additional properties 'monitors' not allowed`,
		`config: {api: {bindAddress: ":8082"}}`:                  `'/config/api': additional properties 'bindAddress' not allowed`,
		`config: {metrics: {bindAddress: ":8080"}}`:              `'/config/metrics': additional properties 'bindAddress' not allowed`,
		`config: {inventory: {}}`:                                `/config/inventory`,
		`config: {monitor: {kinds: [{kind: Secret}]}}`:           `/config/monitor/kinds/0`,
		`config: {fleet: null, kind: Other}`:                     `'kind' not allowed`,
		`api: {service: {port: 0}}`:                              `/api/service/port`,
		`api: {service: {type: External}}`:                       `/api/service/type`,
		`metrics: {service: {}}`:                                 `'/metrics': additional properties 'service' not allowed`,
		`inventory: {credentialsSecret: A_B}`:                    `/inventory/credentialsSecret`,
		`inventory: {password: secret}`:                          `'password' not allowed`,
		`networkPolicy: {apiServerPorts: []}`:                    `/networkPolicy/apiServerPorts`,
		`networkPolicy: {dnsPorts: []}`:                          `/networkPolicy/dnsPorts`,
		`networkPolicy: {dnsPorts: [domain]}`:                    `/networkPolicy/dnsPorts/0`,
		`clustersNamespace: {keep: "no"}`:                        `/clustersNamespace/keep`,
		`serviceMonitor: {interval: often}`:                      `/serviceMonitor/interval`,
		`dashboards: {labels: {grafana_dashboard: 1}}`:           `/dashboards/labels/grafana_dashboard`,
		`extraObjects: [1]`:                                      `/extraObjects/0`,
		// The templates refuse what a schema cannot express.
		`controller: {serviceAccount: {create: false}}`:                                        `controller.serviceAccount.name is needed`,
		`config: {fleet: {namespace: healthscope-system}}`:                                     `config.fleet.namespace is "healthscope-system"`,
		`api: {tls: {secretName: a, certManager: {enabled: true}}}`:                            `api.tls.secretName and api.tls.certManager.enabled are both set`,
		`metrics: {tls: {certManager: {enabled: true}}}`:                                       `metrics.tls.certManager.issuerRef.name is needed`,
		`inventory: {credentialsSecret: aai}`:                                                  `inventory names a Secret, and config.inventory`,
		`rsync: {tls: {secretName: a}}`:                                                        `rsync has settings, and config.rsync.enabled is false`,
		`rsync: {clientCASecret: a}`:                                                           `rsync.clientCASecret is set, and rsync.tls names no certificate`,
		`config: {fleet: {monitorNamespace: monitors}}`:                                        `config.fleet.monitorNamespace is "monitors"`,
		"metrics: {enabled: false}\nserviceMonitor: {enabled: true}":                           `there are no metrics to read`,
		"metrics: {enabled: false}\nprometheusRule: {enabled: true}":                           `there are no metrics to alert on`,
		`serviceMonitor: {enabled: true, ca: {secret: {name: ca, key: ca.crt}}}`:               `serviceMonitor.ca is set, and metrics.tls names no certificate`,
		`api: {enabled: false, port: 80}`:                                                      `api.port is set, and api.enabled is false`,
		`api: {port: 8082}`:                                                                    `api.port is 8082, where the pod listens already`,
		`{api: {port: 9031}, config: {rsync: {enabled: true, grpc: {}}}}`:                      `api.port is 9031, where the pod listens already`,
		`{api: {port: 9031}, config: {rsync: {enabled: true}}, rsync: {tls: {secretName: a}}}`: `api.port is 9031, where the pod listens already`,
		"controller: {enabled: false}\nmonitor: {enabled: false}":                              `controller.enabled and monitor.enabled are both false`,
		"monitor: {serviceAccount: {create: false}}\ncontroller: {enabled: false}\n":           `monitor.serviceAccount.name is needed`,
	} {
		_, err := helm.Render(t.Context(), values)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", values, err, want)
		}
	}
}

// TestValuesThatAreTaken checks values that an overly strict schema would refuse. See also installations.
func TestValuesThatAreTaken(t *testing.T) {
	for _, values := range []string{
		`global: {anything: true}`,
		`controller: {enabled: true, replicas: 0}`,
		`controller: {resources: {requests: {cpu: 1}}}`,
		`controller: {resources: null, podSecurityContext: null, securityContext: null}`,
		`config: {policy: {pendingTimeoutSeconds: 0}, api: {anonymousBindAddress: "127.0.0.1:8083", defaultNamespace: vfw}}`,
		`config: {inventory: {url: "http://aai:8080", usernameFile: /mine/username, passwordFile: /mine/password}}`,
		`serviceMonitor: {interval: 1m30s}`,
		`{api: {port: 8080}, metrics: {enabled: false}}`,
		`api: {port: 9031}`,
		`{api: {port: 9031}, config: {rsync: {enabled: true}}}`,
		`{api: {port: 9031}, config: {rsync: {enabled: false, grpc: {}}}}`,
		`{api: {port: 9031}, config: {rsync: {enabled: true, grpc: {bindAddress: "127.0.0.1:9032"}}}}`,
		`{api: {port: 8080}, controller: {enabled: false}}`,
	} {
		render(t, values)
	}
}

// TestNameOverrideChangesNoLabel: commands select the pods of the programs by the label.
func TestNameOverrideChangesNoLabel(t *testing.T) {
	for _, o := range render(t, `nameOverride: hs`) {
		if name := o.GetLabels()["app.kubernetes.io/name"]; name != "" && name != "healthscope" {
			t.Errorf("%s %q has the label app.kubernetes.io/name: %s", o.GetKind(), o.GetName(), name)
		}
	}
}

// TestRsyncOnLoopbackHasNoService allows calls without TLS, and leaves the address as it is by default.
func TestRsyncOnLoopbackHasNoService(t *testing.T) {
	objects := render(t, `config: {appContext: {endpoints: ["http://etcd:2379"]}, rsync: {enabled: true, grpc: {allowPlaintext: true}}}`)
	for _, name := range having(objects, "Service") {
		if strings.HasSuffix(name, "-rsync") {
			t.Errorf("there is %s, which leads to a port where the pod does not listen", name)
		}
	}
}

// optional matches the values that have no default: Helm's own, those of the configuration, those in lists, and fields of Kubernetes types.
var optional = regexp.MustCompile(`^global$|^config\.|\[\]|\.(resources|affinity|issuerRef)\.`)

// TestTheSchemaIsStrict checks that each object in the schema names its fields and refuses others, unless another project defines its fields.
func TestTheSchemaIsStrict(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(helm.Chart(), "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(data, &schema); err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	data, err = os.ReadFile(filepath.Join(helm.Chart(), "values.yaml"))
	if err := errors.Join(err, yaml.UnmarshalStrict(data, &values)); err != nil {
		t.Fatal(err)
	}
	var walk func(path string, schema map[string]any, value any)
	definitions, _ := schema["definitions"].(map[string]any)
	walk = func(path string, schema map[string]any, value any) {
		if ref, ok := schema["$ref"].(string); ok {
			schema, _ = definitions[strings.TrimPrefix(ref, "#/definitions/")].(map[string]any)
		}
		properties, _ := schema["properties"].(map[string]any)
		ours := len(properties) > 0 || strings.HasPrefix(path, "config.") && strings.Contains(fmt.Sprint(schema["type"]), "object")
		if ours && schema["additionalProperties"] != false {
			t.Errorf("values.schema.json: %q may have any field besides those it names", path)
		}
		if items, ok := schema["items"].(map[string]any); ok {
			walk(strings.TrimSuffix(path, ".")+"[].", items, nil)
		}
		fields, _ := value.(map[string]any)
		for name, below := range properties {
			s, _ := below.(map[string]any)
			v, ok := fields[name]
			if !ok && !optional.MatchString(path+name) {
				t.Errorf("values.schema.json knows %s%s; values.yaml does not say what it is by default", path, name)
			}
			walk(path+name+".", s, v)
		}
	}
	walk("", schema, values)
}
