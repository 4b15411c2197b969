package bundle_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/bundle"
)

func TestObjectsGoIntoTheirLists(t *testing.T) {
	cases := map[string]struct{ apiVersion, kind, list string }{
		"pod":                            {"v1", "Pod", "podStatuses"},
		"service":                        {"v1", "Service", "serviceStatuses"},
		"config map":                     {"v1", "ConfigMap", "configMapStatuses"},
		"secret":                         {"v1", "Secret", "secretStatuses"},
		"deployment":                     {"apps/v1", "Deployment", "deploymentStatuses"},
		"daemon set":                     {"apps/v1", "DaemonSet", "daemonSetStatuses"},
		"stateful set":                   {"apps/v1", "StatefulSet", "statefulSetStatuses"},
		"job":                            {"batch/v1", "Job", "jobStatuses"},
		"ingress":                        {"networking.k8s.io/v1", "Ingress", "ingressStatuses"},
		"signing request":                {"certificates.k8s.io/v1", "CertificateSigningRequest", "csrStatuses"},
		"replica set":                    {"apps/v1", "ReplicaSet", "resourceStatuses"},
		"claim":                          {"v1", "PersistentVolumeClaim", "resourceStatuses"},
		"ingress of a forgotten version": {"extensions/v1beta1", "Ingress", "resourceStatuses"},
		"custom resource":                {"acme.example/v1", "Pod", "resourceStatuses"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			object := parse(t, fmt.Sprintf(`{apiVersion: %s, kind: %s, metadata: {name: x, namespace: store}}`, tc.apiVersion, tc.kind))
			status := bundle.Build([]*unstructured.Unstructured{object}, nil, noon, bundle.Options{})
			for list, raw := range status.Lists() {
				if filled := len(*raw) > 0; filled != (list == tc.list) {
					t.Errorf("%s holds %s", list, *raw)
				}
			}
		})
	}
}

