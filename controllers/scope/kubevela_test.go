package scope_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/oam"
	"github.com/healthscope/healthscope/e2e/suite"
)

// applications is the CRD of KubeVela's Applications, with the rights to read them.
const applications = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: applications.core.oam.dev}
spec:
  group: core.oam.dev
  scope: Namespaced
  names: {kind: Application, plural: applications, singular: application, listKind: ApplicationList}
  versions:
  - name: v1beta1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: applications}
rules:
- {apiGroups: [core.oam.dev], resources: [applications], verbs: [list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: applications}
subjects: [{kind: ServiceAccount, namespace: healthscope-system, name: healthscope-controller}]
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: applications}
`

// recordedWrite is a write of KubeVela or of one of Kubernetes' controllers.
type recordedWrite struct {
	Phase, Verb, Resource, Name, Subresource, PatchType string

	Object json.RawMessage
}

// recordedKinds are the kinds of the resources in recordings.
var recordedKinds = map[string][2]string{
	"core.oam.dev/v1beta1/applications":  {"core.oam.dev/v1beta1", "Application"},
	"core.oam.dev/v1alpha2/healthscopes": {"core.oam.dev/v1alpha2", "HealthScope"},
	"apps/v1/deployments":                {"apps/v1", "Deployment"},
}

// recording returns the writes of a recording, which were made in namespace "demo", for another namespace.
func recording(name, namespace string) []recordedWrite {
	GinkgoHelper()
	data, err := os.ReadFile("testdata/kubevela/" + name + ".jsonl")
	Expect(err).NotTo(HaveOccurred())
	data = bytes.ReplaceAll(data, []byte(`"namespace":"demo"`), fmt.Appendf(nil, `"namespace":%q`, namespace))
	var writes []recordedWrite
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		var w recordedWrite
		Expect(json.Unmarshal(lines.Bytes(), &w)).To(Succeed())
		writes = append(writes, w)
	}
	return writes
}

// replay repeats a write.
func (w recordedWrite) replay(ctx context.Context, namespace string) error {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	if len(w.Object) > 0 && w.Verb != "patch" {
		if err := json.Unmarshal(w.Object, &o.Object); err != nil {
			return err
		}
	}
	kind := recordedKinds[w.Resource]
	o.SetAPIVersion(kind[0])
	o.SetKind(kind[1])
	o.SetNamespace(namespace)
	o.SetName(w.Name)
	switch w.Verb {
	case "create":
		return api.Create(ctx, o)
	case "delete":
		return client.IgnoreNotFound(api.Delete(ctx, o))
	case "update":
		now := o.DeepCopy()
		if err := api.Get(ctx, client.ObjectKeyFromObject(o), now); err != nil {
			return client.IgnoreNotFound(err)
		}
		o.SetResourceVersion(now.GetResourceVersion())
		if w.Subresource == "status" {
			now.Object["status"] = o.Object["status"]
			return api.Status().Update(ctx, now)
		}
		return api.Update(ctx, o)
	}
	patch := client.RawPatch(types.PatchType("application/"+w.PatchType+"+json"), w.Object)
	if w.Subresource == "status" {
		return api.Status().Patch(ctx, o, patch)
	}
	return api.Patch(ctx, o, patch)
}

var _ = Describe("Applications of KubeVela", Ordered, func() {
	BeforeAll(func(ctx SpecContext) {
		Expect(plane.InstallManifests(ctx, suite.Manifest(applications))).To(Succeed())
	})

	It("have the health written into them that KubeVela's own HealthScope controller writes", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		grantTo(ctx, "core.oam.dev", "applications/status", "patch")
		c := start(func(s *settings) { s.applicationHealth = true })
		want := healthTextByPhase(recording("with-healthscope-controller", namespace))
		writes := recording("without-healthscope-controller", namespace)
		for i, w := range writes {
			Expect(w.replay(ctx, namespace)).To(Succeed(), "write %d of %s: %s %s %q", i, w.Phase, w.Verb, w.Resource, w.Name)
			if w.Phase[:2] == "11" { // Everything is deleted.
				break
			}
			if i+1 < len(writes) && writes[i+1].Phase == w.Phase {
				continue
			}
			Eventually(healthTextOf(ctx, namespace, "store")).Should(Equal(want[w.Phase[:2]]), w.Phase)
		}
		written := func() float64 { return c.counter("healthscope_application_health_writes_total", "written") }
		before := written()
		Expect(before).To(BeNumerically(">", 4))
		Consistently(written).Should(Equal(before), "nothing is written at rest")
	}, SpecTimeout(time.Minute))

	It("say that their health may not be written", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		c := start(func(s *settings) { s.applicationHealth = true })
		for _, w := range recording("without-healthscope-controller", namespace) {
			if w.Phase[:2] == "01" {
				Expect(w.replay(ctx, namespace)).To(Succeed())
			}
		}
		Eventually(func(g Gomega) {
			var list eventsv1.EventList
			g.Expect(api.List(ctx, &list, client.InNamespace(namespace))).To(Succeed())
			g.Expect(list.Items).To(ContainElement(And(HaveField("Reason", "HealthNotWritten"), HaveField("Regarding.Name", "store"), HaveField("Note", ContainSubstring("forbidden")))))
		}).Should(Succeed())
		Expect(c.counter("healthscope_application_health_writes_total", "refused")).To(BeNumerically(">", 0))
		Eventually(healthIn(ctx, namespace, "store-health")).Should(Equal("healthy 2/2"), "the scope is judged all the same")
	})

	// The health that KubeVela reports itself often differs from the true health.
	DescribeTable("are as their workloads are, after each of KubeVela's steps",
		func(ctx SpecContext, name, scopeName string, phases int) {
			namespace := newNamespace(ctx)
			all, err := dynamic.NewForConfig(plane.Config())
			Expect(err).NotTo(HaveOccurred())
			c := start()
			newScope(ctx, namespace, "plain", corev1alpha2.HealthScopeSpec{AppReferences: []corev1alpha2.AppReference{{AppName: "plain"}}})
			writes, tried := recording(name, namespace), 0
			for i, w := range writes {
				Expect(w.replay(ctx, namespace)).To(Succeed(), "write %d of %s: %s %s %q", i, w.Phase, w.Verb, w.Resource, w.Name)
				if i+1 < len(writes) && writes[i+1].Phase == w.Phase {
					continue
				}
				tried++
				want := expectedHealthOfScope(ctx, all, namespace, scopeName) + ", " + expectedHealthOfScope(ctx, all, namespace, "plain")
				Eventually(healthIn(ctx, namespace, scopeName, "plain")).Should(Equal(want), w.Phase)
			}
			Expect(tried).To(Equal(phases), "every phase was there")
			for _, scope := range []string{"plain", scopeName} {
				written := c.written(namespace, scope)
				before := written()
				Consistently(written).Should(Equal(before), "nothing is written at rest")
			}
		},
		Entry("without its HealthScope controller", "without-healthscope-controller", "store-health", 11),
		Entry("while no pod can run", "unhealthy-from-the-start", "store-health", 8),
		Entry("with its HealthScope controller", "with-healthscope-controller", "store-health", 11),
		Entry("with a scope that is written by hand", "scope-by-hand", "by-hand", 4),
	)
})

// expectedHealthOfScope returns the expected result of healthIn for a scope: the current true state of the Deployments that the
// workflows of its Applications have applied. An Application that has applied none, or that does not exist, counts as one
// missing resource.
func expectedHealthOfScope(ctx context.Context, all dynamic.Interface, namespace, name string) string {
	GinkgoHelper()
	var s corev1alpha2.HealthScope
	err := api.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &s)
	if apierrors.IsNotFound(err) {
		return "none"
	}
	Expect(err).NotTo(HaveOccurred())
	ready, total := 0, 0
	for _, ref := range s.Spec.AppReferences {
		u := oam.NewApplication()
		err := api.Get(ctx, types.NamespacedName{Namespace: namespace, Name: ref.AppName}, u)
		Expect(client.IgnoreNotFound(err)).To(Succeed())
		var application struct {
			Status struct {
				AppliedResources []struct{ APIVersion, Kind, Name, Creator string }
			}
		}
		data, err := json.Marshal(u)
		Expect(err).NotTo(HaveOccurred())
		Expect(json.Unmarshal(data, &application)).To(Succeed())
		before := total
		for _, r := range application.Status.AppliedResources {
			if r.Kind != "Deployment" || r.Creator != "workflow" {
				continue
			}
			total++
			if health, _ := expectedHealthOf(ctx, all, namespace, r.APIVersion, r.Kind, r.Name); health == "HEALTHY" {
				ready++
			}
		}
		total = max(total, before+1)
	}
	if ready == total {
		return fmt.Sprintf("healthy %d/%d", ready, total)
	}
	return fmt.Sprintf("unhealthy %d/%d", ready, total)
}

// healthTextOf returns a function that returns the health in the status of an Application as text: that of each component with
// its scopes, and the conditions.
func healthTextOf(ctx context.Context, namespace, name string) func(Gomega) string {
	return func(g Gomega) string {
		u := oam.NewApplication()
		g.Expect(api.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, u)).To(Succeed())
		status, _ := u.Object["status"].(map[string]any)
		return healthText(status)
	}
}

// healthText returns the health in a status as text.
func healthText(status map[string]any) string {
	GinkgoHelper()
	var s struct {
		Services []struct {
			Name, Message      string
			Healthy            bool
			WorkloadDefinition struct{ Kind string }
			Scopes             []struct{ APIVersion, Kind, Namespace, Name string }
		}
		Conditions []struct{ Type, Status, Reason string }
	}
	data, err := json.Marshal(status)
	Expect(err).NotTo(HaveOccurred())
	Expect(json.Unmarshal(data, &s)).To(Succeed())
	var all []string
	for _, service := range s.Services {
		service.Message = strings.TrimSpace(service.Message) // The message of KubeVela's built-in rule ends with a space.
		for i := range service.Scopes {
			service.Scopes[i].Namespace = ""
		}
		all = append(all, fmt.Sprintf("%+v", service))
	}
	slices.Sort(all)
	for _, c := range s.Conditions {
		if c.Type == "Healthy" {
			all = append(all, c.Status+" "+c.Reason)
		}
	}
	return strings.Join(all, "; ")
}

// healthTextByPhase returns the health of Application "store" in a recording at the end of each phase.
func healthTextByPhase(writes []recordedWrite) map[string]string {
	GinkgoHelper()
	reportedHealth, status := map[string]string{}, map[string]any{}
	for _, w := range writes {
		var o struct{ Status map[string]any }
		if w.Name == "store" && w.Resource == "core.oam.dev/v1beta1/applications" && w.Subresource == "status" {
			Expect(json.Unmarshal(w.Object, &o)).To(Succeed())
			maps.Copy(status, o.Status) // As a merge patch does.
		}
		reportedHealth[w.Phase[:2]] = healthText(status)
	}
	return reportedHealth
}

// healthIn returns a function that returns the health of scopes: "<health> <ready>/<total>" of each, or "none".
func healthIn(ctx context.Context, namespace string, names ...string) func(Gomega) string {
	return func(g Gomega) string {
		var all []string
		for _, name := range names {
			var s corev1alpha2.HealthScope
			err := api.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &s)
			if apierrors.IsNotFound(err) {
				all = append(all, "none")
				continue
			}
			g.Expect(err).NotTo(HaveOccurred())
			all = append(all, fmt.Sprintf("%s %s", s.Status.Health, s.Status.ResourcesReady))
		}
		return strings.Join(all, ", ")
	}
}
