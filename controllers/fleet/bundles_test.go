package fleet_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/bundle"
)

// viewer is a view under observation.
type viewer struct {
	*fleet.View

	stop    func()
	mu      sync.Mutex
	changes []fleet.Change
}

// look runs a manager with a view until the spec ends.
func look(policy healthscope.Policy) *viewer {
	GinkgoHelper()
	object, byObject := fleet.CacheByObject()
	options := ctrl.Options{
		Scheme: newScheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{object: byObject}},
	}
	options.Controller.SkipNameValidation = new(true) // One process, many managers.
	mgr, err := ctrl.NewManager(plane.Config(), options)
	Expect(err).NotTo(HaveOccurred())
	view, err := fleet.Setup(mgr, fleet.Options{ClusterName: "local", Policy: policy})
	Expect(err).NotTo(HaveOccurred())
	v := &viewer{View: view}
	view.Subscribe(func(c fleet.Change) {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.changes = append(v.changes, c)
	})
	ctx, cancel := lasting()
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

// sync waits until the view is synced.
func (v *viewer) sync(ctx context.Context) *viewer {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	Expect(v.WaitSynced(ctx)).To(Succeed())
	return v
}

// of returns how many changes there were of bundles of a namespace.
func (v *viewer) of(namespace string) func() int {
	return func() int {
		v.mu.Lock()
		defer v.mu.Unlock()
		n := 0
		for _, c := range v.changes {
			if c.New != nil && c.New.Namespace == namespace || c.Old != nil && c.Old.Namespace == namespace {
				n++
			}
		}
		return n
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

// newBundle makes a bundle without a status.
func newBundle(ctx context.Context, namespace, name string) *k8spluginv1alpha1.ResourceBundleState {
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
	BeforeEach(func(ctx SpecContext) { namespace = newNamespace(ctx) })

	It("has judged every bundle once it is synced", func(ctx SpecContext) {
		want := map[string]healthscope.State{}
		for i := range 20 {
			name := fmt.Sprintf("1-app%02d", i)
			b := newBundle(ctx, namespace, name)
			fill(ctx, b, time.Now(), workload(namespace, name, 2))
			want[name] = healthscope.Ready
		}
		v := look(healthscope.DefaultPolicy())
		Expect(v.Synced()).To(BeFalse())
		v.sync(ctx)
		got := map[string]healthscope.State{}
		for _, b := range v.All() {
			if b.Namespace == namespace {
				maps.Copy(got, states(b))
			}
		}
		Expect(got).To(Equal(want))
		Consistently(v.of(namespace)).Should(Equal(20), "the controller's own first look at each bundle is no news")
	})

	It("follows a bundle from its creation to its end", func(ctx SpecContext) {
		v := look(healthscope.DefaultPolicy()).sync(ctx)
		sink := v.one(namespace, "1-sink")
		b := newBundle(ctx, namespace, "1-sink")
		Eventually(sink).Should(HaveField("Observed", false))
		Expect(sink().App).To(Equal("sink"))
		Expect(sink().UID).To(Equal(b.UID))
		fill(ctx, b, time.Now(), workload(namespace, "web", 1))
		Eventually(func() map[string]healthscope.State { return states(sink()) }).Should(Equal(map[string]healthscope.State{"web": healthscope.Pending}))
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
		policy := healthscope.DefaultPolicy()
		policy.PendingTimeout = 2 * time.Second
		v := look(policy).sync(ctx)
		b := newBundle(ctx, namespace, "1-sink")
		fill(ctx, b, time.Now(), workload(namespace, "web", 1))
		sink := v.one(namespace, "1-sink")
		Eventually(func() map[string]healthscope.State { return states(sink()) }).Should(HaveKeyWithValue("web", healthscope.Pending))
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

	It("keeps no objects of bundles in the cache", func(ctx SpecContext) {
		b := newBundle(ctx, namespace, "1-sink")
		fill(ctx, b, time.Now(), workload(namespace, "web", 2))
		Expect(api.Get(ctx, client.ObjectKeyFromObject(b), b)).To(Succeed())
		Expect(b.Status.DeploymentStatuses).NotTo(BeEmpty())
		_, byObject := fleet.CacheByObject()
		transform := func(b *k8spluginv1alpha1.ResourceBundleState) *k8spluginv1alpha1.ResourceBundleState {
			GinkgoHelper()
			transformed, err := byObject.Transform(b.DeepCopy())
			Expect(err).NotTo(HaveOccurred())
			slim, ok := transformed.(*k8spluginv1alpha1.ResourceBundleState)
			Expect(ok).To(BeTrue())
			return slim
		}
		slim := transform(b)
		Expect(slim.Status.DeploymentStatuses).To(BeEmpty())
		Expect(bundle.Read("local", slim)).To(Equal(bundle.Read("local", b)), "and nothing that counts is lost")
		Expect(transform(slim)).To(Equal(slim), "an informer may call the transform twice")
		unknown, err := byObject.Transform("something else")
		Expect(err).NotTo(HaveOccurred())
		Expect(unknown).To(Equal("something else"))
	})

	It("stops while it waits for its bundles", func(ctx SpecContext) {
		v := look(healthscope.DefaultPolicy())
		v.stop()
	})
})
