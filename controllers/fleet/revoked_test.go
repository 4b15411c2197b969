package fleet_test

import (
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/e2e/suite"
)

var _ = Describe("A member that does not accept its token any more", func() {
	It("is Forbidden and says why, and is right again with another token", func(ctx SpecContext) {
		s := newSite(ctx)
		monitor(edgeAPI, s.watch)
		fillIn(ctx, edgeAPI, newBundleIn(ctx, edgeAPI, s.shop, "1-sink"), time.Now(), workload(s.shop, "web", 2))
		w := wire()
		s.clock, s.timeout = suite.NewFastClock(4), 40*time.Second
		s.run(ctx)
		secret := s.secret(ctx, s.account(ctx, "hub", "https://"+w.Addr()), nil)
		Eventually(s.edge, "30s").Should(HaveField("Reachability", fleet.Connected))
		Expect(s.member("1-sink", "web")()).To(Equal("Ready  "))

		By("deleting its account")
		Expect(edgeAPI.Delete(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.watch, Name: "hub"}})).To(Succeed())
		lost := func() fleet.ClusterState {
			if s.edge().Reachability == fleet.Connected {
				w.Reset() // An open watch continues, and an API server accepts a cached token for some seconds.
			}
			return s.edge()
		}
		Eventually(lost, "90s", "2s").Should(SatisfyAll(HaveField("Reachability", fleet.Forbidden), HaveField("Message", ContainSubstring("does not accept the credentials (401"))))
		Expect(s.member("1-sink", "web")()).To(Equal("Unknown ClusterForbidden Ready"), "the last known state stays for the eye")
		Eventually(s.events(ctx)).Should(ContainElement(And(HavePrefix("Warning Forbidden"), ContainSubstring("401"))))

		By("giving it a token of another account")
		setData(ctx, secret, s.account(ctx, "hub2", "https://"+w.Addr()))
		Eventually(s.edge, "60s").Should(SatisfyAll(HaveField("Reachability", fleet.Connected), HaveField("Message", "")))
		Expect(s.member("1-sink", "web")()).To(Equal("Ready  "))
		// Before it was Forbidden, the resets may have made it Unreachable for a moment on a slow machine.
		sinceForbidden := func() []fleet.Reachability {
			went := s.went()
			return went[max(0, slices.Index(went, fleet.Forbidden)):]
		}
		Eventually(sinceForbidden).Should(HaveExactElements(fleet.Forbidden, fleet.Connected))
	}, SpecTimeout(4*time.Minute))
})
