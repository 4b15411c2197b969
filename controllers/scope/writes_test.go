package scope_test

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"path"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/scope"
	"github.com/healthscope/healthscope/e2e/suite"
)

var _ = Describe("The status of a scope", func() {
	It("is written once for a change, and never without one", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		web := newDeployment(ctx, namespace, "web", 3)
		sink := newBundle(ctx, namespace, "7-sink", nil)
		fill(ctx, sink, inBundle(namespace, "sink", replicas{1, 1, 1}))
		c := start(stopClock)
		s := newScope(ctx, namespace, "shop", refs(ref("apps/v1", "Deployment", "web"), bundleRef("7-sink")))
		written := c.written(namespace, "shop")
		Eventually(reading(ctx, s)).Should(haveHealth(healthy, "2/2"))
		Consistently(written).Should(Equal(1))

		By("changing a workload")
		report(ctx, web, 2)
		Eventually(reading(ctx, s)).Should(haveHealth(unhealthy, "1/2"))
		Consistently(written).Should(Equal(2))

		By("changing a bundle")
		fill(ctx, sink, inBundle(namespace, "sink", replicas{1, 1, 0}))
		Eventually(reading(ctx, s)).Should(haveHealth(unhealthy, "0/2"))
		Consistently(written).Should(Equal(3))

		By("changing what makes no difference")
		web.Labels["color"] = "blue"
		Expect(api.Update(ctx, web)).To(Succeed())
		sink.Annotations = map[string]string{"color": "blue"}
		Expect(api.Update(ctx, sink)).To(Succeed())
		labelled := read(ctx, s)
		labelled.Labels = map[string]string{"color": "blue"}
		Expect(api.Update(ctx, &labelled)).To(Succeed())
		Consistently(written).Should(Equal(3))

		By("damaging it from outside")
		damaged := read(ctx, s)
		damaged.Status = corev1alpha2.HealthScopeStatus{Health: corev1alpha2.Healthy}
		Expect(api.Status().Update(ctx, &damaged)).To(Succeed())
		Eventually(reading(ctx, s)).Should(haveHealth(unhealthy, "0/2"))
	})

	It("survives a restart untouched, with its times", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		newDeployment(ctx, namespace, "web", 1)
		sink := newBundle(ctx, namespace, "7-sink", nil)
		fill(ctx, sink, inBundle(namespace, "sink", replicas{1, 1, 0}))
		spec := refs(
			ref("apps/v1", "Deployment", "web"), ref("apps/v1", "Deployment", "gone"), bundleRef("7-sink"), bundleRef("7-gone"),
			ref("v1", "Service", "forbidden"), ref("acme.example.com/v1", "Nothing", "x"), ref("", "", ""))
		first := start(stopClock)
		s := newScope(ctx, namespace, "shop", spec)
		Eventually(reading(ctx, s)).Should(haveHealth(unhealthy, "0/7"))
		Eventually(reading(ctx, s)).Should(WithTransform(culprits, ContainElements("Service/forbidden Unknown Forbidden", "Nothing/x Unknown KindNotFound")))
		Consistently(first.written(namespace, "shop")).Should(Equal(1), "all kinds are known, or known to be unknown, before anything is written")
		before := read(ctx, s)
		first.stop()

		second := start(stopClock)
		Eventually(func() any { return second.series(namespace, "shop") }).Should(HaveKey("state Unknown"))
		Consistently(second.written(namespace, "shop"), time.Second).Should(BeZero())
		Expect(read(ctx, s)).To(Equal(before))
		Expect(eventsOf(ctx, s)(NewWithT(GinkgoT()))).To(BeEmpty(), "a scope that is new and not healthy yet is no news")
	})

	It("waits for a slow API server instead of saying Unknown", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		newDeployment(ctx, namespace, "web", 3)
		fill(ctx, newBundle(ctx, namespace, "7-sink", nil), inBundle(namespace, "sink", replicas{1, 1, 1}))
		first := start()
		s := newScope(ctx, namespace, "shop", refs(ref("apps/v1", "Deployment", "web"), bundleRef("7-sink")))
		Eventually(reading(ctx, s)).Should(haveHealth(healthy, "2/2"))
		before := read(ctx, s)
		first.stop()

		for _, slow := range []string{"deployments", "resourcebundlestates"} {
			By("holding back " + slow)
			fresh := "fresh-" + slow
			c := start(func(s *settings) { s.held = slow })
			another := newScope(ctx, namespace, fresh, refs(ref("apps/v1", "Deployment", "web"), bundleRef("7-sink")))
			if slow == "deployments" {
				Eventually(reading(ctx, another)).Should(HaveField("Status.Health", unknown), "a scope that nothing was known of does not wait for long")
			}
			Consistently(c.written(namespace, "shop"), time.Second).Should(BeZero())
			c.release()
			Eventually(reading(ctx, another)).Should(haveHealth(healthy, "2/2"))
			Expect(read(ctx, s)).To(Equal(before))
			c.stop()
		}
	})

	It("does not change because the API server went away for a while", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		web := newDeployment(ctx, namespace, "web", 3)
		sink := newBundle(ctx, namespace, "7-sink", nil)
		fill(ctx, sink, inBundle(namespace, "sink", replicas{1, 1, 1}))
		c := start(stopClock)
		s := newScope(ctx, namespace, "shop", refs(ref("apps/v1", "Deployment", "web"), bundleRef("7-sink"), ref("v1", "ConfigMap", "forbidden")))
		Eventually(reading(ctx, s)).Should(haveHealth(unknown, "2/3"))
		before := read(ctx, s)
		Expect(plane.StopAPIServer()).To(Succeed())
		Consistently(c.watches("deployments")).Should(BeNumerically("<=", 1))
		Expect(plane.StartAPIServer(ctx)).To(Succeed())
		const back = 90 * time.Second // A client that has found the API server down may wait up to a minute before it retries.
		Eventually(func() []int {
			return []int{c.watches("deployments")(), c.watches("resourcebundlestates")(), c.watches("healthscopes")()}
		}).WithTimeout(back).Should(Equal([]int{1, 1, 1}))
		Consistently(c.written(namespace, "shop"), time.Second).Should(Equal(1))
		Expect(read(ctx, s)).To(Equal(before))

		By("changing something after the return")
		report(ctx, web, 2)
		Eventually(reading(ctx, s)).WithTimeout(back).Should(haveHealth(unhealthy, "1/3"))
		fill(ctx, sink, inBundle(namespace, "sink", replicas{1, 1, 0}))
		Eventually(reading(ctx, s)).WithTimeout(back).Should(haveHealth(unhealthy, "0/3"))
	}, SpecTimeout(5*time.Minute))

	It("fits into its bounds and into the API server, for a thousand references", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		var spec corev1alpha2.HealthScopeSpec
		for i := range 1000 {
			spec.WorkloadReferences = append(spec.WorkloadReferences, ref("apps/v1", "Deployment", fmt.Sprintf("gone-%04d", i)))
		}
		c := start(stopClock)
		s := newScope(ctx, namespace, "big", spec)
		Eventually(reading(ctx, s)).Should(haveHealth(unhealthy, "0/1000"))
		now := read(ctx, s)
		Expect(now.Status.Summary).To(Equal(corev1alpha2.MemberCounts{State: "Pending", Total: 1000, Pending: 1000}))
		Expect(now.Status.ScopeHealthCondition).To(Equal(corev1alpha2.ScopeHealthCondition{HealthStatus: "UNHEALTHY", Total: 1000, UnhealthyWorkloads: 1000}))
		Expect(now.Status.Truncated).To(BeTrue())
		Expect(now.Status.Culprits).To(HaveLen(corev1alpha2.MaxCulprits))
		Consistently(c.written(namespace, "big")).Should(Equal(1))
	})

	It("of many scopes is written once each at a start", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		const scopes = 30
		newDeployment(ctx, namespace, "web", 3)
		for i := range scopes {
			newScope(ctx, namespace, fmt.Sprintf("shop-%02d", i), refs(ref("apps/v1", "Deployment", "web"), ref("apps/v1", "DaemonSet", "gone")))
		}
		c := start(stopClock)
		Eventually(func(g Gomega) {
			var list corev1alpha2.HealthScopeList
			g.Expect(api.List(ctx, &list, client.InNamespace(namespace))).To(Succeed())
			g.Expect(list.Items).To(HaveEach(haveHealth(unhealthy, "1/2")))
		}).Should(Succeed())
		for i := range scopes {
			Expect(c.statuses(namespace, fmt.Sprintf("shop-%02d", i))).To(HaveLen(1))
		}
		Eventually(c.watches("daemonsets")).Should(Equal(1), "one watch serves all scopes")
	})
})

