package bundle_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/healthscope/healthscope/healthscope/bundle"
)

// canary is a word that must not occur in any bundle.
const canary = "CANARY7f3a"

// secretive are objects with the canary in every place that may hold a secret.
var secretive = map[string]string{
	"Secret":    `{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: store, managedFields: [{manager: CANARY7f3a}], annotations: {kubectl.kubernetes.io/last-applied-configuration: CANARY7f3a}}, data: {a: CANARY7f3a}, stringData: {b: CANARY7f3a}}`,
	"ConfigMap": `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: store}, data: {a: CANARY7f3a}, binaryData: {b: CANARY7f3a}, spec: {x: CANARY7f3a}, other: CANARY7f3a}`,
	"Pod": `{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: store, annotations: {objectset.rio.cattle.io/applied: CANARY7f3a}}, spec: {
		initContainers: [{name: i, env: [{name: A, value: CANARY7f3a}]}], ephemeralContainers: [{name: e, env: [{name: A, value: CANARY7f3a}]}],
		containers: [{name: a, env: [{name: A, value: CANARY7f3a, extra: CANARY7f3a}, CANARY7f3a], livenessProbe: {httpGet: {httpHeaders: [{name: Authorization, value: CANARY7f3a}]}}}]}}`,
	"Deployment":         `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: store}, spec: {template: {metadata: {managedFields: [CANARY7f3a], annotations: {banzaicloud.com/last-applied: CANARY7f3a}}, spec: {containers: [{env: [{name: A, value: CANARY7f3a}]}]}}}}`,
	"ReplicaSet":         `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: r, namespace: store}, spec: {template: {spec: {containers: [{env: [{name: A, value: CANARY7f3a}]}]}}}}`,
	"CronJob":            `{apiVersion: batch/v1, kind: CronJob, metadata: {name: c, namespace: store}, spec: {jobTemplate: {spec: {template: {spec: {containers: [{env: [{name: A, value: CANARY7f3a}]}]}}}}}}`,
	"ControllerRevision": `{apiVersion: apps/v1, kind: ControllerRevision, metadata: {name: r, namespace: store}, data: {spec: {template: {spec: {containers: [{env: [{name: A, value: CANARY7f3a}]}]}}}}}`,
	"Object":             `{apiVersion: kubernetes.crossplane.io/v1alpha2, kind: Object, metadata: {name: o, namespace: store}, spec: {forProvider: {manifest: {apiVersion: v1, kind: Secret, metadata: {name: s}, data: {a: CANARY7f3a}, stringData: {b: CANARY7f3a}}}}, status: {atProvider: {manifest: {apiVersion: v1, kind: Secret, data: {a: CANARY7f3a}}}}}`,
	"ManifestWork":       `{apiVersion: work.open-cluster-management.io/v1, kind: ManifestWork, metadata: {name: w, namespace: store}, spec: {workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: CANARY7f3a}, binaryData: {b: CANARY7f3a}}, {apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Secret, stringData: {a: CANARY7f3a}}]}]}}}`,
	"Application":        `{apiVersion: core.oam.dev/v1beta1, kind: Application, metadata: {name: a, namespace: store}, spec: {components: [{name: s, type: k8s-objects, properties: {objects: [{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {a: CANARY7f3a}}], env: {A: CANARY7f3a, B: {value: CANARY7f3a}, C: [CANARY7f3a]}, extraEnv: [{name: A, value: CANARY7f3a}], extraEnvVars: [{name: A, value: CANARY7f3a}], podenv: [{name: A, value: CANARY7f3a}], envVars: [{name: A, value: CANARY7f3a}]}}]}}`,
	"custom resource":    `{apiVersion: acme.example/v1, kind: Gadget, metadata: {name: g, namespace: store}, spec: {pods: [[{env: [{name: A, value: CANARY7f3a}]}]]}}`,
}

// TestNothingSecretIsInABundle asserts that no bundle has the canary, and that Build does not change the objects.
func TestNothingSecretIsInABundle(t *testing.T) {
	for name, text := range secretive {
		t.Run(name, func(t *testing.T) {
			object := parse(text)
			status := bundle.Build([]*unstructured.Unstructured{object}, nil, noon, bundle.Options{AllowedLabels: []string{"app"}})
			listed := bundle.Objects(&status)
			if status.Truncated || len(listed) != 1 {
				t.Fatalf("the lists have %d objects, truncated %t", len(listed), status.Truncated)
			}
			for _, written := range []string{encode(status), encode(listed)} {
				for _, word := range []string{canary, base64Of(canary), "last-applied", "managedFields"} {
					if strings.Contains(written, word) {
						t.Errorf("%q is in the bundle:\n%s", word, written)
					}
				}
			}
			if diff := cmp.Diff(parse(text), object); diff != "" {
				t.Errorf("the object itself (-before +after):\n%s", diff)
			}
		})
	}
}

