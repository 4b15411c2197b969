package rsync_test

import (
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/controllers/rsync"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

// foreground returns a ConfigMap whose annotation requests that it is deleted after its dependents.
func foreground(name string) string {
	return strings.Replace(configMap(name), "metadata:\n", "metadata:\n  annotations: {healthscope.core.oam.dev/deletion-propagation: Foreground}\n", 1)
}

var _ = Describe("rsync's deletions", func() {
	DescribeTable("come in reverse order, or as EMCO's where that is configured, in a termination and in an update",
		func(ctx SpecContext, order configv1alpha1.DeletionOrder, from, to string) {
			namespace := newNamespace(ctx)
			all := []string{"a+ConfigMap", configMap("a"), "b+ConfigMap", configMap("b"), "c+ConfigMap", configMap("c"), "d+ConfigMap", configMap("d")}
			put(ctx, newComposite(from, namespace, "app").add("app", edge01, all...).values)
			put(ctx, newComposite(to, namespace, "app").add("app", edge01, all[:4]...).values)
			n := newNetwork()
			var mu sync.Mutex
			var names []string
			n.intercept(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
				if r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/configmaps/") {
					mu.Lock()
					names = append(names, path.Base(r.URL.Path))
					mu.Unlock()
				}
				return next.RoundTrip(r)
			})
			deleted := func() []string {
				mu.Lock()
				defer mu.Unlock()
				return slices.Clone(names)
			}
			start(n, func(o *rsync.Options) { o.DeletionOrder = order })
			instantiate(ctx, from)
			first, second := []string{"c", "d"}, []string{"a", "b"}
			if order != configv1alpha1.DeletionListed {
				slices.Reverse(first)
				slices.Reverse(second)
			}
			update(ctx, from, to)
			becomes(ctx, from, "Updated")
			Expect(deleted()).To(Equal(first))
			terminate(ctx, to)
			Expect(deleted()).To(Equal(slices.Concat(first, second)))
		},
		Entry("by default", configv1alpha1.DeletionOrder(""), "1391", "1392"),
		Entry("as EMCO's", configv1alpha1.DeletionListed, "1393", "1394"),
	)

	It("are in the foreground where an author asks; what is applied again meanwhile is there when the old object is gone", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		resources := []string{"asked+ConfigMap", foreground("asked"), "other+ConfigMap", configMap("other")}
		put(ctx, newComposite("1395", namespace, "a").add("a", edge01, resources...).values)
		start(newNetwork())
		instantiate(ctx, "1395")
		terminate(ctx, "1395")
		old := &corev1.ConfigMap{}
		Expect(exists(ctx, old, namespace, "asked")).To(BeTrue(), "no garbage collector runs here")
		Expect(old.DeletionTimestamp).NotTo(BeNil())
		Expect(old.Finalizers).To(ConsistOf(metav1.FinalizerDeleteDependents))
		Expect(exists(ctx, &corev1.ConfigMap{}, namespace, "other")).To(BeFalse())

		By("deploying the same object with another context")
		put(ctx, newComposite("1399", namespace, "a").add("a", edge01, resources...).values)
		enqueue(ctx, "1399", deploy.EventInstantiate)
		Eventually(wordsOf).WithContext(ctx).WithArguments("1399", "a", "asked+ConfigMap").Should(Equal(`ConfigMap "asked" is being deleted, and is applied when it is gone`))
		Expect(statuses(ctx, "1399")).To(Equal(map[string]string{"a/p1+edge01/asked+ConfigMap": "Retrying", "a/p1+edge01/other+ConfigMap": "Pending"}))
		Expect(exists(ctx, old, namespace, "asked")).To(BeTrue())
		old.Finalizers = nil
		Expect(api.Update(ctx, old)).To(Succeed())
		becomes(ctx, "1399", "Instantiated")
		again := &corev1.ConfigMap{}
		Expect(exists(ctx, again, namespace, "asked")).To(BeTrue())
		Expect(again.UID).NotTo(Equal(old.UID))
	})

	It("know no other propagation: an object that asks for one is not applied", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		put(ctx, newComposite("1396", namespace, "a").add("a", edge01, "cm+ConfigMap", strings.Replace(foreground("cm"), "Foreground", "foreground", 1)).values)
		start(newNetwork())
		ends(ctx, "1396", deploy.EventInstantiate, "InstantiateFailed")
		Expect(wordsOf(ctx, "1396", "a", "cm+ConfigMap")).To(Equal(`ConfigMap "cm" has annotation healthscope.core.oam.dev/deletion-propagation "foreground": it must be Foreground, or be left out`))
		Expect(exists(ctx, &corev1.ConfigMap{}, namespace, "cm")).To(BeFalse())
	})
})