var _ = Describe("A new scope", func() {
	It("waits for a kind that takes long to read, and is written once", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		for _, name := range []string{"cart", "db", "web"} {
			newDeployment(ctx, namespace, name, 3)
		}
		now, slow := clocktesting.NewFakePassiveClock(time.Now()), newSlowWatch("deployments")
		DeferCleanup(slow.resume)
		c := start(func(s *settings) {
			s.clock = now
			s.config.Wrap(slow.wrap)
		})
		byName := newScope(ctx, namespace, "by-name", refs(ref("apps/v1", "Deployment", "cart"), ref("apps/v1", "Deployment", "db"), ref("apps/v1", "Deployment", "web")))
		byLabel := newScope(ctx, namespace, "by-label", corev1alpha2.HealthScopeSpec{Apps: []corev1alpha2.ScopeApp{{
			Name: "shop", WorkloadSelector: &corev1alpha2.WorkloadSelector{Kinds: []corev1alpha2.WorkloadKind{{APIVersion: "apps/v1", Kind: "Deployment"}}},
		}}})
		Eventually(slow.begun).Should(BeClosed())
		now.SetTime(now.Now().Add(10 * time.Second))
		for _, s := range []*corev1alpha2.HealthScope{byName, byLabel} {
			Expect(annotate(ctx, s, "judge it now")).To(Succeed())
			Consistently(c.written(namespace, s.Name)).Should(BeZero(), "the first Deployment has been read, and the others have not")
		}
		slow.resume()
		for _, s := range []*corev1alpha2.HealthScope{byName, byLabel} {
			Eventually(reading(ctx, s)).Should(haveHealth(healthy, "3/3"))
			Expect(c.written(namespace, s.Name)()).To(Equal(1))
		}
	})
})

