package rsync_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/controllers/rsync"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

var _ = Describe("a cluster that takes requests and does not answer", func() {
	DescribeTable("does not hold up", func(ctx SpecContext, id string, interrupt func(context.Context, string), want string) {
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
		c := newComposite(id, "default", "a", "b", "c")
		for _, app := range []string{"a", "b", "c"} {
			c.add(app, edge01, app+"+ConfigMap", configMap(app))
		}
		put(ctx, c.values)
		start(n)
		enqueue(ctx, id, deploy.EventInstantiate)
		Eventually(asked).Should(Receive())
		interrupt(ctx, id)
		Eventually(stateOf, "5s").WithContext(ctx).WithArguments(id).Should(Equal(want), "a request may take 30 seconds")
	},
		Entry("a termination", "1050", func(ctx context.Context, id string) { enqueue(ctx, id, deploy.EventTerminate) }, state("Terminating")+" active"),
		Entry("a stop", "1051", func(ctx context.Context, id string) {
			Expect(rsync.Stop(ctx, store, id, time.Now())).To(Succeed())
		}, state("InstantiateFailed")),
		Entry("EMCO's stop flag", "1052", func(ctx context.Context, id string) {
			put(ctx, values{"/context/" + id + "/stopflag/": "true"})
		}, state("InstantiateFailed")),
	)
})
