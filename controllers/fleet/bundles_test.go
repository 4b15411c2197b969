package fleet_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/e2e/faults"
	"github.com/healthscope/healthscope/e2e/suite"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/bundle"
)

// viewer is a view under test.
type viewer struct {
	*fleet.View

	stop func()
	// changes are the changes of bundles that have not been counted yet. counted is the number of counted changes, by namespace.
	changes *fleet.Subscription
	counted map[string]int
}

// look runs a manager with a view until the spec ends.
func look(policy healthscope.Policy, change ...func(*fleet.Options, *rest.Config)) *viewer {
	GinkgoHelper()
	setup, config := fleet.Options{ClusterName: "local", Policy: policy}, plane.Config()
	for _, f := range change {
		f(&setup, config)
	}
	options := suite.ManagerOptions()
	options.Cache.DefaultTransform = cache.TransformStripManagedFields()
	mgr, err := ctrl.NewManager(config, options)
	Expect(err).NotTo(HaveOccurred())
	view, err := fleet.Setup(mgr, setup)
	Expect(err).NotTo(HaveOccurred())
	Expect(mgr.Add(manager.RunnableFunc(view.RecordEvents))).To(Succeed())
	v := &viewer{View: view, counted: map[string]int{}}
	ctx, cancel := suite.Lasting()
	var unsubscribe func()
	v.changes, unsubscribe = view.Subscribe(fleet.Bundles)
	DeferCleanup(unsubscribe)
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	v.stop = sync.OnceFunc(func() {
		cancel()
		var err error
		Eventually(ended).Should(Receive(&err), "the manager ends")
		Expect(err).NotTo(HaveOccurred())
	})
	DeferCleanup(v.stop)
	return v
}

// withClock gives a hub a clock that moves only when a spec steps it.
func withClock(c *clocktesting.FakeClock) func(*fleet.Options, *rest.Config) {
	return func(o *fleet.Options, _ *rest.Config) { o.Clock = c }
}

// sync waits until the view is synced.
func (v *viewer) sync(ctx context.Context) *viewer {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(ctx, suite.Timeout)
	defer cancel()
	Expect(v.WaitSynced(ctx)).To(Succeed())
	return v
}

// of returns a function that returns the number of changes of bundles of a namespace. Several changes of a bundle between two
// calls count once.
func (v *viewer) of(namespace string) func() int {
	return func() int {
		for _, c := range v.changes.Take() {
			if c, ok := c.(fleet.BundleChange); ok {
				v.counted[c.Namespace]++
			}
		}
		return v.counted[namespace]
	}
}

// one returns the only bundle of a name.
func (v *viewer) one(namespace, name string) func() *fleet.Bundle {
	return func() *fleet.Bundle {
		if found := v.Named(namespace, name); len(found) == 1 {
			return found[0]
		}
		return nil
	}
}

// newBundle creates a bundle without a status.
func newBundle(ctx context.Context, namespace, name string) *k8spluginv1alpha1.ResourceBundleState {
	GinkgoHelper()
	return newBundleIn(ctx, api, namespace, name)
}

// newBundleIn creates a bundle without a status in another cluster.
func newBundleIn(ctx context.Context, api client.Client, namespace, name string) *k8spluginv1alpha1.ResourceBundleState {
	GinkgoHelper()
	labels := map[string]string{k8spluginv1alpha1.LabelDeploymentID: name}
	b := &k8spluginv1alpha1.ResourceBundleState{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec:       k8spluginv1alpha1.ResourceBundleStateSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}},
	}
	Expect(api.Create(ctx, b)).To(Succeed())
	return b
}

// fill writes the status of a bundle as a monitor would.
func fill(ctx context.Context, b *k8spluginv1alpha1.ResourceBundleState, now time.Time, objects ...*unstructured.Unstructured) {
	GinkgoHelper()
	fillIn(ctx, api, b, now, objects...)
}

// fillIn writes the status of a bundle in another cluster as a monitor would.
func fillIn(ctx context.Context, api client.Client, b *k8spluginv1alpha1.ResourceBundleState, now time.Time, objects ...*unstructured.Unstructured) {
	GinkgoHelper()
	Expect(api.Get(ctx, client.ObjectKeyFromObject(b), b)).To(Succeed())
	b.Status = bundle.Build(objects, &b.Status, now, bundle.Options{})
	Expect(api.Status().Update(ctx, b)).To(Succeed())
}

