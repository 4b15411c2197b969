package rsync_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"github.com/healthscope/healthscope/controllers/rsync"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

// definition is a CRD, in JSON.
func definition(group, plural, kind string) string {
	return fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"%[2]s.%[1]s"},"spec":{"group":%[1]q,"scope":"Namespaced","names":{"kind":%[3]q,"plural":%[2]q},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`, group, plural, kind)
}

var _ = Describe("rsync and CRDs", func() {
	It("applies nothing before a CRD is established", func(ctx SpecContext) {
		const group = "slow.example.org"
		put(ctx, newComposite("1397", newNamespace(ctx), "a").
			add("a", edge01, "thing+Thing", `{"apiVersion":"`+group+`/v1","kind":"Thing","metadata":{"name":"thing"}}`, "things."+group+"+CustomResourceDefinition", definition(group, "things", "Thing")).values)
		n := newNetwork()
		done := atomic.Bool{}
		n.intercept(func(r *http.Request, next http.RoundTripper) (*http.Response, error) { // The names are accepted, and nothing is served.
			response, err := next.RoundTrip(r)
			if err != nil || done.Load() || !strings.Contains(r.URL.Path, "/customresourcedefinitions/") {
				return response, err
			}
			defer func() { _ = response.Body.Close() }()
			body, err := io.ReadAll(response.Body)
			body = bytes.ReplaceAll(body, []byte(`"type":"Established","status":"True"`), []byte(`"type":"Established","status":"False"`))
			response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			return response, err
		})
		start(n)
		enqueue(ctx, "1397", deploy.EventInstantiate)
		Eventually(func() error { return api.List(ctx, listOf(group+"/v1", "Thing")) }).WithContext(ctx).Should(Succeed(), "its names are accepted")
		Eventually(wordsOf).WithContext(ctx).WithArguments("1397", "a", "things."+group+"+CustomResourceDefinition").Should(Equal(`CRD "things.` + group + `" is not established yet`))
		Consistently(statuses).WithContext(ctx).WithArguments("1397").Should(Equal(map[string]string{
			"a/p1+edge01/things." + group + "+CustomResourceDefinition": "Retrying", "a/p1+edge01/thing+Thing": "Pending",
		}))
		done.Store(true)
		becomes(ctx, "1397", "Instantiated")
	})

	It("fails with a CRD that is never established because another one has its names, until that is gone", func(ctx SpecContext) {
		const group = "taken.example.org"
		other := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte(definition(group, "firsts", "Thing")), &other.Object)).To(Succeed())
		Expect(api.Create(ctx, other)).To(Succeed())
		Eventually(func() error { return api.List(ctx, listOf(group+"/v1", "Thing")) }).WithContext(ctx).Should(Succeed())
		put(ctx, newComposite("1398", newNamespace(ctx), "a").
			add("a", edge01, "cm+ConfigMap", configMap("cm"), "seconds."+group+"+CustomResourceDefinition", definition(group, "seconds", "Thing")).values)
		start(newNetwork(), func(o *rsync.Options) { o.RetryRefused = wait.Backoff{Duration: time.Second, Steps: 1} })
		ends(ctx, "1398", deploy.EventInstantiate, "InstantiateFailed")
		Eventually(wordsOf).WithContext(ctx).WithArguments("1398", "a", "seconds."+group+"+CustomResourceDefinition").Should(Equal(`CRD "seconds.` + group + `" is not established: "ThingList" is already in use`))
		Expect(statuses(ctx, "1398")).To(HaveKeyWithValue("a/p1+edge01/cm+ConfigMap", "Pending"))
		Expect(api.Delete(ctx, other)).To(Succeed())
		becomes(ctx, "1398", "Instantiated")
	})
})