func TestEntriesOfLists(t *testing.T) {
	objects := parseAll(t,
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
	)
	status := bundle.Build(objects, nil, noon, bundle.Options{})
	want := map[string]string{
		"deploymentStatuses": `[{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"annotations":{"note":"keep"},"generation":3,"labels":{"app":"shop"},"name":"shop","namespace":"store",` +
			`"ownerReferences":[{"apiVersion":"acme.example/v1","controller":true,"kind":"Shop","name":"shop","uid":"g"}],"resourceVersion":"17","uid":"d-1"},` +
			`"spec":{"replicas":1,"template":{"metadata":{},"spec":{"containers":[{"env":[{"name":"A"},{"name":"C","valueFrom":{"secretKeyRef":{"key":"k","name":"s"}}}],"name":"web"}]}}},"status":{"replicas":1}}]`,
		"secretStatuses": `[{"apiVersion":"v1","kind":"Secret","metadata":{"name":"shop","namespace":"store"}}]`,
		"csrStatuses":    `[{"apiVersion":"certificates.k8s.io/v1","kind":"CertificateSigningRequest","metadata":{"name":"shop"},"spec":{"signerName":"s"},"status":{"certificate":"LS0tLS1CRUdJTg=="}}]`,
		"serviceStatuses": `[{"apiVersion":"v1","kind":"Service","metadata":{"name":"c","namespace":"another"}},{"apiVersion":"v1","kind":"Service","metadata":{"name":"a","namespace":"store"}},` +
			`{"apiVersion":"v1","kind":"Service","metadata":{"name":"b","namespace":"store"}}]`,
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

func TestOtherKindsAreWrittenAsEMCODoes(t *testing.T) {
	objects := parseAll(t,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: shop, namespace: store, managedFields: [{manager: x}]}, rules: [{verbs: [get]}]}`,
		`{apiVersion: v1, kind: Namespace, metadata: {name: store}}`,
	)
	status := bundle.Build(objects, nil, noon, bundle.Options{})
	var got []struct {
		Group, Version, Kind, Namespace, Name string
		Res                                   []byte
	}
	if err := json.Unmarshal(status.ResourceStatuses, &got); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].Kind != "Namespace" || got[1].Group != "rbac.authorization.k8s.io" || got[1].Version != "v1" || got[1].Namespace != "store" || got[1].Name != "shop" {
		t.Fatalf("entries %s", status.ResourceStatuses)
	}
	want := `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"shop","namespace":"store"},"rules":[{"verbs":["get"]}]}`
	if string(got[1].Res) != want {
		t.Errorf("res holds\n%s\nwant\n%s", got[1].Res, want)
	}
	if strings.Contains(string(status.ResourceStatuses), `"namespace":""`) {
		t.Errorf("an empty namespace in %s", status.ResourceStatuses)
	}
}

// crowd returns n pods of one ReplicaSet, one of which crashes, the ReplicaSet, its Deployment and a Service. The other pods are
// Ready.
func crowd(t testing.TB, n int) []*unstructured.Unstructured {
	t.Helper()
	return crowdWith(t, n, n/2)
}

// crowdWith is crowd with a given index of the crashing pod.
func crowdWith(t testing.TB, n, crashing int) []*unstructured.Unstructured {
	t.Helper()
	objects := parseAll(t,
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: shop, namespace: store, uid: d}, status: {observedGeneration: 1, replicas: 2, readyReplicas: 2}}`,
		`{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: shop-6b7f, namespace: store, uid: r, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: shop, controller: true}]}, status: {observedGeneration: 1, replicas: 2, readyReplicas: 2}}`,
		`{apiVersion: v1, kind: Service, metadata: {name: shop, namespace: store, uid: s}}`,
	)
	for i := range n {
		state := `{phase: Running, containerStatuses: [{name: web, ready: true, image: "registry.example/shop:1"}]}`
		if i == crashing {
			state = `{phase: Running, containerStatuses: [{name: web, ready: false, state: {waiting: {reason: CrashLoopBackOff}}}]}`
		}
		objects = append(objects, parse(t, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: shop-6b7f-%05d, namespace: store, uid: "00000000-0000-0000-0000-%012d",
			ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: shop-6b7f, controller: true}]}, spec: {containers: [{name: web, image: "registry.example/shop:1"}]}, status: %s}`, i, i, state)))
	}
	return objects
}

// named returns the kinds and names of the resources in a status.
func named(status k8spluginv1alpha1.ResourceBundleStateStatus) map[string]bool {
	names := map[string]bool{}
	for _, r := range status.Resources {
		names[r.Kind+"/"+r.Name] = true
	}
	return names
}

func TestLargestListsGoFirst(t *testing.T) {
	status := bundle.Build(crowd(t, 40), nil, noon, bundle.Options{ListBudget: 4000})
	if !status.Truncated || len(status.PodStatuses) > 0 || len(status.DeploymentStatuses) == 0 || len(status.ServiceStatuses) == 0 {
		t.Errorf("truncated %v, pods %d bytes, deployments %d, services %d", status.Truncated, len(status.PodStatuses), len(status.DeploymentStatuses), len(status.ServiceStatuses))
	}
	if len(status.Resources) != 43 || status.ResourceCount != 43 {
		t.Errorf("%d resources, count %d", len(status.Resources), status.ResourceCount)
	}
}

func TestListsKeepTheirBudget(t *testing.T) {
	objects := append(crowd(t, 30), shop(t)[4:]...)
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
		if size > budget {
			t.Errorf("budget %d, lists of %d bytes", budget, size)
		}
		if smallestDropped < largestKept {
			t.Errorf("budget %d: a list of %d bytes is dropped, one of %d is kept", budget, smallestDropped, largestKept)
		}
		if status.Truncated != (smallestDropped < math.MaxInt) {
			t.Errorf("budget %d: truncated is %v with lists of %d bytes", budget, status.Truncated, size)
		}
	}
}

func TestHardLimitKeepsWhatMatters(t *testing.T) {
	objects := crowd(t, 400)
	whole := bundle.Build(objects, nil, noon, bundle.Options{})
	for _, limit := range []int{100, 1500, 4000, 20000, 60000, 100000} {
		t.Run(fmt.Sprintf("%d bytes", limit), func(t *testing.T) {
			status := bundle.Build(objects, nil, noon, bundle.Options{HardLimit: limit})
			if size := len(encode(t, status)); size > max(limit, 600) {
				t.Errorf("%d bytes", size)
			}
			if !status.Truncated || status.ResourceCount != 403 || cmp.Diff(whole.Summary, status.Summary) != "" {
				t.Errorf("truncated %v, resourceCount %d, summary %v", status.Truncated, status.ResourceCount, status.Summary)
			}
			names := named(status)
			if limit >= 1500 && (!names["Pod/shop-6b7f-00200"] || !names["ReplicaSet/shop-6b7f"] || !names["Deployment/shop"]) {
				t.Errorf("the failed pod, or what owns it, is not named among %d", len(names))
			}
		})
	}
}

func TestAnOwnerDoesNotGoBeforeWhatItOwns(t *testing.T) {
	for name, objects := range map[string][]*unstructured.Unstructured{"one crashes": crowdWith(t, 12, 6), "all ready": crowdWith(t, 12, -1)} {
		for limit := 200; limit < 8000; limit += 50 {
			status := bundle.Build(objects, nil, noon, bundle.Options{HardLimit: limit})
			names := named(status)
			for _, r := range status.Resources {
				if r.Owner != nil && !names[r.Owner.Kind+"/"+r.Owner.Name] {
					t.Errorf("%s, limit %d: %s/%s is named, its owner is not", name, limit, r.Kind, r.Name)
				}
			}
		}
	}
}

// TestAWorkloadOfWhichAPodWorksDoesNotLookFailed asserts that a reader does not judge a workload as Failed because its only
// Ready pod is left out.
func TestAWorkloadOfWhichAPodWorksDoesNotLookFailed(t *testing.T) {
	objects := parseAll(t, `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, namespace: store, uid: s}, spec: {replicas: 12}, status: {replicas: 12}}`)
	for i := range 12 {
		state := `ready: false, state: {waiting: {reason: CrashLoopBackOff}}`
		if i == 7 {
			state = `ready: true`
		}
		objects = append(objects, parse(t, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: db-%d, namespace: store, uid: p%[1]d,
			ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: db, controller: true}]}, status: {phase: Running, containerStatuses: [{name: db, %s}]}}`, i, state)))
	}
	for limit := 300; limit < 8000; limit += 50 {
		status := bundle.Build(objects, nil, noon, bundle.Options{HardLimit: limit})
		contents := bundle.Read("edge", &k8spluginv1alpha1.ResourceBundleState{Status: status})
		for _, m := range healthscope.Judge(contents.Results, healthscope.DefaultPolicy(), noon).Members {
			if m.Kind == "StatefulSet" && m.State != healthscope.Pending {
				t.Errorf("limit %d: the workload looks %s, want Pending as with all entries; %d are named", limit, m.State, len(status.Resources))
			}
		}
	}
}

