package scope_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/pruning"
	"github.com/healthscope/healthscope/e2e/faults"
	"github.com/healthscope/healthscope/e2e/suite"
)

// throughProxy runs a controller whose requests to the API server go through a proxy that can cause faults.
func throughProxy(delay time.Duration, change ...func(*settings)) (*controller, *faults.Proxy) {
	GinkgoHelper()
	proxy, err := faults.Start(accountConfig())
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(proxy.Stop)
	proxy.Delay(delay)
	return start(append(change, func(s *settings) { s.config = proxy.Config() })...), proxy
}

// sumOfRequests returns the number of requests that went through a proxy.
func sumOfRequests(proxy *faults.Proxy) int {
	n := 0
	for _, count := range proxy.Requests() {
		n += count
	}
	return n
}

// deleteCRD deletes a CRD and all its objects, and restores the CRD at the end of the spec.
func deleteCRD(ctx context.Context, name string) {
	GinkgoHelper()
	scheme := suite.Scheme()
	Expect(apiextensionsv1.AddToScheme(scheme)).To(Succeed())
	admin, err := client.New(plane.Config(), client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	DeferCleanup(plane.InstallManifests, crds)
	Expect(admin.Delete(ctx, crd)).To(Succeed())
	Eventually(func() error { return admin.Get(ctx, client.ObjectKeyFromObject(crd), crd.DeepCopy()) }).Should(MatchError(apierrors.IsNotFound, "NotFound"))
}

// annotate changes an annotation of a scope, which has no effect on its status.
func annotate(ctx context.Context, s *corev1alpha2.HealthScope, value string) error {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"n":%q}}}`, value)
	return api.Patch(ctx, s.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)))
}

var _ = Describe("With an API server that misbehaves, a scope", func() {
	It("is judged rightly at a start at which every answer takes 10 seconds", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		newDeployment(ctx, namespace, "web", 3)
		fill(ctx, newBundle(ctx, namespace, "7-sink", nil), inBundle(namespace, "sink", replicas{1, 1, 1}))
		s := newScope(ctx, namespace, "shop", refs(ref("apps/v1", "Deployment", "web"), bundleRef("7-sink")))
		c, proxy := throughProxy(time.Second, shortenIntervals)
		Eventually(reading(ctx, s), time.Minute).Should(haveHealth(healthy, "2/2"))
		Expect(c.written(namespace, "shop")()).To(BeNumerically("<=", 3), "unknown, and then what is known")
		Expect(sumOfRequests(proxy)).To(BeNumerically("<", 60), "%v", proxy.Requests())
	}, SpecTimeout(5*time.Minute))

	It("is right, and written no more often than it changes, while others change it 50 times a second", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		web := newDeployment(ctx, namespace, "web", 3)
		c := start(stopClock)
		s := newScope(ctx, namespace, "shop", refs(ref("apps/v1", "Deployment", "web")))
		Eventually(reading(ctx, s)).Should(haveHealth(healthy, "1/1"))
		storm, end := context.WithCancel(ctx)
		var running sync.WaitGroup
		DeferCleanup(func() { end(); running.Wait() })
		running.Go(func() {
			defer GinkgoRecover()
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			for i := 0; storm.Err() == nil; i++ {
				if err := annotate(storm, s, fmt.Sprint(i)); storm.Err() == nil {
					Expect(err).NotTo(HaveOccurred())
				}
				<-tick.C
			}
		})
		for _, ready := range []int32{1, 3, 2, 3} {
			report(ctx, web, ready)
			diagnosis := fmt.Sprintf("Ready:%d/3 ", ready)
			Eventually(reading(ctx, s)).Should(HaveField("Status.HealthConditions", ConsistOf(HaveField("Diagnosis", HavePrefix(diagnosis)))))
		}
		Consistently(c.written(namespace, "shop"), 2*time.Second).Should(Equal(5))
		Expect(read(ctx, s)).To(haveHealth(healthy, "1/1"))
	})

	It("knows that its bundles have gone with their CRD, and when they are back", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		fill(ctx, newBundle(ctx, namespace, "7-sink", nil), inBundle(namespace, "sink", replicas{1, 1, 1}))
		c := start()
		s := newScope(ctx, namespace, "shop", refs(bundleRef("7-sink")))
		Eventually(reading(ctx, s)).Should(haveHealth(healthy, "1/1"))
		deleteCRD(ctx, "resourcebundlestates.k8splugin.io")
		Eventually(reading(ctx, s)).Should(WithTransform(culprits, Equal([]string{"ResourceBundleState/7-sink NotPresent NotFound"})))
		written := c.written(namespace, "shop")()
		Consistently(c.written(namespace, "shop"), 2*time.Second).Should(Equal(written))
		Expect(plane.InstallManifests(ctx, crds)).To(Succeed())
		fill(ctx, newBundle(ctx, namespace, "7-sink", nil), inBundle(namespace, "sink", replicas{1, 1, 1}))
		Eventually(reading(ctx, s), 90*time.Second).Should(haveHealth(healthy, "1/1"))
	}, SpecTimeout(3*time.Minute))

	It("is judged again after the CRD of scopes was away", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		newDeployment(ctx, namespace, "web", 3)
		c := start()
		spec := refs(ref("apps/v1", "Deployment", "web"))
		Eventually(reading(ctx, newScope(ctx, namespace, "shop", spec))).Should(haveHealth(healthy, "1/1"))
		deleteCRD(ctx, "healthscopes.core.oam.dev")
		Eventually(func() any { return c.registry.All() }).Should(BeEmpty(), "entries of scopes go with them")
		Expect(plane.InstallManifests(ctx, crds)).To(Succeed())
		Eventually(reading(ctx, newScope(ctx, namespace, "shop", spec)), 90*time.Second).Should(haveHealth(healthy, "1/1"))
	}, SpecTimeout(3*time.Minute))
})

// prunedCRD is a CRD of HealthScopes with only OAM's fields, like that of another project.
const prunedCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: healthscopes.core.oam.dev}
spec:
  group: core.oam.dev
  scope: Namespaced
  names: {kind: HealthScope, listKind: HealthScopeList, plural: healthscopes, singular: healthscope}
  versions:
  - name: v1alpha2
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, x-kubernetes-preserve-unknown-fields: true}
          status:
            type: object
            properties:
              healthConditions: {type: array, items: {type: object, x-kubernetes-preserve-unknown-fields: true}}
              scopeHealthCondition: {type: object, required: [healthStatus], properties: {healthStatus: {type: string}, total: {type: integer, format: int64}}}
`

