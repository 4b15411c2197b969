package scope_test

import (
	"fmt"
	"maps"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("Two controllers", func() {
	It("have one leader, which alone writes and has metrics, and the other takes over without a write", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		web := newDeployment(ctx, namespace, "web", 2)
		sink := newBundle(ctx, namespace, "7-sink", nil)
		fill(ctx, sink, inBundle(namespace, "sink", replicas{1, 1, 1}))
		elected := func(s *settings) { s.elected = true; stopClock(s) }
		first := start(elected)
		Eventually(first.mgr.Elected()).Should(BeClosed())
		second := start(elected)
		s := newScope(ctx, namespace, "shop", refs(ref("apps/v1", "Deployment", "web"), bundleRef("7-sink")))
		Eventually(reading(ctx, s)).Should(haveHealth(unhealthy, "1/2"))
		Consistently(func() any { return second.series(namespace, "shop") }).Should(BeEmpty())
		Expect(second.mgr.Elected()).NotTo(BeClosed())
		Expect([]int{first.written(namespace, "shop")(), second.written(namespace, "shop")()}).To(Equal([]int{1, 0}))
		Expect(second.watches("deployments")()).To(BeZero(), "only the leader watches what scopes refer to")
		Eventually(second.watches("resourcebundlestates")).Should(Equal(1), "the other is ready to take over")
		before := read(ctx, s)

		first.stop()
		Eventually(second.mgr.Elected()).Should(BeClosed())
		Eventually(func() any { return second.series(namespace, "shop") }).Should(HaveKeyWithValue("state Pending", 1.0))
		Consistently(second.written(namespace, "shop")).Should(BeZero())
		Expect(read(ctx, s)).To(Equal(before))
		report(ctx, web, 3)
		Eventually(reading(ctx, s)).Should(haveHealth(healthy, "2/2"))
	})
})

var _ = Describe("The rights in the markers", func() {
	It("are all used", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		Expect(api.DeleteAllOf(ctx, &coordinationv1.Lease{}, client.InNamespace(home))).To(Succeed())
		c := start(func(s *settings) { s.elected, s.alive = true, true })
		spec := refs()
		for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"} {
			spec.WorkloadReferences = append(spec.WorkloadReferences, ref("apps/v1", kind, "x"))
		}
		spec.WorkloadReferences = append(spec.WorkloadReferences, ref("batch/v1", "Job", "x"), ref("batch/v1", "CronJob", "x"))
		s := newScope(ctx, namespace, "shop", spec)
		Eventually(reading(ctx, s)).Should(haveHealth(unhealthy, "0/6"))
		newDeployment(ctx, namespace, "web", 3)
		well := newScope(ctx, namespace, "well", refs(ref("apps/v1", "Deployment", "web")))
		Eventually(eventsOf(ctx, well)).Should(ConsistOf("Normal Healthy"))
		var unused []string
		Eventually(func() []string {
			unused = nil
			used := c.rights()
			for _, rule := range slices.Concat(slices.Collect(maps.Values(markedRules("setup.go", "../fleet/setup.go")))...) {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						right := fmt.Sprintf("%s %s/%s", verb, rule.APIGroups[0], resource)
						// The controller lists only where the API server cannot stream a list as a watch.
						if verb != "list" && !slices.Contains(used, right) {
							unused = append(unused, right)
						}
					}
				}
			}
			return unused
		}).Should(BeEmpty())
	})
})
