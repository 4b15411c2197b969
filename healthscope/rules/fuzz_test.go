package rules_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sjson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/healthscope/healthscope/healthscope/rules"
)

// samples are complete objects, one for each family of kinds.
var samples = map[string]string{
	"Deployment": `
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, namespace: store, generation: 4, uid: d-1, labels: {app: shop}}
spec: {replicas: 3, progressDeadlineSeconds: 300, paused: false, selector: {matchLabels: {app: shop}}, template: {metadata: {labels: {app: shop}}, spec: {containers: [{name: web, image: shop:4}]}}}
status:
  observedGeneration: 4
  replicas: 4
  readyReplicas: 3
  updatedReplicas: 2
  availableReplicas: 3
  conditions: [{type: Available, status: "True", reason: MinimumReplicasAvailable}, {type: Progressing, status: "True", reason: ReplicaSetUpdated}, {type: ReplicaFailure, status: "False"}]
`,
	"StatefulSet": `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: store, namespace: store, generation: 2}
spec: {replicas: 3, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 1}}}
status: {observedGeneration: 2, replicas: 3, readyReplicas: 2, updatedReplicas: 1, availableReplicas: 2, currentReplicas: 2}
`,
	"DaemonSet": `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: probe, namespace: store, generation: 1}
spec: {updateStrategy: {type: OnDelete}}
status: {observedGeneration: 1, desiredNumberScheduled: 4, currentNumberScheduled: 4, numberReady: 3, numberAvailable: 3, updatedNumberScheduled: 4}
`,
	"ReplicaSet": `
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: shop-6b7f, namespace: store, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: shop, uid: d-1, controller: true}]}
spec: {replicas: 2}
status: {observedGeneration: 1, replicas: 2, readyReplicas: 1, conditions: [{type: ReplicaFailure, status: "True", reason: FailedCreate, message: quota}]}
`,
	"Pod": `
apiVersion: v1
kind: Pod
metadata: {name: shop-6b7f-x2x4z, namespace: store, uid: p-1, generation: 1, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: shop-6b7f, uid: r-1, controller: true}]}
spec: {restartPolicy: Always, containers: [{name: web, image: "shop:4"}, {name: log, image: "log:1"}], initContainers: [{name: setup, image: "setup:1"}]}
status:
  phase: Running
  observedGeneration: 1
  conditions: [{type: Ready, status: "False", reason: ContainersNotReady}, {type: ContainersReady, status: "False"}, {type: PodScheduled, status: "True"}]
  initContainerStatuses: [{name: setup, ready: true, state: {terminated: {exitCode: 0, reason: Completed}}}]
  containerStatuses:
  - {name: web, image: "shop:4", ready: false, restartCount: 5, state: {waiting: {reason: CrashLoopBackOff, message: back-off}}, lastState: {terminated: {exitCode: 137, reason: OOMKilled}}}
  - {name: log, image: "log:1", ready: true, state: {running: {startedAt: "2026-02-01T00:00:00Z"}}}
`,
	"Job": `
apiVersion: batch/v1
kind: Job
metadata: {name: import, namespace: store}
spec: {completions: 3, parallelism: 1, suspend: false}
status: {active: 1, ready: 1, succeeded: 1, failed: 1, startTime: "2026-02-01T00:00:00Z", conditions: [{type: Suspended, status: "False"}]}
`,
	"Service":   `{apiVersion: v1, kind: Service, metadata: {name: shop, namespace: store}, spec: {type: LoadBalancer, clusterIP: 10.1.2.3}, status: {loadBalancer: {ingress: [{ip: 192.0.2.1}]}}}`,
	"Ingress":   `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: shop, namespace: store}, status: {loadBalancer: {}}}`,
	"Claim":     `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: shop, namespace: store}, status: {phase: Pending}}`,
	"ConfigMap": `{apiVersion: v1, kind: ConfigMap, metadata: {name: shop, namespace: store}, data: {a: b}}`,
	"Gadget":    `{apiVersion: acme.example/v1, kind: Gadget, metadata: {name: g, generation: 2}, status: {observedGeneration: 2, conditions: [{type: Ready, status: "False", reason: Broken, message: no oil}]}}`,
	"Budget":    `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b, generation: 1}, status: {observedGeneration: 1, currentHealthy: 1, desiredHealthy: 2, disruptionsAllowed: 0, expectedPods: 2}}`,
}

// inexact matches numbers that may have another value as floating-point numbers.
var inexact = regexp.MustCompile(`\d{15}|\d[eE]`)

// FuzzEvaluate asserts that any object has a state, a message of limited length in one line, and a rule that decided, and that
// there is no panic.
func FuzzEvaluate(f *testing.F) {
	for _, text := range samples {
		encoded, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(encoded)
	}
	for _, tc := range readObjects(f) {
		f.Add([]byte(tc.Object))
	}
	f.Add([]byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":null,"spec":[],"status":{"replicas":"3","conditions":[null,1,{"type":1}]}}`))
	f.Add([]byte(`{"kind":"Pod","status":{"containerStatuses":[{"ready":1,"state":{"waiting":[]}}],"phase":0}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var asClient, asPlain map[string]any
		if k8sjson.Unmarshal(data, &asClient) != nil || json.Unmarshal(data, &asPlain) != nil {
			return
		}
		got, rule := rules.Explain(&unstructured.Unstructured{Object: asClient}, rules.Options{})
		if !got.State.Valid() || len(got.Message) > 256 || !utf8.ValidString(got.Message) || strings.ContainsAny(got.Message, "\n\r\t") {
			t.Errorf("state %q with message %q", got.State, got.Message)
		}
		if rule == "" {
			t.Errorf("%s, %s, and no word by which rule", got.State, got.Reason)
		}
		if inexact.Match(data) {
			return
		}
		if again := rules.Evaluate(&unstructured.Unstructured{Object: asPlain}, rules.Options{}); again.State != got.State || again.Reason != got.Reason {
			t.Errorf("whole numbers as integers give %s, %s; as fractions %s, %s: %s", got.State, got.Reason, again.State, again.Reason, again.Message)
		}
	})
}
