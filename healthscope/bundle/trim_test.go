package bundle_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/healthscope/healthscope/healthscope/bundle"
)

const podSpec = `{nodeName: n1, restartPolicy: Always, serviceAccountName: web, tolerations: [{operator: Exists}], volumes: [{name: v, emptyDir: {}}],
	initContainers: [{name: wait, image: wait:1, restartPolicy: Always, command: [wait]}],
	containers: [{name: web, image: web:1, ports: [{containerPort: 80}], resources: {limits: {memory: 1Gi}}, env: [{name: A}], livenessProbe: {httpGet: {path: /}}, volumeMounts: [{name: v, mountPath: /v}]}]}`

// TestWhatATemplateSaysIsNotRepeatedInEachPod asserts that the specs in the lists omit what is in the template of their owner.
func TestWhatATemplateSaysIsNotRepeatedInEachPod(t *testing.T) {
	const (
		owned   = `name: x, namespace: store, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: w, uid: u, controller: true}]`
		related = `name: x, namespace: store, ownerReferences: [{apiVersion: v1, kind: Node, name: n1, uid: u}]`
	)
	short := `{nodeName: n1, restartPolicy: Always, serviceAccountName: web, initContainers: [{name: wait, image: wait:1, restartPolicy: Always}],
		containers: [{name: web, image: web:1, ports: [{containerPort: 80}], resources: {limits: {memory: 1Gi}}}]}`
	for name, tc := range map[string]struct{ object, want string }{
		"pod of a ReplicaSet":        {`{apiVersion: v1, kind: Pod, metadata: {` + owned + `}, spec: ` + podSpec + `}`, short},
		"pod without owner":          {`{apiVersion: v1, kind: Pod, metadata: {name: x, namespace: store}, spec: ` + podSpec + `}`, podSpec},
		"pod with another owner":     {`{apiVersion: v1, kind: Pod, metadata: {` + related + `}, spec: ` + podSpec + `}`, podSpec},
		"pod with odd containers":    {`{apiVersion: v1, kind: Pod, metadata: {` + owned + `}, spec: {containers: [3, {name: a, env: []}], initContainers: 7}}`, `{containers: [3, {name: a}], initContainers: 7}`},
		"ReplicaSet of a Deployment": {`{apiVersion: apps/v1, kind: ReplicaSet, metadata: {` + owned + `}, spec: {replicas: 3, selector: {}, template: {spec: ` + podSpec + `}}}`, `{replicas: 3, selector: {}}`},
		"ReplicaSet without owner":   {`{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: x, namespace: store}, spec: {replicas: 3, template: {spec: ` + podSpec + `}}}`, `{replicas: 3, template: {spec: ` + podSpec + `}}`},
		"Job of a CronJob":           {`{apiVersion: batch/v1, kind: Job, metadata: {` + owned + `}, spec: {template: {spec: ` + podSpec + `}}}`, `{template: {spec: ` + podSpec + `}}`},
		"custom resource named Pod":  {`{apiVersion: acme.example/v1, kind: Pod, metadata: {` + owned + `}, spec: {tolerations: []}}`, `{tolerations: []}`},
	} {
		t.Run(name, func(t *testing.T) {
			object := parse(tc.object)
			status := bundle.Build([]*unstructured.Unstructured{object}, nil, noon, bundle.Options{})
			if diff := cmp.Diff(parse(tc.want).Object, bundle.Objects(&status)[0]["spec"]); diff != "" {
				t.Errorf("spec in the list: -want +got:\n%s", diff)
			}
			if diff := cmp.Diff(parse(tc.object), object); diff != "" {
				t.Errorf("the object itself has changed: -before +after:\n%s", diff)
			}
		})
	}
}
