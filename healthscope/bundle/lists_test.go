package bundle_test

import (
	"encoding/base64"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/healthscope/healthscope/healthscope/bundle"
)

func TestObjectsGoIntoTheirLists(t *testing.T) {
	for object, want := range map[string]string{
		"apiVersion: v1, kind: Pod":                                           "podStatuses",
		"apiVersion: v1, kind: Service":                                       "serviceStatuses",
		"apiVersion: v1, kind: ConfigMap":                                     "configMapStatuses",
		"apiVersion: v1, kind: Secret":                                        "secretStatuses",
		"apiVersion: apps/v1, kind: Deployment":                               "deploymentStatuses",
		"apiVersion: apps/v1, kind: DaemonSet":                                "daemonSetStatuses",
		"apiVersion: apps/v1, kind: StatefulSet":                              "statefulSetStatuses",
		"apiVersion: batch/v1, kind: Job":                                     "jobStatuses",
		"apiVersion: networking.k8s.io/v1, kind: Ingress":                     "ingressStatuses",
		"apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest": "csrStatuses",
		"apiVersion: apps/v1, kind: ReplicaSet":                               "resourceStatuses",
		"apiVersion: v1, kind: PersistentVolumeClaim":                         "resourceStatuses",
		"apiVersion: extensions/v1beta1, kind: Ingress":                       "resourceStatuses",
		"apiVersion: acme.example/v1, kind: Pod":                              "resourceStatuses",
	} {
		t.Run(object, func(t *testing.T) {
			status := bundle.Build(parseAll(`{`+object+`, metadata: {name: x, namespace: store}}`), nil, noon, bundle.Options{})
			for list, raw := range status.Lists() {
				if filled := len(*raw) > 0; filled != (list == want) {
					t.Errorf("%s holds %s", list, *raw)
				}
			}
		})
	}
}

// TestEntriesOfLists asserts, byte for byte, what the readers of EMCO get.
func TestEntriesOfLists(t *testing.T) {
	objects := parseAll(
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: shop, namespace: store, uid: d-1, generation: 3, resourceVersion: "17", labels: {app: shop},
		    ownerReferences: [{apiVersion: acme.example/v1, kind: Shop, name: shop, controller: true, uid: g}],
		    managedFields: [{manager: kubectl}], annotations: {note: keep, kubectl.kubernetes.io/last-applied-configuration: "{}"}},
		  spec: {replicas: 1, template: {metadata: {annotations: {kapp.k14s.io/original: "{}"}}, spec: {containers: [{name: web, env: [{name: A, value: b}, {name: C, valueFrom: {secretKeyRef: {name: s, key: k}}}]}]}}},
		  status: {replicas: 1}, surprise: true}`,
		`{apiVersion: v1, kind: Secret, metadata: {name: shop, namespace: store}, type: Opaque, data: {k: c2VjcmV0}, spec: {odd: true}}`,
		`{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {name: shop}, spec: {signerName: s}, status: {certificate: LS0tLS1CRUdJTg==}}`,
		`{apiVersion: v1, kind: Service, metadata: {name: b, namespace: store}}`,
		`{apiVersion: v1, kind: Service, metadata: {name: a, namespace: store}}`,
		`{apiVersion: v1, kind: Service, metadata: {name: c, namespace: another}}`,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: shop, namespace: store, managedFields: [{manager: x}]}, rules: [{verbs: [get]}]}`,
		`{apiVersion: v1, kind: Namespace, metadata: {name: store}}`,
		`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: shop-data, namespace: store}}`,
	)
	status := bundle.Build(objects, nil, noon, bundle.Options{})
	role := `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"shop","namespace":"store"},"rules":[{"verbs":["get"]}]}`
	namespace := `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"store"}}`
	claim := `{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"shop-data","namespace":"store"}}`
	want := map[string]string{
		"deploymentStatuses": `[{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"annotations":{"note":"keep"},"generation":3,"labels":{"app":"shop"},"name":"shop","namespace":"store",` +
			`"ownerReferences":[{"apiVersion":"acme.example/v1","controller":true,"kind":"Shop","name":"shop","uid":"g"}],"resourceVersion":"17","uid":"d-1"},` +
			`"spec":{"replicas":1,"template":{"metadata":{},"spec":{"containers":[{"env":[{"name":"A"},{"name":"C","valueFrom":{"secretKeyRef":{"key":"k","name":"s"}}}],"name":"web"}]}}},"status":{"replicas":1}}]`,
		"secretStatuses": `[{"apiVersion":"v1","kind":"Secret","metadata":{"name":"shop","namespace":"store"}}]`,
		"csrStatuses":    `[{"apiVersion":"certificates.k8s.io/v1","kind":"CertificateSigningRequest","metadata":{"name":"shop"},"spec":{"signerName":"s"},"status":{"certificate":"LS0tLS1CRUdJTg=="}}]`,
		"serviceStatuses": `[{"apiVersion":"v1","kind":"Service","metadata":{"name":"c","namespace":"another"}},{"apiVersion":"v1","kind":"Service","metadata":{"name":"a","namespace":"store"}},` +
			`{"apiVersion":"v1","kind":"Service","metadata":{"name":"b","namespace":"store"}}]`,
		"resourceStatuses": `[{"group":"","version":"v1","kind":"Namespace","name":"store","res":"` + base64Of(namespace) + `"},` +
			`{"group":"rbac.authorization.k8s.io","version":"v1","kind":"Role","namespace":"store","name":"shop","res":"` + base64Of(role) + `"},` +
			`{"group":"","version":"v1","kind":"PersistentVolumeClaim","namespace":"store","name":"shop-data","res":"` + base64Of(claim) + `"}]`,
	}
	got := map[string]string{}
	for list, raw := range status.Lists() {
		if len(*raw) > 0 {
			got[list] = string(*raw)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lists (-want +got):\n%s", diff)
	}
}

func base64Of(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

func TestListsKeepTheirBudget(t *testing.T) {
	objects := append(crowd(30), shop()[4:]...)
	whole := bundle.Build(objects, nil, noon, bundle.Options{})
	if whole.Truncated {
		t.Fatal("the test's objects do not fit the default budget")
	}
	for budget := 1; budget < 20000; budget += 97 {
		status := bundle.Build(objects, nil, noon, bundle.Options{ListBudget: budget})
		var size, largestKept int
		smallestDropped := math.MaxInt
		for name, list := range status.Lists() {
			if len(*list) > 0 {
				size += len(name) + len(*list) + len(`"":,`)
				largestKept = max(largestKept, len(*list))
			} else if before := len(*whole.Lists()[name]); before > 0 {
				smallestDropped = min(smallestDropped, before)
			}
		}
		if size > budget || len(status.Resources) != len(whole.Resources) {
			t.Errorf("budget %d, lists of %d bytes, %d resources of %d", budget, size, len(status.Resources), len(whole.Resources))
		}
		if smallestDropped < largestKept {
			t.Errorf("budget %d: a list of %d bytes is dropped, one of %d is kept", budget, smallestDropped, largestKept)
		}
		if status.Truncated != (smallestDropped < math.MaxInt) {
			t.Errorf("budget %d: truncated is %v with lists of %d bytes", budget, status.Truncated, size)
		}
	}
}
