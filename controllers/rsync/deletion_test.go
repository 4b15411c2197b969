package rsync_test

import (
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	"github.com/healthscope/healthscope/controllers/rsync"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

// deletions notes the names of the ConfigMaps that are deleted, in their order.
type deletions struct {
	next http.RoundTripper

	mu    sync.Mutex
	names []string
}

// RoundTrip implements http.RoundTripper.
func (d *deletions) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/configmaps/") {
		d.mu.Lock()
		d.names = append(d.names, path.Base(r.URL.Path))
		d.mu.Unlock()
	}
	return d.next.RoundTrip(r)
}

// taken returns the names since it was last called.
func (d *deletions) taken() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	names := d.names
	d.names = nil
	return names
}

var _ = Describe("rsync's deletions", func() {
	DescribeTable("come in reverse order, or as EMCO's where that is configured, in a termination and in an update",
		func(ctx SpecContext, order configv1alpha1.DeletionOrder, from, to string) {
			namespace := newNamespace(ctx)
			all := []string{"a+ConfigMap", configMap("a"), "b+ConfigMap", configMap("b"), "c+ConfigMap", configMap("c"), "d+ConfigMap", configMap("d")}
			put(ctx, newComposite(from, namespace, "app").add("app", edge01, all...).values)
			put(ctx, newComposite(to, namespace, "app").add("app", edge01, all[:4]...).values)
			n := newNetwork()
			deleted := &deletions{next: n.access.Client.Transport}
			n.access.Client = &http.Client{Transport: deleted}
			start(n, func(o *rsync.Options) { o.DeletionOrder = order })
			instantiate(ctx, from)
			first, second := []string{"c", "d"}, []string{"a", "b"}
			if order != configv1alpha1.DeletionListed {
				slices.Reverse(first)
				slices.Reverse(second)
			}
			update(ctx, from, to)
			Eventually(stateOf).WithContext(ctx).WithArguments(from).Should(Equal(state("Updated")))
			Expect(deleted.taken()).To(Equal(first))
			enqueue(ctx, to, deploy.EventTerminate)
			Eventually(stateOf).WithContext(ctx).WithArguments(to).Should(Equal(state("Terminated")))
			Expect(deleted.taken()).To(Equal(second))
		},
		Entry("by default", configv1alpha1.DeletionOrder(""), "1391", "1392"),
		Entry("as EMCO's", configv1alpha1.DeletionListed, "1393", "1394"),
	)
})
