package recorder

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	extensionsv1beta1 "k8s.io/api/extensions/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/bundle"
	"github.com/healthscope/healthscope/healthscope/status"
)

// objects are the objects of a bundle. EMCO's readers do not find all of them in a status as the monitor writes it.
const objects = `
- apiVersion: networking.k8s.io/v1
  kind: Ingress
  metadata: {name: front, namespace: default, uid: i}
  spec: {rules: [{host: a.example, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]}
  status: {loadBalancer: {ingress: [{ip: 10.0.0.1}]}}
- apiVersion: apps/v1
  kind: ReplicaSet
  metadata: {name: short, namespace: default, generation: 1}
  spec: {replicas: 3, selector: {matchLabels: {app: short}}}
  status: {replicas: 3, readyReplicas: 1, availableReplicas: 1, fullyLabeledReplicas: 3, observedGeneration: 1}
- apiVersion: apps/v1
  kind: ReplicaSet
  metadata: {name: well, namespace: default, generation: 1}
  spec: {replicas: 2, selector: {matchLabels: {app: well}}}
  status: {replicas: 2, readyReplicas: 2, availableReplicas: 2, fullyLabeledReplicas: 2, observedGeneration: 1}
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: web, namespace: default, generation: 1}
  spec: {replicas: 1, selector: {matchLabels: {app: web}}}
  status: {replicas: 1, readyReplicas: 1, availableReplicas: 1, updatedReplicas: 1, observedGeneration: 1}
- apiVersion: v1
  kind: ServiceAccount
  metadata: {name: web, namespace: default}
- apiVersion: v1
  kind: Secret
  metadata: {name: key, namespace: default}
  data: {key: aGlkZGVu}
- apiVersion: certificates.k8s.io/v1
  kind: CertificateSigningRequest
  metadata: {name: lc}
  spec: {request: cmVx, signerName: kubernetes.io/kube-apiserver-client, usages: [client auth]}
  status: {certificate: LS0tLS1CRUdJTg==, conditions: [{type: Approved, status: "True"}]}
`

