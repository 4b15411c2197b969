package enrol_test

import (
	"encoding/json"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/controllers/enrol"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/e2e/suite"
)

// twoClusters are clusters whose states do not change.
type twoClusters struct{}

func (twoClusters) States() []fleet.ClusterState {
	return []fleet.ClusterState{{Name: "local", Local: true, Reachability: fleet.Connected}, {Name: "provider+edge01", Reachability: fleet.Unreachable, Message: "no answer"}}
}

func (twoClusters) RejectedSecrets() []fleet.RejectedSecret {
	return []fleet.RejectedSecret{{Name: "old", Message: "the name is taken"}}
}

func (twoClusters) Subscribe(fleet.Topic) (*fleet.Subscription, func()) {
	return fleet.NewSubscription(), func() {}
}

// runController runs the controllers of Setup, with a clock at the given time, until the spec ends.
func runController(now time.Time) {
	GinkgoHelper()
	ctx, cancel := suite.Lasting()
	mgr, err := ctrl.NewManager(hubPlane.Config(), suite.ManagerOptions())
	Expect(err).NotTo(HaveOccurred())
	secrets, err := cache.New(hubPlane.Config(), cache.Options{Scheme: suite.Scheme(), ByObject: map[client.Object]cache.ByObject{&corev1.Secret{}: {
		Label:      labels.SelectorFromSet(labels.Set{corev1alpha2.LabelClusterKubeconfig: "true"}),
		Namespaces: map[string]cache.Config{corev1alpha2.DefaultClustersNamespace: {}},
	}}})
	Expect(err).NotTo(HaveOccurred())
	Expect(mgr.Add(secrets)).To(Succeed())
	Expect(enrol.Setup(ctx, mgr, enrol.Options{
		Secrets: secrets, States: twoClusters{}, Metrics: prometheus.NewRegistry(), Clock: clocktesting.NewFakePassiveClock(now),
		Lease: types.NamespacedName{Namespace: "healthscope-system", Name: "healthscope-controller"},
	})).To(Succeed())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	DeferCleanup(func() {
		cancel()
		Eventually(ended).Should(Receive(BeNil()))
	})
}

var _ = Describe("The controller", func() {
	BeforeEach(func(ctx SpecContext) { removeAll(ctx) })
	AfterEach(func(ctx SpecContext) { removeAll(ctx) })

	It("renews a token when it is time, and no other", func(ctx SpecContext) {
		e := enrolment()
		e.TokenLifetime = enrol.MinTokenLifetime
		add(ctx, e, time.Now())
		before := secret(ctx)
		others := before.DeepCopy()
		others.ObjectMeta = metav1.ObjectMeta{Namespace: before.Namespace, Name: "by-hand", Labels: before.Labels}
		Expect(hub.Create(ctx, others)).To(Succeed())

		now := time.Now().Add(8 * time.Minute).Truncate(time.Second)
		runController(now)
		Eventually(ctx, func() map[string][]byte { return secret(ctx).Data }).ShouldNot(Equal(before.Data))
		after := secret(ctx)
		Expect(after.Annotations).To(HaveKeyWithValue(corev1alpha2.AnnotationTokenExpires, now.Add(10*time.Minute).UTC().Format(time.RFC3339)))
		Expect(after.Labels).To(Equal(before.Labels))
		Expect(asHub(ctx).List(ctx, &k8spluginv1alpha1.ResourceBundleStateList{})).To(Succeed())
		Eventually(ctx, func() ([]string, error) {
			var list eventsv1.EventList
			err := hub.List(ctx, &list, client.InNamespace(before.Namespace))
			var notes []string
			for _, event := range list.Items {
				notes = append(notes, event.Regarding.Name+": "+event.Reason)
			}
			return notes, err
		}).Should(Equal([]string{"provider-edge01: TokenRenewed"}))

		Consistently(ctx, func() string { return secret(ctx).ResourceVersion }, 2*time.Second, 100*time.Millisecond).Should(Equal(after.ResourceVersion), "it is renewed once")
		var left corev1.Secret
		Expect(hub.Get(ctx, client.ObjectKeyFromObject(others), &left)).To(Succeed())
		Expect(left.ResourceVersion).To(Equal(others.ResourceVersion), "a token without the annotation is not renewed")
	}, SpecTimeout(time.Minute))

	It("publishes the states of clusters", func(ctx SpecContext) {
		runController(time.Now())
		published := &corev1.ConfigMap{}
		key := client.ObjectKey{Namespace: corev1alpha2.DefaultClustersNamespace, Name: "healthscope-clusters"}
		Eventually(ctx, func() error { return hub.Get(ctx, key, published) }).Should(Succeed())
		var document map[string]any
		Expect(json.Unmarshal([]byte(published.Data["clusters.json"]), &document)).To(Succeed())
		Expect(document).To(Equal(map[string]any{
			"lease": map[string]any{"namespace": "healthscope-system", "name": "healthscope-controller"},
			"clusters": []any{
				map[string]any{"name": "local", "local": true, "state": "Connected"},
				map[string]any{"name": "provider+edge01", "state": "Unreachable", "message": "no answer"},
			},
			"rejectedSecrets": []any{map[string]any{"name": "old", "message": "the name is taken"}},
		}))
	}, SpecTimeout(time.Minute))
})
