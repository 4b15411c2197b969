package scope_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
)

// request is a write in testdata/okr-*.jsonl. These recordings hold the writes of oam-kubernetes-runtime, kubectl and the
// controllers of Kubernetes to an API server that concern scopes and workloads, in their order.
type request struct {
	Phase       string          `json:"phase"`
	Verb        string          `json:"verb"`
	Resource    string          `json:"resource"`
	Name        string          `json:"name"`
	Subresource string          `json:"subresource"`
	PatchType   string          `json:"patchType"`
	Force       bool            `json:"force"`
	Object      json.RawMessage `json:"object"`
}

// readRequests reads a recording, and replaces its namespace.
func readRequests(name, namespace string) []request {
	GinkgoHelper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	Expect(err).NotTo(HaveOccurred())
	data = bytes.ReplaceAll(data, []byte(`"namespace":"demo"`), []byte(`"namespace":"`+namespace+`"`))
	var all []request
	for line := range bytes.Lines(data) {
		var r request
		Expect(json.Unmarshal(line, &r)).To(Succeed())
		all = append(all, r)
	}
	return all
}

// send repeats a write. An update is an update of the current version of the object.
func (r request) send(ctx context.Context, all dynamic.Interface, namespace string) {
	GinkgoHelper()
	gv, resource := r.Resource[:strings.LastIndex(r.Resource, "/")], r.Resource[strings.LastIndex(r.Resource, "/")+1:]
	parsed, err := schema.ParseGroupVersion(gv)
	Expect(err).NotTo(HaveOccurred())
	objects := all.Resource(parsed.WithResource(resource)).Namespace(namespace)
	var subresources []string
	if r.Subresource != "" {
		subresources = []string{r.Subresource}
	}
	u := &unstructured.Unstructured{}
	if r.Verb == "create" || r.Verb == "update" {
		Expect(json.Unmarshal(r.Object, &u.Object)).To(Succeed())
	}
	switch r.Verb {
	case "create":
		_, err = objects.Create(ctx, u, metav1.CreateOptions{}, subresources...)
	case "update":
		err = retry.RetryOnConflict(retry.DefaultRetry, func() error { // The controller under test writes too.
			now, err := objects.Get(ctx, r.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			u.SetResourceVersion(now.GetResourceVersion())
			u.SetUID(now.GetUID())
			_, err = objects.Update(ctx, u, metav1.UpdateOptions{}, subresources...)
			return err
		})
	case "patch":
		kind := map[string]types.PatchType{"merge-patch": types.MergePatchType, "apply-patch": types.ApplyPatchType}[r.PatchType]
		options := metav1.PatchOptions{FieldManager: "recording"}
		if r.Force {
			options.Force = &r.Force
		}
		_, err = objects.Patch(ctx, r.Name, kind, r.Object, options, subresources...)
	case "delete":
		err = objects.Delete(ctx, r.Name, metav1.DeleteOptions{})
	}
	Expect(err).NotTo(HaveOccurred(), "%s %s %s %s in phase %s", r.Verb, r.Resource, r.Name, r.Subresource, r.Phase)
}

// reportedHealth returns the health that a scope reports of itself and of its references, without the reasons.
func reportedHealth(ctx context.Context, namespace, name string) string {
	GinkgoHelper()
	scope := &corev1alpha2.HealthScope{}
	err := api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, scope)
	if apierrors.IsNotFound(err) {
		return "gone"
	}
	Expect(err).NotTo(HaveOccurred())
	var refs []string
	for _, c := range scope.Status.HealthConditions {
		ready, _, _ := strings.Cut(c.Diagnosis, " ")
		if !strings.HasPrefix(ready, "Ready:") {
			ready = "-"
		}
		refs = append(refs, fmt.Sprintf("%s %s %s", c.TargetWorkload.Name, c.HealthStatus, ready))
	}
	slices.Sort(refs)
	return strings.Join(append([]string{string(scope.Status.Health)}, refs...), ", ")
}

// recordedState is the state of a scope after a phase, in testdata/okr-states.jsonl: its references and, where the HealthScope
// controller of the runtime ran, the health that it reported, in the format of reportedHealth.
type recordedState struct {
	Recording, Phase, Scope, Health string
	Refs, Said                      []string
}

// readStates returns the recorded states of a recording, by phase and scope.
func readStates(recording string) map[string]recordedState {
	GinkgoHelper()
	data, err := os.ReadFile(filepath.Join("testdata", "okr-states.jsonl"))
	Expect(err).NotTo(HaveOccurred())
	states := map[string]recordedState{}
	for line := range bytes.Lines(data) {
		var s recordedState
		Expect(json.Unmarshal(line, &s)).To(Succeed())
		if s.Recording == recording {
			states[s.Phase+" "+s.Scope] = s
		}
	}
	return states
}