// fillRaw writes any JSON into the status of a bundle.
func fillRaw(ctx context.Context, b *k8spluginv1alpha1.ResourceBundleState, status string) {
	GinkgoHelper()
	patch := fmt.Sprintf(`{"status":%s}`, status)
	Expect(api.Status().Patch(ctx, b.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
}

// workload returns a Deployment of 2 replicas as its controller leaves it.
func workload(namespace, name string, ready int) *unstructured.Unstructured {
	return decode(fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":%q,"name":%q,"uid":"uid-%s","generation":1},
		"spec":{"replicas":2},"status":{"observedGeneration":1,"replicas":2,"readyReplicas":%d,"updatedReplicas":2,"availableReplicas":%d}}`, namespace, name, name, ready, ready))
}

func decode(text string) *unstructured.Unstructured {
	GinkgoHelper()
	u := &unstructured.Unstructured{}
	Expect(json.Unmarshal([]byte(text), &u.Object)).To(Succeed())
	return u
}

// states returns the states of a bundle's members by name.
func states(b *fleet.Bundle) map[string]healthscope.State {
	if b == nil {
		return nil
	}
	all := map[string]healthscope.State{}
	for _, m := range b.Members {
		all[m.Name] = m.State
	}
	return all
}

var _ = Describe("View", func() {
	var namespace string
	BeforeEach(func(ctx SpecContext) { namespace = suite.NewNamespace(ctx, api) })

	It("has judged every bundle once it is synced", func(ctx SpecContext) {
		want := map[string]healthscope.State{}
		for i := range 20 {
			name := fmt.Sprintf("1-app%02d", i)
			b := newBundle(ctx, namespace, name)
			fill(ctx, b, time.Now(), workload(namespace, name, 2))
			want[name] = healthscope.Ready
		}
		m := newMeter()
		release := m.Hold("resourcebundlestates")
		DeferCleanup(release)
		v := look(healthscope.DefaultPolicy(), func(_ *fleet.Options, config *rest.Config) { config.Wrap(m.Wrap) })
		Expect(v.Synced()).To(BeFalse())
		release()
		v.sync(ctx)
		got := map[string]healthscope.State{}
		for _, b := range v.All() {
			if b.Namespace == namespace {
				maps.Copy(got, states(b))
			}
		}
		Expect(got).To(Equal(want))
		Consistently(v.of(namespace)).Should(Equal(20), "the controller's first judgement of each bundle changes nothing")
	})

	It("follows a bundle from its creation to its end", func(ctx SpecContext) {
		v := look(healthscope.DefaultPolicy()).sync(ctx)
		sink := v.one(namespace, "1-sink")
		b := newBundle(ctx, namespace, "1-sink")
		Eventually(sink).Should(HaveField("Observed", false))
		Expect(v.of(namespace)()).To(Equal(1))
		Expect(sink().App).To(Equal("sink"))
		Expect(sink().UID).To(Equal(b.UID))
		fill(ctx, b, time.Now(), workload(namespace, "web", 1))
		Eventually(func() map[string]healthscope.State { return states(sink()) }).Should(Equal(map[string]healthscope.State{"web": healthscope.Pending}))
		Expect(v.of(namespace)()).To(Equal(2))
		fill(ctx, b, time.Now(), workload(namespace, "web", 2))
		Eventually(func() map[string]healthscope.State { return states(sink()) }).Should(Equal(map[string]healthscope.State{"web": healthscope.Ready}))
		Expect(v.of(namespace)()).To(Equal(3))

		By("writing what says the same")
		b.Annotations = map[string]string{"seen": "yes"}
		Expect(api.Update(ctx, b)).To(Succeed())
		Consistently(v.of(namespace)).Should(Equal(3))

		Expect(api.Delete(ctx, b)).To(Succeed())
		Eventually(sink).Should(BeNil())
		Expect(v.of(namespace)()).To(Equal(4))
	})

	It("judges again when time alone changes the judgement", func(ctx SpecContext) {
		policy, fake := healthscope.DefaultPolicy(), clocktesting.NewFakeClock(time.Now())
		v := look(policy, withClock(fake)).sync(ctx)
		b := newBundle(ctx, namespace, "1-sink")
		fill(ctx, b, fake.Now(), workload(namespace, "web", 1))
		sink := v.one(namespace, "1-sink")
		Eventually(func() map[string]healthscope.State { return states(sink()) }).Should(HaveKeyWithValue("web", healthscope.Pending))
		fake.Step(policy.PendingTimeout)
		Eventually(func() map[string]healthscope.State { return states(sink()) }).Should(HaveKeyWithValue("web", healthscope.Failed))
		Expect(sink().Members[0].Reason).To(Equal(healthscope.ReasonPendingTimeout))
	})

	It("reads what other monitors write, and what is wrong in one bundle does not touch the others", func(ctx SpecContext) {
		v := look(healthscope.DefaultPolicy()).sync(ctx)
		for name, status := range map[string]string{
			"1-nulls":   `{"ready":false,"resourceCount":0,"podStatuses":null,"deploymentStatuses":null,"resources":null,"summary":null}`,
			"1-types":   `{"deploymentStatuses":"none","podStatuses":{"a":1},"serviceStatuses":[{"metadata":{"name":"svc","namespace":"x"},"spec":{"clusterIP":"10.0.0.1"}}]}`,
			"1-numbers": `{"deploymentStatuses":[7,{"metadata":{"name":"web"},"status":{"replicas":"three"}},null]}`,
			"1-emco":    `{"ready":false,"resourceCount":0,"deploymentStatuses":[{"metadata":{"name":"web","namespace":"x"},"spec":{"replicas":1},"status":{"observedGeneration":1,"replicas":1,"readyReplicas":1,"updatedReplicas":1,"availableReplicas":1}}]}`,
		} {
			fillRaw(ctx, newBundle(ctx, namespace, name), status)
		}
		ours := newBundle(ctx, namespace, "1-ours")
		fill(ctx, ours, time.Now(), workload(namespace, "web", 2))

		Eventually(func() map[string]healthscope.State { return states(v.one(namespace, "1-ours")()) }).Should(Equal(map[string]healthscope.State{"web": healthscope.Ready}))
		Eventually(func() map[string]healthscope.State { return states(v.one(namespace, "1-emco")()) }).Should(Equal(map[string]healthscope.State{"web": healthscope.Ready}))
		Eventually(v.one(namespace, "1-types")).Should(SatisfyAll(
			HaveField("Malformed", ConsistOf("deploymentStatuses", "podStatuses")),
			WithTransform(states, Equal(map[string]healthscope.State{"svc": healthscope.Ready}))))
		Eventually(v.one(namespace, "1-numbers")).Should(SatisfyAll(
			HaveField("Malformed", ConsistOf("deploymentStatuses[0]", "deploymentStatuses[2]")),
			WithTransform(states, HaveKeyWithValue("web", healthscope.Unknown))))
		Expect(v.one(namespace, "1-nulls")()).To(SatisfyAll(HaveField("Observed", false), HaveField("Malformed", BeEmpty()), HaveField("Members", BeEmpty())))
	})

	It("keeps the time for monitors that keep none, also over a restart as far as a status says so", func(ctx SpecContext) {
		policy, fake := healthscope.DefaultPolicy(), clocktesting.NewFakeClock(time.Now())
		v := look(policy, withClock(fake)).sync(ctx)
		b := newBundle(ctx, namespace, "1-emco")
		status := `{"ready":false,"resourceCount":0,"deploymentStatuses":[{"metadata":{"name":"web","namespace":%q},"spec":{"replicas":1},"status":{"observedGeneration":1,"replicas":1,"readyReplicas":0,"updatedReplicas":1}}]}`
		fillRaw(ctx, b, fmt.Sprintf(status, namespace))
		emco := v.one(namespace, "1-emco")
		Eventually(func() map[string]healthscope.State { return states(emco()) }).Should(HaveKeyWithValue("web", healthscope.Pending))
		since := emco().Members[0].Since
		Expect(since).To(BeTemporally("==", fake.Now().Truncate(time.Second)))
		Expect(emco().Own).To(BeFalse())
		Expect(api.Get(ctx, client.ObjectKeyFromObject(b), b)).To(Succeed())
		b.Labels["color"] = "blue"
		Expect(api.Update(ctx, b)).To(Succeed())
		Eventually(emco).Should(HaveField("Labels", HaveKeyWithValue("color", "blue")))
		Expect(emco().Members[0].Since).To(Equal(since), "what is new elsewhere in the bundle does not make it younger")
		fake.Step(policy.PendingTimeout)
		Eventually(func() map[string]healthscope.State { return states(emco()) }).Should(HaveKeyWithValue("web", healthscope.Failed))
		timeout := emco().Members[0]
		Expect(timeout.Reason).To(Equal(healthscope.ReasonPendingTimeout))
		Expect(timeout.Since).To(Equal(since.Add(policy.PendingTimeout)))
		v.stop()

		past := map[healthscope.Key]fleet.Observation{timeout.Key: {State: timeout.State, Reason: timeout.Reason, Since: timeout.Since}}
		v = look(policy, withClock(fake), func(o *fleet.Options, _ *rest.Config) {
			o.History = func(context.Context) (map[healthscope.Key]fleet.Observation, error) { return past, nil }
		}).sync(ctx)
		again := v.one(namespace, "1-emco")().Members[0]
		Expect(again.State).To(Equal(healthscope.Failed))
		Expect(again.Since).To(BeTemporally("==", timeout.Since))
		v.stop()

		forgetful := errors.New("no past")
		v = look(policy, withClock(fake), func(o *fleet.Options, _ *rest.Config) {
			o.History = func(context.Context) (map[healthscope.Key]fleet.Observation, error) { return nil, forgetful }
		}).sync(ctx)
		Expect(v.one(namespace, "1-emco")().Members[0].State).To(Equal(healthscope.Pending), "without a past the time begins again")
	})

	It("counts what a truncated bundle does not name", func(ctx SpecContext) {
		v := look(healthscope.DefaultPolicy()).sync(ctx)
		b := newBundle(ctx, namespace, "1-crowd")
		fillRaw(ctx, b, fmt.Sprintf(`{"ready":true,"resourceCount":5000,"truncated":true,"summary":{"state":"Ready","total":5000,"ready":5000,"pending":0,"failed":0,"unknown":0},
			"resources":[{"version":"v1","kind":"Pod","namespace":%q,"name":"a","state":"Ready"}]}`, namespace))
		Eventually(v.one(namespace, "1-crowd")).Should(SatisfyAll(
			HaveField("Own", true), HaveField("Truncated", true), HaveField("Members", HaveLen(1)),
			HaveField("Unlisted", healthscope.Summary{Total: 4999, Ready: 4999, Healthy: 4999})))
	})

	It("stays right when watches expire", func(ctx SpecContext) {
		proxy, err := faults.Start(plane.Config())
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(proxy.Stop)
		b := newBundle(ctx, namespace, "1-sink")
		fill(ctx, b, time.Now(), workload(namespace, "web", 2))
		v := look(healthscope.DefaultPolicy(), func(_ *fleet.Options, config *rest.Config) { *config = *proxy.Config() }).sync(ctx)
		sink := v.one(namespace, "1-sink")
		proxy.ExpireWatches()
		fill(ctx, b, time.Now(), workload(namespace, "web", 1))
		Eventually(func() map[string]healthscope.State { return states(sink()) }, time.Minute).Should(HaveKeyWithValue("web", healthscope.Pending))
		proxy.ExpireWatches()
		Expect(api.Delete(ctx, b)).To(Succeed())
		Eventually(sink, time.Minute).Should(BeNil(), "what was deleted while nobody watched is gone")
	}, SpecTimeout(4*time.Minute))

	It("waits for the CRD of bundles, and says so", func(ctx SpecContext) {
		scheme := suite.Scheme()
		Expect(apiextensionsv1.AddToScheme(scheme)).To(Succeed())
		admin, err := client.New(plane.Config(), client.Options{Scheme: scheme})
		Expect(err).NotTo(HaveOccurred())
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "resourcebundlestates.k8splugin.io"}}
		DeferCleanup(plane.InstallManifests, bundleCRD)
		uninstall := func() {
			GinkgoHelper()
			Expect(admin.Delete(ctx, crd.DeepCopy())).To(Succeed())
			Eventually(func() error { return admin.Get(ctx, client.ObjectKeyFromObject(crd), crd.DeepCopy()) }).Should(MatchError(apierrors.IsNotFound, "NotFound"))
			bundles := &k8spluginv1alpha1.ResourceBundleStateList{}
			Eventually(func() error { return api.List(ctx, bundles) }).ShouldNot(Succeed(), "they may be served for a moment after their CRD has gone")
		}
		uninstall()

		v := look(healthscope.DefaultPolicy())
		Eventually(v.Ready).Should(MatchError(ContainSubstring("the API server does not serve ResourceBundleStates (k8splugin.io/v1alpha1): kubectl apply -k config/crd")))
		Expect(plane.InstallManifests(ctx, bundleCRD)).To(Succeed())
		Eventually(v.Ready, time.Minute).Should(Succeed())
		b := newBundle(ctx, namespace, "1-sink")
		fill(ctx, b, time.Now(), workload(namespace, "web", 2))
		Eventually(func() map[string]healthscope.State { return states(v.one(namespace, "1-sink")()) }, time.Minute).Should(HaveKeyWithValue("web", healthscope.Ready))
		v.stop()

		By("ending while it waits")
		uninstall()
		v = look(healthscope.DefaultPolicy())
		Eventually(v.Ready).Should(MatchError(ContainSubstring("does not serve")))
		v.stop()
	}, SpecTimeout(4*time.Minute))

	It("stops while it waits for its bundles", func(ctx SpecContext) {
		v := look(healthscope.DefaultPolicy())
		v.stop()
	})
})
