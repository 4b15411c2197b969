package rsync_test

import (
	"context"
	"encoding/json"
	"net/http"
	"path"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/healthscope/healthscope/controllers/rsync"
	"github.com/healthscope/healthscope/healthscope/deploy"
)

// retryOf returns the retry of a context in etcd; the zero value when there is none.
func retryOf(ctx context.Context, id string) deploy.Retry {
	GinkgoHelper()
	kept, err := raw.Get(ctx, "/healthscope/activecontext/"+id+"/")
	Expect(err).NotTo(HaveOccurred())
	value := ""
	for _, kv := range kept.Kvs {
		Expect(json.Unmarshal(kv.Value, &value)).To(Succeed())
	}
	r, err := deploy.ReadRetry(value)
	Expect(err).NotTo(HaveOccurred())
	return r
}

var _ = Describe("What a cluster has refused", func() {
	var (
		namespace string
		theirs    *corev1.ConfigMap
		clock     *clocktesting.FakeClock
	)
	at := func(o *rsync.Options) { o.Clock = clock }
	// pass advances the clock once the runner waits for it.
	pass := func(d time.Duration) {
		GinkgoHelper()
		Eventually(clock.HasWaiters).Should(BeTrue())
		clock.Step(d)
	}
	// refused creates a context with a resource that is refused, because another manager owns a field.
	refused := func(ctx context.Context, id string) {
		GinkgoHelper()
		namespace = newNamespace(ctx)
		clock = clocktesting.NewFakeClock(time.Now())
		theirs = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "theirs"}, Data: map[string]string{"k": "theirs"}}
		Expect(api.Create(ctx, theirs, client.FieldOwner("another"))).To(Succeed())
		put(ctx, newComposite(id, namespace, "a").
			add("a", edge01, "first+ConfigMap", configMap("first"), "theirs+ConfigMap", configMap("theirs"), "last+ConfigMap", configMap("last")).values)
	}
	fails := func(ctx context.Context, id string, count int) {
		GinkgoHelper()
		Eventually(retryOf).WithContext(ctx).WithArguments(id).Should(HaveField("Count", count))
		Expect(stateOf(ctx, id)).To(Equal(state("InstantiateFailed")))
		Expect(wordsOf(ctx, id, "a", "theirs+ConfigMap")).To(And(ContainSubstring(`conflict with "another"`), ContainSubstring(".data.k")))
		Expect(statuses(ctx, id)).To(Equal(map[string]string{
			"a/p1+edge01/first+ConfigMap": "Applied", "a/p1+edge01/theirs+ConfigMap": "Failed", "a/p1+edge01/last+ConfigMap": "Pending",
		}))
	}

	It("is tried again more and more slowly, also by the next program, and nothing else is", func(ctx SpecContext) {
		refused(ctx, "1070")
		n := newNetwork()
		counted := n.countPatches(namespace)
		stop := start(n, at)
		enqueue(ctx, "1070", deploy.EventInstantiate)
		fails(ctx, "1070", 1)
		Expect(counted.Load()).To(BeEquivalentTo(2))
		for i, pause := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 10 * time.Minute, 10 * time.Minute} {
			Expect(retryOf(ctx, "1070").Next.Sub(clock.Now())).To(And(BeNumerically(">", pause-time.Second), BeNumerically("<=", pause*11/10)))
			stop()
			clock = clocktesting.NewFakeClock(clock.Now())
			stop = start(n, at)
			pass(pause - time.Second)
			Consistently(counted.Load, "100ms").Should(BeEquivalentTo(2 + i))
			pass(pause/10 + time.Second)
			fails(ctx, "1070", i+2)
			Expect(counted.Load()).To(BeEquivalentTo(3+i), "only what was refused is applied again")
		}

		By("applying the rest when it is refused no more")
		Expect(api.Delete(ctx, theirs)).To(Succeed())
		pass(11 * time.Minute)
		becomes(ctx, "1070", "Instantiated")
		Expect(statuses(ctx, "1070")).To(HaveEach("Applied"))
		Expect(wordsOf(ctx, "1070", "a", "theirs+ConfigMap")).To(BeEmpty())
		Expect(stored(ctx, "1070")).To(HaveKeyWithValue("/context/1070/rsync/AppContextEventQueue/", `{"AcQueue":[{"event":"Instantiate","status":"Done"}]}`))
		Expect(retryOf(ctx, "1070")).To(BeZero())
	})

	It("is not tried again after a stop, nor after a termination", func(ctx SpecContext) {
		refused(ctx, "1071")
		start(newNetwork(), at)
		enqueue(ctx, "1071", deploy.EventInstantiate)
		fails(ctx, "1071", 1)
		Expect(rsync.Stop(ctx, store, "1071", time.Now())).To(Succeed())
		Expect(retryOf(ctx, "1071")).To(BeZero())
		Expect(api.Delete(ctx, theirs)).To(Succeed())
		clock.Step(time.Hour)
		Consistently(statuses).WithContext(ctx).WithArguments("1071").Should(HaveKeyWithValue("a/p1+edge01/theirs+ConfigMap", "Failed"))

		theirs.ResourceVersion, theirs.UID = "", ""
		Expect(api.Create(ctx, theirs, client.FieldOwner("another"))).To(Succeed())
		enqueue(ctx, "1071", deploy.EventInstantiate)
		fails(ctx, "1071", 1)
		terminate(ctx, "1071")
		clock.Step(time.Hour)
		Consistently(stateOf).WithContext(ctx).WithArguments("1071").Should(Equal(state("Terminated")))
		Expect(dataOf(ctx, namespace, "theirs")).To(Equal("theirs"))
	})

	It("is not tried again when EMCO's stop flag is set, or another context of the deployment takes its place", func(ctx SpecContext) {
		refused(ctx, "1072")
		put(ctx, newComposite("1073", namespace, "a").add("a", edge01, "first+ConfigMap", configMap("first")).values)
		start(newNetwork(), at)
		enqueue(ctx, "1072", deploy.EventInstantiate)
		fails(ctx, "1072", 1)
		put(ctx, values{"/context/1072/stopflag/": "true"})
		Eventually(func() deploy.Retry {
			clock.Step(time.Hour) // It takes more than one step if the worker does not wait for the clock yet.
			return retryOf(ctx, "1072")
		}).Should(BeZero())
		Expect(stateOf(ctx, "1072")).To(Equal(state("InstantiateFailed")))

		enqueue(ctx, "1072", deploy.EventInstantiate)
		fails(ctx, "1072", 1)
		update(ctx, "1072", "1073")
		becomes(ctx, "1072", "Updated")
		Expect(retryOf(ctx, "1072")).To(BeZero())
		Expect(stateOf(ctx, "1073")).To(Equal(state("Instantiated")))
	})

	It("is not tried again while an update to another context is", func(ctx SpecContext) {
		refused(ctx, "1078")
		put(ctx, newComposite("1079", namespace, "a").add("a", edge01, "theirs+ConfigMap", configMap("theirs")).values)
		start(newNetwork(), at)
		enqueue(ctx, "1078", deploy.EventInstantiate)
		fails(ctx, "1078", 1)
		update(ctx, "1078", "1079")
		Eventually(retryOf).WithContext(ctx).WithArguments("1079").Should(HaveField("Event", deploy.EventUpdate))
		Expect(retryOf(ctx, "1078")).To(BeZero())
	})

	It("is tried again while another cluster gives no answer", func(ctx SpecContext) {
		refused(ctx, "1074")
		put(ctx, newComposite("1074", namespace, "a", "b").add("b", edge02, "b+ConfigMap", configMap("b")).values)
		n := newNetwork()
		n.set(true)
		start(n, at)
		enqueue(ctx, "1074", deploy.EventInstantiate)
		Eventually(statuses).WithContext(ctx).WithArguments("1074").Should(HaveKeyWithValue("a/p1+edge01/theirs+ConfigMap", "Failed"))
		Expect(api.Delete(ctx, theirs)).To(Succeed())
		Eventually(func() map[string]string {
			clock.Step(time.Minute)
			return statuses(ctx, "1074")
		}).Should(HaveKeyWithValue("a/p1+edge01/last+ConfigMap", "Applied"))
		Expect(stored(ctx, "1074")).To(HaveKeyWithValue("/context/1074/app/b/cluster/p1+edge02/readystatus/", `"Retrying"`))
		Expect(stateOf(ctx, "1074")).To(Equal(state("Instantiating") + " active"))
	})

	It("is deleted at last, though its retry was due during another deletion and another cluster gives no answer", func(ctx SpecContext) {
		namespace = newNamespace(ctx)
		clock = clocktesting.NewFakeClock(time.Now())
		put(ctx, newComposite("1229", namespace, "a").add("a", edge01, "slow+ConfigMap", configMap("slow"), "refused+ConfigMap", configMap("refused")).
			add("a", edge02, "far+ConfigMap", configMap("far")).values)
		n, refuses := newNetwork(), atomic.Bool{}
		n.intercept(func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
			if r.Method == http.MethodDelete && path.Base(r.URL.Path) == "refused" && refuses.Load() {
				return refusal(r, metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "no"}), nil
			}
			return next.RoundTrip(r)
		})
		reached, released := n.hold(http.MethodDelete, "slow")
		refuses.Store(true)
		start(n, at)
		instantiate(ctx, "1229")
		n.set(true)
		enqueue(ctx, "1229", deploy.EventTerminate)
		Eventually(reached).Should(Receive())
		refuses.Store(false)
		pass(2 * time.Minute)
		pass(0) // edge02 was asked again, and the runner waits for the clock again.
		close(released)
		Eventually(func() map[string]string {
			clock.Step(time.Minute)
			return statuses(ctx, "1229")
		}).Should(HaveKeyWithValue("a/p1+edge01/refused+ConfigMap", "Deleted"))
		Expect(stateOf(ctx, "1229")).To(Equal(state("Terminating") + " active"))
	})

	It("keeps no update waiting when it is tried again in a cluster that gives no answer then", func(ctx SpecContext) {
		refused(ctx, "1075")
		put(ctx, newComposite("1076", namespace, "a").add("a", edge02, "theirs+ConfigMap", configMap("theirs")).values)
		put(ctx, newComposite("1077", namespace, "a").add("a", edge01, "first+ConfigMap", configMap("first")).values)
		n := newNetwork()
		start(n, at)
		ends(ctx, "1076", deploy.EventInstantiate, "InstantiateFailed")
		n.set(true)
		Eventually(func() values {
			clock.Step(time.Minute)
			return stored(ctx, "1076")
		}).Should(HaveKeyWithValue("/context/1076/app/a/cluster/p1+edge02/readystatus/", `"Retrying"`))
		update(ctx, "1076", "1077")
		becomes(ctx, "1077", "Instantiated")
	})
})