var _ = Describe("With another project's CRD", func() {
	It("scopes are written rarely, readiness says why, and all are right once the right CRD is back", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		guard, now := pruning.NewGuard("HealthScopes"), clocktesting.NewFakePassiveClock(time.Now())
		c := start(func(s *settings) { s.guard, s.clock = guard, now })
		const many = 6
		var scopes []*corev1alpha2.HealthScope
		writes := func() int {
			n := 0
			for _, s := range scopes {
				n += c.written(namespace, s.Name)()
			}
			return n
		}
		for i := range many {
			name := fmt.Sprintf("app%d", i)
			newDeployment(ctx, namespace, name, 3)
			scopes = append(scopes, newScope(ctx, namespace, name, refs(ref("apps/v1", "Deployment", name))))
		}
		for _, s := range scopes {
			Eventually(reading(ctx, s)).Should(haveHealth(healthy, "1/1"))
		}
		Expect(guard.Ready()).To(Succeed())
		DeferCleanup(plane.InstallManifests, crds)
		Expect(plane.InstallManifests(ctx, suite.Manifest(prunedCRD))).To(Succeed())
		Eventually(guard.Ready, time.Minute).Should(MatchError(ContainSubstring("the CRD prunes status.summary")))
		before := writes()
		for _, s := range scopes {
			Expect(annotate(ctx, s, "changed")).To(Succeed())
		}
		// Four workers write. Three writes may have been allowed before the fourth worker detects the pruning.
		Consistently(writes, 2*time.Second).Should(BeNumerically("<=", before+3), "one attempt in every 30 seconds")

		By("repairing the CRD")
		Expect(plane.InstallManifests(ctx, crds)).To(Succeed())
		Eventually(func(g Gomega) { // The API server needs a moment until it stops pruning.
			now.SetTime(now.Now().Add(pruning.Interval))
			g.Expect(annotate(ctx, scopes[0], now.Now().String())).To(Succeed())
			g.Expect(guard.Ready()).To(Succeed())
		}, time.Minute, time.Second).Should(Succeed())
		for _, s := range scopes {
			Eventually(reading(ctx, s)).Should(haveHealth(healthy, "1/1"))
		}
		Expect(guard.Ready()).To(Succeed())
		for _, s := range scopes {
			Eventually(eventsOf(ctx, s)).Should(Equal([]string{"Normal Healthy"}), strings.Join([]string{"the health of", s.Name, "has not changed"}, " "))
		}
	}, SpecTimeout(4*time.Minute))
})
