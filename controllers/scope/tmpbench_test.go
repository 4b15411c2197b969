package scope_test

import (
	"fmt"
	"os"
	"runtime"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
)

var _ = Describe("TMPBENCH", func() {
	It("x", func(ctx SpecContext) {
		say := func(a ...any) { fmt.Fprintln(os.Stderr, a...) }
		ns := newNamespace(ctx)
		var g errgroup.Group
		g.SetLimit(16)
		for i := range 1000 {
			g.Go(func() error {
				defer GinkgoRecover()
				newDeployment(ctx, ns, fmt.Sprintf("d-%04d", i), 3)
				var spec corev1alpha2.HealthScopeSpec
				for j := range 10 {
					spec.WorkloadReferences = append(spec.WorkloadReferences, ref("apps/v1", "Deployment", fmt.Sprintf("d-%04d", (i+j)%1000)))
				}
				newScope(ctx, ns, fmt.Sprintf("s-%04d", i), spec)
				return nil
			})
		}
		_ = g.Wait()
		begin := time.Now()
		c := start()
		Eventually(func() int { return len(c.registry.All()) }, "120s").Should(BeNumerically(">=", 1000))
		say("judged", time.Since(begin))
		Eventually(func() int {
			c.mu.Lock()
			defer c.mu.Unlock()
			return len(c.writes)
		}, "120s", "100ms").Should(BeNumerically(">=", 1000))
		say("written", time.Since(begin))
		Consistently(func() bool { return true }, "3s").Should(BeTrue())
		n := 0
		for _, w := range c.writes {
			n += w
		}
		say("writes", n)
		var list corev1alpha2.HealthScopeList
		Expect(api.List(ctx, &list, client.InNamespace(ns))).To(Succeed())
		h := 0
		for _, s := range list.Items {
			if s.Status.Health == healthy {
				h++
			}
		}
		say("healthy", h)
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		say("heap MB", m.HeapAlloc>>20)
		c.stop()
		c = start()
		begin = time.Now()
		Eventually(func() int { return len(c.registry.All()) }, "120s").Should(BeNumerically(">=", 1000))
		say("restart judged", time.Since(begin))
		Consistently(func() int { return len(c.writes) }, "3s").Should(BeZero())
	}, SpecTimeout(5*time.Minute))
})