// slowWatch stops the watches of a resource after the first object, until it is resumed.
type slowWatch struct {
	resource string
	// begun is closed when the first object has been delivered. resumed is closed when the rest may be delivered.
	begun, resumed chan struct{}
	begin, resume  func()
}

func newSlowWatch(resource string) *slowWatch {
	s := &slowWatch{resource: resource, begun: make(chan struct{}), resumed: make(chan struct{})}
	s.begin, s.resume = sync.OnceFunc(func() { close(s.begun) }), sync.OnceFunc(func() { close(s.resumed) })
	return s
}

// wrap returns a transport with slow watches.
func (s *slowWatch) wrap(next http.RoundTripper) http.RoundTripper { return slowTransport{next, s} }

type slowTransport struct {
	http.RoundTripper

	watch *slowWatch
}

func (t slowTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.RoundTripper.RoundTrip(request)
	if err == nil && suite.IsWatch(request) && path.Base(request.URL.Path) == t.watch.resource {
		response.Body = &slowBody{response.Body, t.watch, false}
	}
	return response, err
}

// slowBody is the response to such a watch: JSON, one object per line.
type slowBody struct {
	io.ReadCloser

	watch *slowWatch
	// read is true when the first line has been read.
	read bool
}

func (b *slowBody) Read(p []byte) (int, error) {
	if b.read {
		b.watch.begin()
		<-b.watch.resumed
		return b.ReadCloser.Read(p)
	}
	n, err := b.ReadCloser.Read(p[:1])
	b.read = n > 0 && p[0] == '\n'
	return n, err
}