// expectedHealth returns the expected result of reportedHealth, and the references. It applies the runtime's rules to the
// current workloads of the kinds that the runtime knew. A claim is healthy when it is bound. A scope without references is not
// healthy.
func expectedHealth(ctx context.Context, all dynamic.Interface, namespace, name string) (word string, refs []string) {
	GinkgoHelper()
	scope := &corev1alpha2.HealthScope{}
	err := api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, scope)
	if apierrors.IsNotFound(err) {
		return "gone", nil
	}
	Expect(err).NotTo(HaveOccurred())
	health := "unknown"
	var healthText []string
	for _, ref := range scope.Spec.WorkloadReferences {
		refs = append(refs, ref.Name)
		status, ready := expectedHealthOf(ctx, all, namespace, ref.APIVersion, ref.Kind, ref.Name)
		healthText = append(healthText, fmt.Sprintf("%s %s %s", ref.Name, status, ready))
		switch {
		case status == "UNHEALTHY":
			health = "unhealthy"
		case status == "HEALTHY" && health == "unknown":
			health = "healthy"
		}
	}
	slices.Sort(healthText)
	return strings.Join(append([]string{health}, healthText...), ", "), refs
}

// expectedHealthOf returns health and replicas of an object.
func expectedHealthOf(ctx context.Context, all dynamic.Interface, namespace, apiVersion, kind, name string) (health, ready string) {
	GinkgoHelper()
	resources := map[string]string{"Deployment": "deployments", "ContainerizedWorkload": "containerizedworkloads", "PersistentVolumeClaim": "persistentvolumeclaims"}
	if resources[kind] == "" {
		return "UNKNOWN", "-" // The API server does not serve it.
	}
	u, err := all.Resource(schema.FromAPIVersionAndKind(apiVersion, kind).GroupVersion().WithResource(resources[kind])).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "UNHEALTHY", "-"
	}
	Expect(err).NotTo(HaveOccurred())
	isReady, wanted := int64(0), int64(1)
	switch kind {
	case "ContainerizedWorkload":
		children, _, err := unstructured.NestedSlice(u.Object, "status", "resources")
		Expect(err).NotTo(HaveOccurred())
		for _, item := range children {
			child, ok := item.(map[string]any)
			Expect(ok).To(BeTrue())
			if child["kind"] == "Deployment" {
				return expectedHealthOf(ctx, all, namespace, "apps/v1", "Deployment", fmt.Sprint(child["name"]))
			}
		}
		Fail("the workload names no Deployment")
	case "Deployment":
		isReady, _, _ = unstructured.NestedInt64(u.Object, "status", "readyReplicas")
		wanted, _, _ = unstructured.NestedInt64(u.Object, "spec", "replicas")
	case "PersistentVolumeClaim":
		if phase, _, _ := unstructured.NestedString(u.Object, "status", "phase"); phase == "Bound" {
			isReady = 1
		}
	}
	health = "UNHEALTHY"
	if isReady == wanted {
		health = "HEALTHY"
	}
	return health, fmt.Sprintf("Ready:%d/%d", isReady, wanted)
}

var _ = DescribeTable("A scope beside oam-kubernetes-runtime says after each phase what is true", func(ctx SpecContext, recording string, phases int, differs map[string]string) {
	namespace := newNamespace(ctx)
	// Other tests cover the rights that the chart gives for workloads of OAM.
	start(func(s *settings) { s.config = plane.Config(); s.config.QPS = -1 })
	all, err := dynamic.NewForConfig(plane.Config())
	Expect(err).NotTo(HaveOccurred())
	requests, states, tried := readRequests(recording+".jsonl", namespace), readStates(recording), 0
	for i, r := range requests {
		r.send(ctx, all, namespace)
		if i+1 < len(requests) && requests[i+1].Phase == r.Phase {
			continue
		}
		tried++
		for _, scope := range []string{"shared", "by-hand"} {
			want, refs := expectedHealth(ctx, all, namespace, scope)
			Eventually(reportedHealth).WithContext(ctx).WithArguments(namespace, scope).Should(Equal(want), "scope %s after phase %s", scope, r.Phase)
			recorded, known := states[r.Phase+" "+scope]
			if !known {
				continue
			}
			delete(states, r.Phase+" "+scope)
			Expect(append([]string{}, refs...)).To(Equal(recorded.Refs), "references of scope %s after phase %s", scope, r.Phase)
			if recorded.Health == "" { // The runtime's HealthScope controller did not run.
				continue
			}
			theirs := []string{strings.ToLower(recorded.Health)}
			if len(refs) == 0 {
				theirs[0] = "unknown" // For the runtime, an empty scope is HEALTHY.
			}
			for _, word := range recorded.Said {
				theirs = append(theirs, cmp.Or(differs[word], word))
			}
			Expect(want).To(Equal(strings.Join(theirs, ", ")), "the runtime's words on scope %s after phase %s", scope, r.Phase)
		}
	}
	Expect(tried).To(Equal(phases), "every phase was there")
	Expect(states).To(BeEmpty(), "every state was compared")
},
	Entry("that keeps its references", SpecTimeout(time.Minute), "okr-references", 10, nil),
	Entry("whose workloads come and go", SpecTimeout(time.Minute), "okr-health", 10, map[string]string{
		"disk UNKNOWN -":      "disk UNHEALTHY Ready:0/1", // The runtime did not know claims. There is no volume for this one.
		"nothing UNHEALTHY -": "nothing UNKNOWN -",        // The state of objects whose kind is not served is unknown.
	}),
)
