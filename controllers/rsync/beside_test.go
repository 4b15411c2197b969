package rsync_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/healthscope/healthscope/controllers/rsync"
	"github.com/healthscope/healthscope/healthscope/appcontext"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

var _ = Describe("rsync beside EMCO's", func() {
	// emco adds an event as EMCO's rsync does.
	emco := func(ctx SpecContext, id string) {
		GinkgoHelper()
		put(ctx, values{
			"/context/" + id + "/rsync/AppContextEventQueue/": `{"AcQueue":[{"event":"Instantiate","status":"Pending"}]}`,
			"/context/" + id + "/rsync/state/CurrentState/":   state("Created"), "/context/" + id + "/status/": state("Created"),
		})
		put(ctx, values{"/activecontext/" + id + "/": `"` + id + `"`})
	}

	It("does nothing once its queue has moved, and continues what EMCO's has left when it is started without it", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		for _, id := range []string{"1080", "1081", "1082"} {
			put(ctx, newComposite(id, namespace, "a").add("a", edge01, "cm"+id+"+ConfigMap", configMap("cm"+id)).values)
		}
		stop := start(newNetwork())
		instantiate(ctx, "1080")
		emco(ctx, "1081")
		Consistently(statuses).WithContext(ctx).WithArguments("1081").Should(HaveEach(""), "EMCO's rsync does it")
		Expect(rsync.Enqueue(ctx, store, "1082", deploy.EventInstantiate, "", time.Now())).To(Succeed())
		Consistently(stateOf).WithContext(ctx).WithArguments("1082").Should(Equal(state("Created") + " active"))

		Expect(store.Sidecar(ctx, deploy.StandingDownHandle)).To(ContainSubstring(`the queue of context "1081" was written by another program`))

		stop()
		Expect(store.Sidecar(ctx, deploy.StandingDownHandle)).To(BeEmpty())
		killed := []appcontext.Write{{Handle: deploy.StandingDownHandle, Sidecar: true, Value: "left by a program that was killed"}}
		Expect(store.WriteLevels(ctx, "", killed, appcontext.Condition{})).To(Succeed())
		start(newNetwork())
		for _, id := range []string{"1081", "1082"} {
			becomes(ctx, id, "Instantiated")
		}
		Expect(store.Sidecar(ctx, deploy.StandingDownHandle)).To(BeEmpty())
	})

	It("notices that it works on the same event", func(ctx SpecContext) {
		put(ctx, newComposite("1083", newNamespace(ctx), "a").add("a", edge02, "cm+ConfigMap", configMap("cm")).values)
		n := newNetwork()
		n.set(true)
		start(n)
		enqueue(ctx, "1083", deploy.EventInstantiate)
		Eventually(stateOf).WithContext(ctx).WithArguments("1083").Should(Equal(state("Instantiating") + " active"))
		put(ctx, values{"/context/1083/rsync/AppContextEventQueue/": `{"AcQueue":[{"event":"Instantiate","status":"Pending"},{"event":"Instantiate","status":"Pending"}]}`})
		Eventually(func() int64 {
			locks, err := raw.Get(ctx, "/healthscope/lock/rsync/", clientv3.WithPrefix(), clientv3.WithCountOnly())
			Expect(err).NotTo(HaveOccurred())
			return locks.Count
		}).Should(BeZero())
		n.set(false)
		Consistently(statuses).WithContext(ctx).WithArguments("1083").ShouldNot(ContainElement("Applied"))
		Expect(stateOf(ctx, "1083")).To(Equal(state("Instantiating") + " active"))
	})
})