func TestRedact(t *testing.T) {
	cases := map[string]struct{ before, after string }{
		"nil maps": {
			`{apiVersion: v1, kind: Pod, metadata: null, spec: null}`,
			`{apiVersion: v1, kind: Pod, metadata: null, spec: null}`,
		},
		"metadata keeps what rules and readers need": {
			`{apiVersion: v1, kind: Pod, metadata: {name: a, uid: u, generation: 2, labels: {x: "y"}, ownerReferences: [{name: r}], managedFields: [{}], annotations: {keep: "1", kubectl.kubernetes.io/last-applied-configuration: "{}"}}}`,
			`{apiVersion: v1, kind: Pod, metadata: {name: a, uid: u, generation: 2, labels: {x: "y"}, ownerReferences: [{name: r}], annotations: {keep: "1"}}}`,
		},
		"annotations that are empty stay, those that become so go": {
			`{kind: Pod, metadata: {annotations: {kapp.k14s.io/original: "{}"}}, spec: {annotations: {}}}`,
			`{kind: Pod, metadata: {}, spec: {annotations: {}}}`,
		},
		"variables keep name and source": {
			`{kind: Pod, spec: {containers: [{env: [{name: A, value: b}, {name: C, valueFrom: {fieldRef: {fieldPath: metadata.name}}}], envFrom: [{secretRef: {name: s}}]}]}}`,
			`{kind: Pod, spec: {containers: [{env: [{name: A}, {name: C, valueFrom: {fieldRef: {fieldPath: metadata.name}}}], envFrom: [{secretRef: {name: s}}]}]}}`,
		},
		"variables that are no objects go": {
			`{kind: Gadget, spec: {env: [{name: A}, b, 3]}}`,
			`{kind: Gadget, spec: {env: [{name: A}]}}`,
		},
		"a field of that name that is no list": {
			`{kind: Gadget, spec: {env: production, httpHeaders: {a: b}}}`,
			`{kind: Gadget, spec: {env: production, httpHeaders: {a: b}}}`,
		},
		"variables by name keep name and source": {
			`{kind: Gadget, spec: {env: {A: b, C: {value: d}, E: {valueFrom: {secretKeyRef: {name: s, key: k}}, extra: 1}, F: null}}}`,
			`{kind: Gadget, spec: {env: {A: null, C: {}, E: {valueFrom: {secretKeyRef: {name: s, key: k}}}, F: null}}}`,
		},
		"lists named like variables lose values of what has a name": {
			`{kind: Gadget, spec: {extraEnvVars: [{name: A, value: b, more: [{env: [{name: A, value: b}]}]}, {name: C, valueFrom: {fieldRef: {fieldPath: metadata.name}}}, {key: D, value: e}, [{name: F, value: g}], h], inventory: [{name: A, value: b}], testEnv: staging}}`,
			`{kind: Gadget, spec: {extraEnvVars: [{name: A, more: [{env: [{name: A}]}]}, {name: C, valueFrom: {fieldRef: {fieldPath: metadata.name}}}, {key: D, value: e}, [{name: F, value: g}], h], inventory: [{name: A, value: b}], testEnv: staging}}`,
		},
		"a Secret that another object carries keeps its metadata": {
			`{apiVersion: acme.example/v1, kind: Gadget, data: {a: b}, spec: {manifest: {apiVersion: v1, kind: Secret, metadata: {name: s, managedFields: [{}]}, type: Opaque, data: {a: Yg==}}, ref: {apiVersion: v1, kind: Secret, name: s}, other: {apiVersion: acme.example/v1, kind: Secret, data: {a: b}}}}`,
			`{apiVersion: acme.example/v1, kind: Gadget, data: {a: b}, spec: {manifest: {apiVersion: v1, kind: Secret, metadata: {name: s}, type: Opaque}, ref: {apiVersion: v1, kind: Secret, name: s}, other: {apiVersion: acme.example/v1, kind: Secret, data: {a: b}}}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			object := parse(tc.before)
			bundle.Redact(object)
			if diff := cmp.Diff(parse(tc.after), object); diff != "" {
				t.Errorf("stripped (-want +got):\n%s", diff)
			}
			bundle.Redact(object)
			if diff := cmp.Diff(parse(tc.after), object); diff != "" {
				t.Errorf("stripped twice (-want +got):\n%s", diff)
			}
		})
	}
}
