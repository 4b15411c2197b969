package bundle_test

import (
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	k8sjson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope/bundle"
)

// noon is the time at which the tests build bundles.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)

// must panics on a mistake in a test's own texts.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// toJSON returns YAML as JSON.
func toJSON(text string) []byte {
	encoded, err := yaml.YAMLToJSON([]byte(text))
	must(err)
	return encoded
}

// encode returns a value as JSON.
func encode(value any) string {
	encoded, err := json.Marshal(value)
	must(err)
	return string(encoded)
}

// parse reads an object from YAML, with numbers as a client of the API server has them.
func parse(text string) *unstructured.Unstructured {
	var object map[string]any
	must(k8sjson.Unmarshal(toJSON(text), &object))
	return &unstructured.Unstructured{Object: object}
}

// parseAll reads several objects.
func parseAll(texts ...string) []*unstructured.Unstructured {
	objects := make([]*unstructured.Unstructured, len(texts))
	for i, text := range texts {
		objects[i] = parse(text)
	}
	return objects
}

// withStatus returns a bundle with a status written in YAML.
func withStatus(status string) *k8spluginv1alpha1.ResourceBundleState {
	b := &k8spluginv1alpha1.ResourceBundleState{}
	b.Name, b.Namespace = "17-shop", "store"
	must(json.Unmarshal(toJSON(status), &b.Status))
	return b
}

// roundTrip returns a status as an API server returns it. The order of keys, the form of numbers and the time zone may differ.
func roundTrip(status k8spluginv1alpha1.ResourceBundleStateStatus) (back k8spluginv1alpha1.ResourceBundleStateStatus) {
	var plain map[string]any
	must(k8sjson.Unmarshal([]byte(encode(status)), &plain))
	must(json.Unmarshal([]byte(encode(plain)), &back))
	return back
}

// read returns the contents of a bundle with a status.
func read(status k8spluginv1alpha1.ResourceBundleStateStatus) bundle.Contents {
	return bundle.Read("edge", &k8spluginv1alpha1.ResourceBundleState{Status: status})
}

// entryNamed returns the entry of an object, or nil if there is none.
func entryNamed(status k8spluginv1alpha1.ResourceBundleStateStatus, kind, name string) *k8spluginv1alpha1.ResourceHealth {
	for i, r := range status.Resources {
		if r.Kind == kind && r.Name == name {
			return &status.Resources[i]
		}
	}
	return nil
}

// shop returns an application with one object of each of several kinds. One of its pods crashes.
func shop() []*unstructured.Unstructured {
	return parseAll(
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: shop, namespace: store, uid: d-1, generation: 2, labels: {app: shop, team: blue}}, spec: {replicas: 2, progressDeadlineSeconds: 300, selector: {matchLabels: {app: shop}}},
		  status: {observedGeneration: 2, replicas: 2, readyReplicas: 1, updatedReplicas: 2, availableReplicas: 1}}`,
		`{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: shop-6b7f, namespace: store, uid: r-1, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: shop, uid: d-1, controller: true}]},
		  spec: {replicas: 2}, status: {observedGeneration: 1, replicas: 2, readyReplicas: 1, availableReplicas: 1}}`,
		`{apiVersion: v1, kind: Pod, metadata: {name: shop-6b7f-aaaaa, namespace: store, uid: p-1, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: shop-6b7f, uid: r-1, controller: true}]},
		  status: {phase: Running, containerStatuses: [{name: web, ready: true}]}}`,
		`{apiVersion: v1, kind: Pod, metadata: {name: shop-6b7f-bbbbb, namespace: store, uid: p-2, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: shop-6b7f, uid: r-1, controller: true}]},
		  status: {phase: Running, containerStatuses: [{name: web, ready: false, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 1, reason: Error}}}]}}`,
		`{apiVersion: v1, kind: Service, metadata: {name: shop, namespace: store, uid: s-1}, spec: {type: ClusterIP}, status: {loadBalancer: {}}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: shop, namespace: store, uid: c-1}, data: {greeting: hello}}`,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: shop, namespace: store, uid: o-1}, rules: [{verbs: [get], apiGroups: [""], resources: [pods]}]}`,
	)
}

// crowd returns n pods of one ReplicaSet, one of which crashes, the ReplicaSet, its Deployment and a Service. The other pods are
// Ready.
func crowd(n int) []*unstructured.Unstructured { return crowdWith(n, n/2) }

// crowdWith is crowd with a given index of the crashing pod.
func crowdWith(n, crashing int) []*unstructured.Unstructured {
	objects := parseAll(
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: shop, namespace: store, uid: d}, status: {observedGeneration: 1, replicas: 2, readyReplicas: 2}}`,
		`{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: shop-6b7f, namespace: store, uid: r, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: shop, controller: true}]}, status: {observedGeneration: 1, replicas: 2, readyReplicas: 2}}`,
		`{apiVersion: v1, kind: Service, metadata: {name: shop, namespace: store, uid: s}}`,
	)
	pod := parse(`{apiVersion: v1, kind: Pod, metadata: {namespace: store, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: shop-6b7f, controller: true}]},
		spec: {containers: [{name: web, image: "registry.example/shop:1"}]}, status: {phase: Running, containerStatuses: [{name: web, ready: true, image: "registry.example/shop:1"}]}}`)
	for i := range n {
		objects = append(objects, copyOf(pod, fmt.Sprintf("shop-6b7f-%05d", i), fmt.Sprintf("00000000-0000-0000-0000-%012d", i)))
		if i == crashing {
			objects[3+i].Object["status"] = parse(`{phase: Running, containerStatuses: [{name: web, ready: false, state: {waiting: {reason: CrashLoopBackOff}}}]}`).Object
		}
	}
	return objects
}

// copyOf returns a copy of an object with another name and uid.
func copyOf(object *unstructured.Unstructured, name, uid string) *unstructured.Unstructured {
	made := object.DeepCopy()
	made.SetName(name)
	made.SetUID(types.UID(uid))
	return made
}

// standalone returns pods without an owner. Every tenth one has failed.
func standalone(n int) []*unstructured.Unstructured {
	objects := make([]*unstructured.Unstructured, n)
	pod := parse(`{apiVersion: v1, kind: Pod, metadata: {namespace: store}, status: {phase: Running, containerStatuses: [{name: web, ready: true}]}}`)
	for i := range objects {
		objects[i] = copyOf(pod, fmt.Sprintf("web-%03d", i), fmt.Sprintf("u%d", i))
		if i%10 == 0 {
			objects[i].Object["status"] = map[string]any{"phase": "Failed"}
		}
	}
	return objects
}