var _ = Describe("A scope that is deleted", func() {
	It("leaves no metrics, no watches and no memory", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		newDeployment(ctx, namespace, "web", 3)
		c := start()
		s := newScope(ctx, namespace, "shop", refs(ref("apps/v1", "Deployment", "web"), ref("apps/v1", "StatefulSet", "db")))
		other := newScope(ctx, namespace, "other", refs(ref("apps/v1", "Deployment", "web")))
		Eventually(reading(ctx, s)).Should(haveHealth(unhealthy, "1/2"))
		Eventually(reading(ctx, other)).Should(haveHealth(healthy, "1/1"))
		Expect(c.series(namespace, "shop")).To(Equal(map[string]float64{
			"state Pending": 1, "health unhealthy": 1, "first_culprit": 1, "resources Ready": 1, "resources NotPresent": 1,
		}))
		Eventually(c.watches("deployments")).Should(Equal(1))
		Eventually(c.watches("statefulsets")).Should(Equal(1))

		Expect(api.Delete(ctx, s)).To(Succeed())
		Eventually(func() any { return c.series(namespace, "shop") }).Should(BeEmpty())
		Eventually(c.watches("statefulsets")).Should(BeZero())
		Expect(c.watches("deployments")()).To(Equal(1), "another scope refers to this kind still")

		By("making another one of the same name")
		again := newScope(ctx, namespace, "shop", refs(ref("apps/v1", "Deployment", "web")))
		Eventually(reading(ctx, again)).Should(haveHealth(healthy, "1/1"))
		Expect(c.series(namespace, "shop")).To(Equal(map[string]float64{"state Ready": 1, "health healthy": 1, "resources Ready": 1}))

		By("not referring to anything any more")
		for _, one := range []*corev1alpha2.HealthScope{again, other} {
			now := read(ctx, one)
			now.Spec = corev1alpha2.HealthScopeSpec{}
			Expect(api.Update(ctx, &now)).To(Succeed())
		}
		Eventually(c.watches("deployments")).Should(BeZero())
	})
})

var _ = Describe("The controller", func() {
	It("ends at once, whatever it waits for, and leaves no goroutine behind", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		newScope(ctx, namespace, "shop", refs(ref("apps/v1", "Deployment", "web"), ref("acme.example.com/v1", "Nothing", "x"), bundleRef("7-sink")))
		existing := []goleak.Option{
			goleak.IgnoreCurrent(), // Connections, too, because they stay open for a while.
			goleak.IgnoreAnyFunction("net/http.(*http2ClientConn).readLoop"), goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*clientConnReadLoop).run"),
		}
		for _, held := range []string{"", "deployments", "resourcebundlestates", "healthscopes"} {
			By("holding back " + cmp.Or(held, "nothing"))
			c := start(func(s *settings) { s.held = held })
			if held == "" {
				Eventually(func() any { return c.series(namespace, "shop") }).ShouldNot(BeEmpty())
			} else {
				Consistently(func() any { return c.series(namespace, "shop") }).Should(BeEmpty())
			}
			c.stop()
			Eventually(func() error { return goleak.Find(existing...) }).Should(Succeed())
		}
	})

	It("says at once what it lacks to read scopes", func(ctx SpecContext) {
		stranger := plane.Config()
		stranger.Impersonate = rest.ImpersonationConfig{UserName: "stranger", Groups: []string{"system:authenticated"}}
		err := scope.CheckReadable(ctx, newManager(settings{config: stranger}).GetAPIReader())
		Expect(scope.IsUnreadable(err)).To(BeTrue())
		Expect(err).To(MatchError(SatisfyAll(
			HavePrefix("cannot list HealthScopes: healthscopes.core.oam.dev is forbidden"), ContainSubstring(`"stranger"`))))
		ended, cancel := context.WithCancel(ctx)
		cancel()
		err = scope.CheckReadable(ended, newManager(settings{config: accountConfig()}).GetAPIReader())
		Expect(err).To(MatchError(context.Canceled))
		Expect(scope.IsUnreadable(err)).To(BeFalse())
	})
})
