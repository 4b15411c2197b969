package inventory_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/healthscope/healthscope/aai/simulator"
	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
)

var _ = Describe("A&AI that fails", func() {
	var l *lab
	var s *corev1alpha2.HealthScope
	BeforeEach(func(ctx SpecContext) {
		l = newLab(ctx)
		report(ctx, l.namespace, "7-web", service(l.namespace, "web"), deployment(l.namespace, "web", true))
		s = newScope(ctx, l.namespace, "shop", app("web", "7-web"))
	})
	all := map[string]string{"Service/web": "Ready", "Deployment/web": "Ready"}

	It("without the tenant makes resources wait until it appears", func(ctx SpecContext) {
		l.config.ResyncSeconds = new(int32(2)) // A waiting resource is retried at a resync, and otherwise after half a minute.
		Expect(l.ReplaceState(simulator.CloudRegion(owner, region))).To(Succeed())
		h := l.start()
		Eventually(synced(ctx, s)).Should(Equal("False Pending"))
		Expect(message(ctx, s)).To(ContainSubstring(owner + "/" + region + "/" + tenant))
		Expect(*reading(ctx, s)(Default).Status.Inventory).To(Equal(corev1alpha2.InventoryStatus{Pending: 2}))
		was, writes := version(ctx, s)(Default), h.statusWrites()
		n := len(l.Requests())
		Eventually(func() []string { return l.asked(n) }).WithTimeout(10*time.Second).Should(ContainElement("GET 404"), "it is looked for again")
		Expect(l.written(n)).To(BeEmpty(), "there is nowhere to write to")
		Expect(h.exposition()).To(ContainSubstring(`healthscope_aai_problem{problem="tenant"} 1`))
		Expect(version(ctx, s)(Default)).To(Equal(was), "nothing has changed")
		Expect(h.statusWrites()).To(Equal(writes))
		Expect(l.Seed(simulator.Tenant(owner, region, tenant))).To(Succeed())
		Eventually(l.states).Should(Equal(all))
		Eventually(synced(ctx, s)).Should(Equal("True Synced"))
		Eventually(h.exposition).ShouldNot(ContainSubstring("healthscope_aai_problem{"))
	})

	DescribeTable("is reported once, is not asked again and again, and finds all done when it is back",
		func(ctx SpecContext, broken func(http.ResponseWriter)) {
			h := l.start()
			Eventually(synced(ctx, s)).Should(Equal("True Synced"))
			var asked atomicCount
			l.between(func(w http.ResponseWriter, _ *http.Request) bool { asked.add(); broken(w); return true })
			report(ctx, l.namespace, "7-web", service(l.namespace, "web"), deployment(l.namespace, "web", false))
			Eventually(synced(ctx, s)).Should(Equal("False Unavailable"))
			Expect(message(ctx, s)).To(ContainSubstring(owner + "/" + region + "/" + tenant))
			writes := h.statusWrites()

			By("changing things all the time")
			end := time.Now().Add(time.Second)
			changes := 0
			for ready := true; changes <= 20 || time.Now().Before(end); ready = !ready {
				report(ctx, l.namespace, "7-web", service(l.namespace, "web"), deployment(l.namespace, "web", ready))
				changes++
			}
			const passes = 8 // The pauses between them double, and are most of a minute together.
			Expect(asked.get()).To(BeNumerically("<=", passes*4), "eight passes at most in that time, of four requests at once")
			// A closed connection may end with EOF or with a reset, and each has its own message.
			Expect(h.statusWrites()-writes).To(BeNumerically("<=", changes+2+passes), "A&AI's trouble is no reason to write the status again")

			l.between(nil)
			report(ctx, l.namespace, "7-web", service(l.namespace, "web"), deployment(l.namespace, "web", true), service(l.namespace, "late"))
			Eventually(l.states).Should(And(HaveLen(3), HaveKeyWithValue("Deployment/web", "Ready")))
			Eventually(synced(ctx, s)).Should(Equal("True Synced"))
		},
		Entry("when it hangs up", func(http.ResponseWriter) { panic(http.ErrAbortHandler) }),
		Entry("when there is nothing behind the proxy", func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) }),
	)

	It("stays quiet when nothing changes while A&AI is down", func(ctx SpecContext) {
		var asked atomicCount
		l.between(func(http.ResponseWriter, *http.Request) bool { asked.add(); panic(http.ErrAbortHandler) })
		h := l.start()
		Eventually(synced(ctx, s)).Should(Equal("False Unavailable"))
		was, writes := version(ctx, s)(Default), h.statusWrites()
		Consistently(version(ctx, s)).Should(Equal(was))
		Expect(h.statusWrites()).To(Equal(writes))
		Expect(asked.get()).To(BeNumerically("<=", 8))
		l.between(nil)
		Eventually(l.states).Should(Equal(all))
	})

	It("is left alone for as long as it asks", func(ctx SpecContext) {
		h := l.start()
		Eventually(synced(ctx, s)).Should(Equal("True Synced"))
		var asked atomicCount
		l.between(func(w http.ResponseWriter, _ *http.Request) bool {
			asked.add()
			w.Header().Set("Retry-After", strconv.Itoa(3600))
			w.WriteHeader(http.StatusTooManyRequests)
			return true
		})
		report(ctx, l.namespace, "7-web", service(l.namespace, "web"), deployment(l.namespace, "web", false))
		Eventually(asked.get).ShouldNot(BeZero())
		Eventually(synced(ctx, s)).Should(Equal("False Unavailable"))
		n := asked.get()
		report(ctx, l.namespace, "7-web", service(l.namespace, "web"), deployment(l.namespace, "web", true), service(l.namespace, "late"))
		Consistently(asked.get).Should(Equal(n))
		h.stop()
	})

	It("because a file is missing says which", func(ctx SpecContext) {
		l.config.PasswordFile += "-missing"
		l.start()
		Eventually(synced(ctx, s)).Should(Equal("False Misconfigured"))
		Expect(message(ctx, s)).To(ContainSubstring("password-missing"))
		Expect(l.Requests()).To(BeEmpty(), "nothing is sent without credentials")
		l.write("password-missing", password)
		Eventually(l.states).Should(Equal(all))
	})

	It("with one resource says which, and writes the others", func(ctx SpecContext) {
		refused := func(status int, body string) func(http.ResponseWriter, *http.Request) bool {
			return func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodGet || !strings.Contains(bodyOf(r), `"kind":"Service"`) {
					return false
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(status)
				_, _ = w.Write([]byte(body))
				return true
			}
		}
		l.between(refused(http.StatusBadRequest, `{"requestError":{"serviceException":{"messageId":"SVC3000","text":"Invalid input performing %1 on %2 (msg=%3) (ec=%4)","variables":["PUT","x","the name is not wanted","ERR.5.2.3000"]}}}`))
		h := l.start()
		Eventually(synced(ctx, s)).Should(Equal("False Refused"))
		Expect(message(ctx, s)).To(And(ContainSubstring("Service/web"), ContainSubstring("the name is not wanted")))
		Expect(l.states()).To(Equal(map[string]string{"Deployment/web": "Ready"}))
		Expect(*reading(ctx, s)(Default).Status.Inventory).To(Equal(corev1alpha2.InventoryStatus{Synced: 1, Failed: 1}))
		Expect(h.Unsynced()).To(ConsistOf(And(
			HaveField("Kind", "Service"), HaveField("Name", "web"), HaveField("Cause", "rejected"), HaveField("Message", ContainSubstring("the name is not wanted")),
		)))
		Expect(h.exposition()).To(ContainSubstring(`healthscope_aai_rejected{cause="rejected"} 1`))
		h.stop()

		By("failing in a way that may pass")
		l.between(refused(http.StatusInternalServerError, ""))
		h = l.start()
		Eventually(synced(ctx, s)).Should(Equal("False Unavailable"))
		Expect(message(ctx, s)).To(ContainSubstring("Service/web"))
		report(ctx, l.namespace, "7-other", service(l.namespace, "other"))
		other := newScope(ctx, l.namespace, "other", corev1alpha2.ScopeApp{Name: "other", WorkloadReferences: []corev1alpha2.WorkloadReference{ref("apps/v1", "Deployment", "none")}})
		Eventually(synced(ctx, other)).Should(Equal("True Synced"), "other scopes have no part in it")
		report(ctx, l.namespace, "7-web", service(l.namespace, "web"), deployment(l.namespace, "web", false))
		Eventually(l.states).Should(Equal(map[string]string{"Deployment/web": "Pending"}))
		l.between(nil)
		Eventually(l.states).Should(HaveLen(2))
		Eventually(synced(ctx, s)).Should(Equal("True Synced"))
		h.stop()
	})

	It("to answer for modules keeps no tenant waiting", func(ctx SpecContext) {
		l.config.OperationalStatus = true
		var apps []corev1alpha2.ScopeApp
		for n := range 12 {
			id := fmt.Sprint("vnf-hanging-", n)
			l.config.Links[0].GenericVNFIDs = append(l.config.Links[0].GenericVNFIDs, id)
			report(ctx, l.namespace, id, service(l.namespace, id))
			apps = append(apps, linked(app(id, id), id, "module"))
		}
		newScope(ctx, l.namespace, "many", apps...)
		var hanging atomicCount
		l.between(func(_ http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, "/vf-modules") {
				return false
			}
			hanging.add()
			<-r.Context().Done()
			return true
		})
		h := l.start()
		Eventually(hanging.get).Should(BeNumerically(">=", 4), "all workers of modules wait")
		report(ctx, l.namespace, "7-web", service(l.namespace, "web"), deployment(l.namespace, "web", false))
		Eventually(l.states).WithTimeout(10 * time.Second).Should(HaveKeyWithValue("Deployment/web", "Pending"))
		h.stop()
	})

	It("does not keep the hub from stopping", func(ctx SpecContext) {
		release := make(chan struct{})
		var hanging atomicCount
		l.between(func(_ http.ResponseWriter, r *http.Request) bool {
			hanging.add()
			select {
			case <-release:
			case <-r.Context().Done():
			}
			return true
		})
		h := l.start()
		Eventually(hanging.get).ShouldNot(BeZero())
		Eventually(func(g Gomega) {
			var judged corev1alpha2.HealthScope
			g.Expect(api.Get(ctx, client.ObjectKeyFromObject(s), &judged)).To(Succeed())
			g.Expect(judged.Status.ObservedGeneration).To(Equal(judged.Generation))
		}).Should(Succeed())
		was := version(ctx, s)(Default)
		begin := time.Now()
		h.stop()
		Expect(time.Since(begin)).To(BeNumerically("<", 5*time.Second))
		Expect(version(ctx, s)(Default)).To(Equal(was), "a hub that stops says nothing about A&AI")
		close(release)
	})
})