func TestAnObjectWithoutJSONIsNamedAndNotListed(t *testing.T) {
	objects := parseAll(t,
		`{apiVersion: v1, kind: Service, metadata: {name: a, namespace: store}}`, `{apiVersion: v1, kind: Service, metadata: {name: b, namespace: store}}`,
		`{apiVersion: acme.example/v1, kind: Gadget, metadata: {name: c, namespace: store}}`,
	)
	objects[0].Object["spec"] = map[string]any{"weight": math.NaN()}
	objects[2].Object["spec"] = map[string]any{"weight": math.NaN()}
	status := bundle.Build(objects, nil, noon, bundle.Options{})
	want := `[{"apiVersion":"v1","kind":"Service","metadata":{"name":"b","namespace":"store"}}]`
	if string(status.ServiceStatuses) != want || len(status.ResourceStatuses) > 0 || len(status.Resources) != 3 || !status.Truncated {
		t.Errorf("services %s, others %s, %d resources, truncated %v", status.ServiceStatuses, status.ResourceStatuses, len(status.Resources), status.Truncated)
	}
}

func TestTwoThousandPodsAreAllNamed(t *testing.T) {
	status := bundle.Build(crowd(t, 2000), nil, noon, bundle.Options{})
	if size := len(encode(t, status)); len(status.Resources) != 2003 || size > bundle.DefaultHardLimit {
		t.Errorf("%d resources in %d bytes", len(status.Resources), size)
	}
}

func TestFiveThousandPodsAreCounted(t *testing.T) {
	status := bundle.Build(crowd(t, 5000), nil, noon, bundle.Options{})
	if size := len(encode(t, status)); size > bundle.DefaultHardLimit || status.ResourceCount != 5003 || !status.Truncated || !named(status)["Pod/shop-6b7f-02500"] {
		t.Errorf("%d bytes, resourceCount %d, truncated %v", size, status.ResourceCount, status.Truncated)
	}
}
