package inventory_test

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"
	"github.com/prometheus/client_golang/prometheus/testutil"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/e2e/suite"
)

var _ = Describe("A hub", func() {
	var l *lab
	BeforeEach(func(ctx SpecContext) { l = newLab(ctx) })

	It("writes nothing when there is nothing to write", func(ctx SpecContext) {
		report(ctx, l.namespace, "7-web", service(l.namespace, "web"), deployment(l.namespace, "web", true))
		s := newScope(ctx, l.namespace, "shop", linked(app("web", "7-web"), vnf, vfModule))
		h := l.start()
		Eventually(synced(ctx, s)).Should(Equal("True Synced"))

		By("judging again what is the same")
		n, was, writes := len(l.Requests()), version(ctx, s)(Default), h.statusWrites()
		spoil(ctx, l.namespace, "7-web", `{"ready":false}`)
		edit(ctx, s, func(s *corev1alpha2.HealthScope) { s.Annotations = map[string]string{"example.org/note": "x"} })
		Eventually(version(ctx, s)).ShouldNot(Equal(was))
		was = version(ctx, s)(Default)
		Consistently(func() []string { return l.asked(n) }).Should(BeEmpty())
		Expect(h.statusWrites()).To(Equal(writes))

		By("restarting")
		h.stop()
		h = l.start()
		Eventually(func() []string { return l.asked(n) }).Should(Equal([]string{"GET 404", "GET 200"}), "a probe of what does not exist, and a list")
		Consistently(func() []string { return l.asked(n) }).Should(HaveLen(2))
		Expect(version(ctx, s)(Default)).To(Equal(was))
		Expect(h.statusWrites()).To(BeZero())
	})

	It("says what it said before until it has looked at A&AI", func(ctx SpecContext) {
		report(ctx, l.namespace, "7-web", service(l.namespace, "web"))
		s := newScope(ctx, l.namespace, "shop", app("web", "7-web"))
		h := l.start()
		Eventually(synced(ctx, s)).Should(Equal("True Synced"))
		h.stop()

		was := version(ctx, s)(Default)
		release, waiting := make(chan struct{}), atomicCount{}
		l.between(func(_ http.ResponseWriter, r *http.Request) bool {
			waiting.add()
			select {
			case <-release:
			case <-r.Context().Done():
			}
			return false
		})
		h = l.start()
		Eventually(waiting.get).ShouldNot(BeZero())
		Consistently(version(ctx, s)).Should(Equal(was))
		close(release)
		Consistently(version(ctx, s)).Should(Equal(was))
		Expect(h.statusWrites()).To(BeZero())
	})

	It("finds out what happened while it was down", func(ctx SpecContext) {
		report(ctx, l.namespace, "7-web", service(l.namespace, "web"), service(l.namespace, "gone"), deployment(l.namespace, "web", true))
		newScope(ctx, l.namespace, "shop", app("web", "7-web"))
		h := l.start()
		Eventually(l.states).Should(HaveLen(3))
		h.stop()
		report(ctx, l.namespace, "7-web", service(l.namespace, "web"), deployment(l.namespace, "web", false))
		n := len(l.Requests())
		l.start()
		Eventually(l.states).Should(Equal(map[string]string{"Service/web": "Ready", "Deployment/web": "Pending"}))
		// A written document is there a moment before A&AI records the request.
		Eventually(func() []string { return l.written(n) }).Should(Equal([]string{"POST 201"}), "both in one transaction")
	})

	It("leaves nothing behind when it stops", func(ctx SpecContext) {
		report(ctx, l.namespace, "7-web", service(l.namespace, "web"))
		s := newScope(ctx, l.namespace, "shop", app("web", "7-web"))
		before := gleak.Goroutines()
		h := l.start()
		Eventually(synced(ctx, s)).Should(Equal("True Synced"))
		h.stop()
		Eventually(gleak.Goroutines).WithTimeout(suite.Timeout / 4).ShouldNot(gleak.HaveLeaked(before))
	})

	It("counts in metrics what it asks of A&AI and how far it is", func(ctx SpecContext) {
		report(ctx, l.namespace, "7-web", service(l.namespace, "web"), deployment(l.namespace, "web", true))
		s := newScope(ctx, l.namespace, "shop", app("web", "7-web"))
		h := l.start()
		Eventually(synced(ctx, s)).Should(Equal("True Synced"))
		Expect(h.exposition()).To(And(
			ContainSubstring(`healthscope_aai_objects{state="synced"} 2`),
			Not(ContainSubstring(`state="pending"`)),
			ContainSubstring(`healthscope_aai_requests_total{code="404",operation="list"} 1`),
			ContainSubstring(`healthscope_aai_requests_total{code="201",operation="bulk"} 1`),
			ContainSubstring(`healthscope_aai_request_duration_seconds_count{operation="bulk"} 1`),
			ContainSubstring(`healthscope_aai_sync_lag_seconds_count 2`),
			Not(ContainSubstring(`healthscope_aai_problem{`)),
		))
		problems, err := testutil.GatherAndLint(h.metrics)
		Expect(err).NotTo(HaveOccurred())
		Expect(problems).To(BeEmpty())

		l.between(func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) })
		report(ctx, l.namespace, "7-web", service(l.namespace, "web"), deployment(l.namespace, "web", false))
		Eventually(h.exposition).Should(And(
			ContainSubstring(`healthscope_aai_objects{state="synced"} 1`), ContainSubstring(`healthscope_aai_objects{state="pending"} 1`),
			ContainSubstring(`code="error"`), ContainSubstring(`healthscope_aai_problem{problem="outage"} 1`),
		))
	})

	It("starts with many scopes with far fewer requests than there are resources", func(ctx SpecContext) {
		const scopes = 100
		for i := range scopes {
			name := fmt.Sprintf("app-%03d", i)
			report(ctx, l.namespace, name, service(l.namespace, name))
			newScope(ctx, l.namespace, name, app(name, name))
		}
		began := time.Now()
		l.start()
		Eventually(l.states).WithTimeout(2 * suite.Timeout).Should(HaveLen(scopes))
		passes := int(time.Since(began) / (200 * time.Millisecond)) // A busy machine judges the scopes one after the other, and each pass writes those judged so far.
		Expect(len(l.Requests())).To(BeNumerically("<=", scopes/4+passes))
		Eventually(func(g Gomega) {
			var list corev1alpha2.HealthScopeList
			g.Expect(api.List(ctx, &list)).To(Succeed())
			for _, s := range list.Items {
				g.Expect(condition(s).Reason).To(Equal("Synced"), strings.Join([]string{s.Namespace, s.Name}, "/"))
			}
		}).WithTimeout(2 * suite.Timeout).Should(Succeed())
	})
})
