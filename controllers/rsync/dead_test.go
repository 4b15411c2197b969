package rsync_test

import (
	"net/http"
	"net/http/httptest"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

var _ = Describe("a cluster that takes requests and does not answer", func() {
	It("does not hold up a termination", func(ctx SpecContext) {
		asked := make(chan struct{}, 100)
		silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			asked <- struct{}{}
			<-r.Context().Done()
		}))
		DeferCleanup(func() {
			silent.CloseClientConnections()
			silent.Close()
		})
		n := newNetwork()
		n.access = fleet.Access{Config: &rest.Config{Host: silent.URL}, Client: &http.Client{Transport: &http.Transport{}}}
		c := newComposite("1050", "default", "a", "b", "c")
		for _, app := range []string{"a", "b", "c"} {
			c.add(app, edge01, app+"+ConfigMap", configMap(app))
		}
		put(ctx, c.values)
		start(n)
		enqueue(ctx, "1050", deploy.EventInstantiate)
		Eventually(asked).Should(Receive())
		enqueue(ctx, "1050", deploy.EventTerminate)
		Eventually(stateOf, "5s").WithContext(ctx).WithArguments("1050").Should(Equal(state("Terminating") + " active"))
	})
})
