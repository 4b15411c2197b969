package scope_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/e2e/suite"
)

// applications is the CRD of KubeVela's Applications, and the right to read them.
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

// replay makes a write again.
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

	// The first part is what is true of "store", which KubeVela makes a scope for, or of "by-hand"; the second what is true of
	// "plain". It follows from the Deployments of each phase; KubeVela's own words are often others.
	DescribeTable("are as their workloads are, after each of KubeVela's steps",
		func(ctx SpecContext, name, scopeName string, want map[string]string) {
			namespace := newNamespace(ctx)
			c := start()
			newScope(ctx, namespace, "plain", corev1alpha2.HealthScopeSpec{AppReferences: []corev1alpha2.AppReference{{AppName: "plain"}}})
			writes := recording(name, namespace)
			for i, w := range writes {
				Expect(w.replay(ctx, namespace)).To(Succeed(), "write %d of %s: %s %s %q", i, w.Phase, w.Verb, w.Resource, w.Name)
				if i+1 < len(writes) && writes[i+1].Phase == w.Phase {
					continue
				}
				wanted, asked := want[w.Phase[:2]]
				Expect(asked).To(BeTrue(), "phase %s is expected", w.Phase)
				Eventually(healthIn(ctx, namespace, scopeName, "plain")).Should(Equal(wanted), w.Phase)
			}
			for _, scope := range []string{"plain", scopeName} {
				written := c.written(namespace, scope)
				before := written()
				Consistently(written).Should(Equal(before), "nothing is written at rest")
			}
		},
		Entry("without its HealthScope controller", "without-healthscope-controller", "store-health", map[string]string{
			"01": "healthy 2/2, unhealthy 0/1", "02": "healthy 2/2, unhealthy 0/1", "03": "unhealthy 1/2, unhealthy 0/1", "04": "healthy 2/2, unhealthy 0/1", "05": "unhealthy 0/2, unhealthy 0/1",
			"06": "healthy 2/2, unhealthy 0/1", "07": "healthy 2/2, unhealthy 0/1", "08": "healthy 2/2, unhealthy 0/1", "09": "healthy 1/1, healthy 1/1",
			"10": "none, healthy 1/1", "11": "none, unhealthy 0/1",
		}),
		Entry("while no pod can run", "unhealthy-from-the-start", "store-health", map[string]string{
			"01": "none, unhealthy 0/1", "02": "none, healthy 1/1", "03": "none, unhealthy 0/1", "04": "none, healthy 1/1", "05": "none, unhealthy 0/1",
			"06": "none, healthy 1/1", "07": "unhealthy 0/2, healthy 1/1", "08": "healthy 2/2, healthy 1/1",
		}),
		Entry("with its HealthScope controller", "with-healthscope-controller", "store-health", map[string]string{
			"01": "healthy 2/2, unhealthy 0/1", "02": "healthy 2/2, unhealthy 0/1", "03": "unhealthy 1/2, unhealthy 0/1", "04": "healthy 2/2, unhealthy 0/1",
			"05": "unhealthy 0/2, unhealthy 0/1", "06": "healthy 2/2, unhealthy 0/1", "07": "healthy 2/2, unhealthy 0/1", "08": "healthy 2/2, unhealthy 0/1",
			"09": "healthy 1/1, healthy 1/1", "10": "none, healthy 1/1", "11": "none, unhealthy 0/1",
		}),
		Entry("with a scope that is written by hand", "scope-by-hand", "by-hand", map[string]string{
			"01": "none, healthy 1/1", "02": "healthy 1/1, healthy 1/1", "03": "unhealthy 0/1, unhealthy 0/1", "04": "healthy 1/1, healthy 1/1",
		}),
	)
})

// healthIn returns how to read the health of scopes again and again: "<health> <ready>/<total>" of each, or "none".
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