// reported returns the status of a bundle with objects, as the monitor writes it.
func reported(t *testing.T) json.RawMessage {
	t.Helper()
	var raw []map[string]any
	if err := yaml.Unmarshal([]byte(objects), &raw); err != nil {
		t.Fatal(err)
	}
	var all []*unstructured.Unstructured
	for _, object := range raw {
		all = append(all, &unstructured.Unstructured{Object: object})
	}
	text, err := json.Marshal(bundle.Build(all, nil, time.Now(), bundle.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// savedText returns the text that is saved for that status.
func savedText(t *testing.T) string {
	t.Helper()
	text, _, err := textOf(reported(t))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// thirdGenerationStatus holds the fields that EMCO reads from a status since its third generation, for the objects of the test.
type thirdGenerationStatus struct {
	DeploymentStatuses []appsv1.Deployment
	CsrStatuses        []certificatesv1.CertificateSigningRequest
	ResourceStatuses   []struct {
		Group, Version, Kind, Name, Namespace string
		Res                                   []byte
	}
}

// ready returns for each object whether it is ready by EMCO's rules for Deployments and for other kinds.
func (s thirdGenerationStatus) ready() map[string]bool {
	is := map[string]bool{}
	for _, d := range s.DeploymentStatuses {
		is[d.GroupVersionKind().String()+" "+d.Name] = d.Status.ReadyReplicas >= *d.Spec.Replicas
	}
	for _, c := range s.CsrStatuses {
		is[c.GroupVersionKind().String()+" "+c.Name] = true
	}
	for _, r := range s.ResourceStatuses {
		is[metav1.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}.String()+" "+r.Name] = true
	}
	return is
}

func TestThirdGenerationReadsIngressesAndReplicaSets(t *testing.T) {
	t.Parallel()
	var read thirdGenerationStatus
	if err := json.Unmarshal([]byte(savedText(t)), &read); err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{
		"networking.k8s.io/v1, Kind=Ingress front":                  true,
		"apps/v1, Kind=ReplicaSet short":                            false,
		"apps/v1, Kind=ReplicaSet well":                             true,
		"apps/v1, Kind=Deployment web":                              true,
		"/v1, Kind=ServiceAccount web":                              true,
		"/v1, Kind=Secret key":                                      true,
		"certificates.k8s.io/v1, Kind=CertificateSigningRequest lc": true,
	}
	if diff := cmp.Diff(want, read.ready()); diff != "" {
		t.Errorf("what is ready (-want +got):\n%s", diff)
	}
	for _, r := range read.ResourceStatuses {
		var object struct {
			APIVersion, Kind string
			Metadata         struct{ Name, Namespace string }
			Spec             struct{ Rules []struct{ Host string } }
			Data             map[string]string
		}
		if err := json.Unmarshal(r.Res, &object); err != nil || object.Kind != r.Kind || object.Metadata.Name != r.Name || object.Metadata.Namespace != "default" || r.Namespace != "default" {
			t.Errorf("%s %q is %s, %v", r.Kind, r.Name, r.Res, err)
		}
		if r.Kind == "Ingress" && (len(object.Spec.Rules) != 1 || object.Spec.Rules[0].Host != "a.example") {
			t.Errorf("the Ingress is not whole: %s", r.Res)
		}
		if len(object.Data) > 0 {
			t.Errorf("the data of %s %q is shown", r.Kind, r.Name)
		}
	}
}

func TestFirstGenerationsReadIngressesAndReplicaSets(t *testing.T) {
	t.Parallel()
	var read struct {
		DeploymentStatuses []appsv1.Deployment
		IngressStatuses    []extensionsv1beta1.Ingress
		CsrStatuses        []certificatesv1beta1.CertificateSigningRequest
	}
	if err := json.Unmarshal([]byte(savedText(t)), &read); err != nil {
		t.Fatal(err)
	}
	var present []string
	for _, d := range read.DeploymentStatuses {
		present = append(present, d.Kind+" "+d.Name)
	}
	for _, i := range read.IngressStatuses {
		present = append(present, i.Kind+" "+i.Name)
	}
	for _, c := range read.CsrStatuses {
		present = append(present, c.Kind+" "+c.Name+" "+string(c.Status.Conditions[0].Type)+" "+string(c.Status.Certificate))
	}
	slices.Sort(present)
	want := []string{"CertificateSigningRequest lc Approved -----BEGIN", "Deployment web", "Ingress front", "ReplicaSet short", "ReplicaSet well"}
	if diff := cmp.Diff(want, present); diff != "" {
		t.Errorf("what is present (-want +got):\n%s", diff)
	}
}

// TestSavedTextYieldsSameStatusDocuments checks that the saved text leads to the same status documents as the status that a monitor wrote.
func TestSavedTextYieldsSameStatusDocuments(t *testing.T) {
	t.Parallel()
	var ours map[string]json.RawMessage
	if err := json.Unmarshal(reported(t), &ours); err != nil {
		t.Fatal(err)
	}
	delete(ours, "summary")
	delete(ours, "resources")
	others, err := json.Marshal(ours)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for name, written := range map[string]json.RawMessage{"a HealthScope monitor": reported(t), "another monitor": others} {
		text, _, err := textOf(written)
		if err != nil || text == string(written) {
			t.Fatalf("%s: %v, %s", name, err, text)
		}
		want := status.SavedReport(status.DecodeBundle("p+c", string(written), nil), healthscope.DefaultPolicy(), now, now)
		got := status.SavedReport(status.DecodeBundle("p+c", text, nil), healthscope.DefaultPolicy(), now, now)
		if diff := cmp.Diff(want.Members, got.Members); diff != "" || len(got.Members) != 7 || len(got.Malformed) > 0 {
			t.Errorf("%s: %d members, malformed %v (-want +got):\n%s", name, len(got.Members), got.Malformed, diff)
		}
	}
}

// TestForEMCOKeepsUnreadableLists covers values that would crash EMCO's readers: a list that is no list, and a Deployment without a
// number of replicas.
func TestForEMCOKeepsUnreadableLists(t *testing.T) {
	t.Parallel()
	for _, status := range []string{
		`{"resourceStatuses":"text","ingressStatuses":[{"metadata":{"name":"i"}}]}`,
		`{"resourceStatuses":[{"group":"apps","version":"v1","kind":"ReplicaSet","name":"r","res":"e30="}]}`,
		`{"resourceStatuses":[{"group":"apps","version":"v1","kind":"ReplicaSet","name":"r","res":"eyJraW5kIjoiUmVwbGljYVNldCIsInNwZWMiOnt9fQ=="}]}`,
		`{"resourceStatuses":[7],"ingressStatuses":null}`,
		`{"ingressStatuses":[{"spec":{}}],"podStatuses":[{"metadata":{"name":"p"}}]}`,
	} {
		if text, _, err := textOf(json.RawMessage(status)); err != nil || text != status {
			t.Errorf("want it as it is, got %s, %v", text, err)
		}
	}
	text, _, err := textOf(json.RawMessage(`{"ingressStatuses":[{"metadata":{"name":"i","namespace":"n"}}],"resourceStatuses":[7]}`))
	if err != nil || strings.Count(text, `"kind":"Ingress"`) != 1 || !strings.Contains(text, `"resourceStatuses":[7,{`) {
		t.Errorf("what others wrote stays, and the rest is added: %s, %v", text, err)
	}
}
