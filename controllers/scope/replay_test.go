package scope_test

import (
	"bytes"
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

// request is a write of testdata/okr-*.jsonl: what oam-kubernetes-runtime, kubectl and the controllers of Kubernetes once sent to an
// API server, in their order, as far as it concerns scopes and workloads.
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

// readRequests reads a recording, and puts it into a namespace.
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

// send sends a write again. An update is one of the object as it is now.
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

// said returns what a scope says of itself and of its references, without the reasons why not all is well.
func said(ctx context.Context, namespace, name string) string {
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

var _ = DescribeTable("A scope beside oam-kubernetes-runtime says after each phase what is true", func(ctx SpecContext, recording string, want map[string]string) {
	namespace := newNamespace(ctx)
	// The rights that the chart gives for workloads of OAM are tried elsewhere.
	start(func(s *settings) { s.config = plane.Config(); s.config.QPS = -1 })
	all, err := dynamic.NewForConfig(plane.Config())
	Expect(err).NotTo(HaveOccurred())
	requests := readRequests(recording, namespace)
	tried := map[string]bool{}
	for i, r := range requests {
		r.send(ctx, all, namespace)
		if i+1 < len(requests) && requests[i+1].Phase == r.Phase {
			continue
		}
		for _, scope := range []string{"shared", "by-hand"} {
			if expected, ok := want[r.Phase+" "+scope]; ok {
				tried[r.Phase+" "+scope] = true
				Eventually(said).WithContext(ctx).WithArguments(namespace, scope).Should(Equal(expected), "scope %s after phase %s", scope, r.Phase)
			}
		}
	}
	Expect(tried).To(HaveLen(len(want)), "every phase was there")
},
	Entry("that keeps its references", SpecTimeout(time.Minute), "okr-references.jsonl", map[string]string{
		"01-scope-created shared":                "unknown",
		"02-first-created shared":                "healthy, shop HEALTHY Ready:1/1, web HEALTHY Ready:2/2",
		"04-second-shares-scope shared":          "healthy, db-named HEALTHY Ready:1/1, shop HEALTHY Ready:1/1, web HEALTHY Ready:2/2",
		"05-component-removed shared":            "healthy, db-named HEALTHY Ready:1/1, web HEALTHY Ready:2/2",
		"06-scope-removed shared":                "healthy, db-named HEALTHY Ready:1/1",
		"07-both-back shared":                    "healthy, db-named HEALTHY Ready:1/1, shop HEALTHY Ready:1/1, web HEALTHY Ready:2/2",
		"08-scope-manifest-applied-again shared": "healthy, db-named HEALTHY Ready:1/1, shop HEALTHY Ready:1/1, web HEALTHY Ready:2/2",
		"09-first-deleted shared":                "healthy, db-named HEALTHY Ready:1/1",
		"10-scope-deleted-under-second shared":   "gone",
	}),
	Entry("whose workloads come and go", SpecTimeout(time.Minute), "okr-health.jsonl", map[string]string{
		// Of an empty scope, oam-kubernetes-runtime says HEALTHY.
		"01-empty-scope shared":           "unknown",
		"02-first-created-healthy shared": "healthy, shop HEALTHY Ready:1/1, web HEALTHY Ready:2/2",
		"03-pods-of-web-gone shared":      "unhealthy, shop HEALTHY Ready:1/1, web UNHEALTHY Ready:0/2",
		"04-web-back shared":              "healthy, shop HEALTHY Ready:1/1, web HEALTHY Ready:2/2",
		"05-pods-of-shop-gone shared":     "unhealthy, shop UNHEALTHY Ready:0/1, web HEALTHY Ready:2/2",
		"06-shop-back shared":             "healthy, shop HEALTHY Ready:1/1, web HEALTHY Ready:2/2",
		// There is no volume for the claim: oam-kubernetes-runtime says UNKNOWN of it.
		"07-third-of-unknown-kind shared":               "unhealthy, disk UNHEALTHY Ready:0/1, shop HEALTHY Ready:1/1, web HEALTHY Ready:2/2",
		"08-workload-web-scaled-to-zero-by-hand shared": "unhealthy, disk UNHEALTHY Ready:0/1, shop HEALTHY Ready:1/1, web HEALTHY Ready:2/2",
		"09-scope-by-hand by-hand":                      "unhealthy, missing UNHEALTHY -, nothing UNKNOWN -, web HEALTHY Ready:2/2",
		"10-first-and-third-deleted shared":             "unknown",
	}),
)
