package monitor_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/controllers/monitor"
	"github.com/healthscope/healthscope/e2e/faults"
)

// throughFaults starts a proxy to the API server for a spec.
func throughFaults() *faults.Proxy {
	GinkgoHelper()
	proxy, err := faults.Start(plane.Config())
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(proxy.Stop)
	return proxy
}

var _ = Describe("A monitor in trouble", func() {
	var namespace string
	var options monitor.Options

	BeforeEach(func(ctx SpecContext) {
		namespace = newNamespace(ctx)
		options = monitor.Options{LeaseNamespace: namespace, Namespaces: []string{namespace}}
	})

	It("goes on when watches and lists expire, and nothing vanishes", func(ctx SpecContext) {
		proxy := throughFaults()
		m := startAs(ctx, proxy.Config(), GinkgoLogr, options)
		pod := newPod(namespace, "pod", "1-sink")
		create(ctx, newBundle(namespace, "1-sink"), pod, newService(namespace, "service", "1-sink"))
		Eventually(statesOf(ctx, namespace, "1-sink")).Should(HaveLen(2))
		before := len(m.writes())
		for i := range 3 {
			proxy.ExpireWatches()
			setReady(ctx, pod, i%2 == 0)
			want := map[bool]string{true: "Ready", false: "Failed"}[i%2 == 0]
			Eventually(statesOf(ctx, namespace, "1-sink")).Should(And(HaveLen(2), HaveKeyWithValue("Pod/pod", want)))
		}
		Expect(len(m.writes())-before).To(BeNumerically("<=", 4), "a write for each change")
	})

	It("goes on behind a connection that breaks, and nothing vanishes", func(ctx SpecContext) {
		proxy := throughFaults()
		m := startAs(ctx, proxy.Config(), GinkgoLogr, options)
		pod := newPod(namespace, "pod", "1-sink")
		create(ctx, newBundle(namespace, "1-sink"), pod, newService(namespace, "service", "1-sink"))
		Eventually(statesOf(ctx, namespace, "1-sink")).Should(HaveLen(2))
		proxy.Cut()
		setReady(ctx, pod, true)
		Consistently(statesOf(ctx, namespace, "1-sink")).Should(HaveKeyWithValue("Pod/pod", "Pending"))
		before := len(m.writes())
		proxy.Mend()
		Eventually(statesOf(ctx, namespace, "1-sink")).Should(And(HaveLen(2), HaveKeyWithValue("Pod/pod", "Ready")))
		Expect(len(m.writes()) - before).To(BeNumerically("<=", 2))
	})

	It("is patient with an API server that takes seconds to answer", func(ctx SpecContext) {
		proxy := throughFaults()
		m := startAs(ctx, proxy.Config(), GinkgoLogr, options)
		pod := newPod(namespace, "pod", "1-sink")
		create(ctx, newBundle(namespace, "1-sink"), pod)
		Eventually(statesOf(ctx, namespace, "1-sink")).Should(HaveLen(1))
		before := len(m.writes())
		proxy.Delay(3 * time.Second)
		DeferCleanup(func() { proxy.Delay(0) })
		setReady(ctx, pod, true)
		Eventually(statesOf(ctx, namespace, "1-sink")).WithTimeout(40 * time.Second).Should(HaveKeyWithValue("Pod/pod", "Ready"))
		Expect(len(m.writes()) - before).To(Equal(1))
	})

	It("does not wait with other bundles for one whose writes fail", func(ctx SpecContext) {
		proxy := throughFaults()
		startAs(ctx, proxy.Config(), GinkgoLogr, options)
		create(ctx, newBundle(namespace, "1-slow"), newBundle(namespace, "2-quick"))
		Eventually(func() *k8spluginv1alpha1.ResourceCounts { return get(ctx, namespace, "1-slow").Status.Summary }).ShouldNot(BeNil())
		Eventually(func() *k8spluginv1alpha1.ResourceCounts { return get(ctx, namespace, "2-quick").Status.Summary }).ShouldNot(BeNil())
		proxy.Refuse(func(r *http.Request) int {
			if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/1-slow/") {
				return http.StatusInternalServerError
			}
			return 0
		})
		create(ctx, newPod(namespace, "slow", "1-slow"), newPod(namespace, "quick", "2-quick"))
		Eventually(statesOf(ctx, namespace, "2-quick")).Should(HaveLen(1))
		proxy.Refuse(nil)
		Eventually(statesOf(ctx, namespace, "1-slow")).WithTimeout(40 * time.Second).Should(HaveLen(1))
	})

	It("keeps a bundle right whose annotations somebody changes all the time", func(ctx SpecContext) {
		start(ctx, options)
		pod := newPod(namespace, "pod", "1-sink")
		b := newBundle(namespace, "1-sink")
		create(ctx, b, pod)
		Eventually(statesOf(ctx, namespace, "1-sink")).Should(HaveLen(1))
		storm, calm := context.WithCancel(ctx)
		var storming sync.WaitGroup
		storming.Go(func() {
			ticks := time.NewTicker(100 * time.Millisecond)
			defer ticks.Stop()
			for i := 0; storm.Err() == nil; i++ {
				patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"tick":"%d"}}}`, i))
				_ = api.Patch(storm, newBundle(namespace, "1-sink"), patch) // The last request is cancelled.
				<-ticks.C
			}
		})
		for i := range 6 {
			want := map[bool]string{true: "Ready", false: "Failed"}[i%2 == 0]
			setReady(ctx, pod, i%2 == 0)
			Eventually(statesOf(ctx, namespace, "1-sink")).Should(HaveKeyWithValue("Pod/pod", want))
		}
		calm()
		storming.Wait()
	})

	It("fills bundles again after their CRD was deleted and created again", func(ctx SpecContext) {
		start(ctx, options)
		create(ctx, newBundle(namespace, "1-sink"), newPod(namespace, "pod", "1-sink"))
		Eventually(statesOf(ctx, namespace, "1-sink")).Should(HaveLen(1))
		uninstallBundleCRD(ctx)
		Expect(plane.InstallManifests(ctx, bundleCRD)).To(Succeed())
		Eventually(func() error { return api.Create(ctx, newBundle(namespace, "1-sink")) }).Should(Succeed())
		Eventually(statesOf(ctx, namespace, "1-sink")).WithTimeout(90 * time.Second).Should(HaveLen(1))
	})

	It("ends with an error when its Lease is stolen, and writes nothing afterwards", func(ctx SpecContext) {
		options.LeaseDuration = monitor.DefaultLeaseDuration
		mgr, seen := newManager(plane.Config(), GinkgoLogr, options)
		ended := make(chan error, 1)
		run, cancel := context.WithCancel(context.WithoutCancel(ctx))
		DeferCleanup(cancel)
		go func() { ended <- mgr.Start(run) }()
		create(ctx, newBundle(namespace, "1-sink"), newPod(namespace, "pod", "1-sink"))
		Eventually(statesOf(ctx, namespace, "1-sink")).Should(HaveLen(1))

		thief := "thief"
		lease := &coordinationv1.Lease{}
		lease.Namespace, lease.Name = namespace, monitor.LeaseName
		update(ctx, lease, func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = &thief })
		var cause error
		Eventually(ended).WithTimeout(time.Minute).Should(Receive(&cause))
		Expect(cause).To(MatchError(ContainSubstring("leader election lost")))
		writes := len(seen.writes())
		create(ctx, newService(namespace, "service", "1-sink"))
		Consistently(seen.writes).Should(HaveLen(writes))
	})
})
