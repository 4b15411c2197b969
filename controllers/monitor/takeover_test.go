package monitor_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/controllers/monitor"
)

var _ = Describe("Beside another monitor that is gone", func() {
	It("a bundle whose objects change is marked, and then taken over", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		clock := clocktesting.NewFakePassiveClock(time.Now())
		create(ctx, newBundle(namespace, "1-sink"), newPod(namespace, "pod", "1-sink"))
		writeAsEMCO(ctx, namespace, "1-sink")
		start(ctx, monitor.Options{LeaseNamespace: namespace, Namespaces: []string{namespace}, Clock: clock})
		Eventually(eventsOn(ctx, namespace, "StandingDown")).ShouldNot(BeEmpty())
		written, _ := k8spluginv1alpha1.LastWrite(get(ctx, namespace, "1-sink").ManagedFields)
		Expect(api.Delete(ctx, newPod(namespace, "pod", "1-sink"))).To(Succeed())

		objects := 0
		pass := func() { // Time passes, and a new object makes the monitor reconcile again.
			objects++
			clock.SetTime(clock.Now().Add(5 * time.Second))
			create(ctx, newService(namespace, fmt.Sprintf("service-%d", objects), "1-sink"))
		}
		Eventually(func(g Gomega) {
			pass()
			mark, err := k8spluginv1alpha1.ParseOutOfDate(get(ctx, namespace, "1-sink").Annotations[k8spluginv1alpha1.AnnotationOutOfDate])
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(mark.Written).To(BeTemporally("==", written))
		}).Should(Succeed())
		Eventually(func() *k8spluginv1alpha1.ResourceCounts {
			pass()
			return get(ctx, namespace, "1-sink").Status.Summary
		}).ShouldNot(BeNil())
		Eventually(statesOf(ctx, namespace, "1-sink")).ShouldNot(HaveKey("Pod/pod"))
	})
})
