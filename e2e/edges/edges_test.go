package edges

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/e2e/installation"
)

const (
	// stateLabel is the label in A&AI that holds a resource's state.
	stateLabel = "healthscope.core.oam.dev/status"
	// lossLimit is how long it may take until a cluster that does not answer is said to be out of sight.
	lossLimit = 30 * time.Second
	// namespace is the one that the application is in, in every cluster, and bundle the name of its bundles.
	namespace = "default"
	bundle    = "171887448792644816-web"
)

var _ = Describe("A scope over two edges", Ordered, func() {
	BeforeAll(func(ctx SpecContext) {
		for _, e := range []*edge{edge01, edge02} {
			for _, o := range []client.Object{deployment(), service(), bundleState()} {
				Expect(e.client.Create(ctx, o)).To(Succeed())
			}
		}
		Expect(k8s.Create(ctx, scope())).To(Succeed())
		eventually(ctx, corev1alpha2.Healthy, "4/4", "2/2")
		Eventually(ctx, inventory).Should(Equal(inBoth("Ready", "Ready")))
	}, NodeTimeout(2*time.Minute))

	It("tells which edge an app fails in", func(ctx SpecContext) {
		crash(ctx, edge02, true)
		eventually(ctx, corev1alpha2.Unhealthy, "3/4", "2/2")
		// The Deployment is not ready for a moment before it is known why.
		Eventually(ctx, func() string { return get(ctx).Status.FirstCulprit }).Should(Equal("Deployment/web in " + edge02.name + ": CrashLoopBackOff"))
		Eventually(ctx, inventory).Should(Equal(inBoth("Ready", "Failed")))
		crash(ctx, edge02, false)
		eventually(ctx, corev1alpha2.Healthy, "4/4", "2/2")
		Eventually(ctx, inventory).Should(Equal(inBoth("Ready", "Ready")))
	}, SpecTimeout(2*time.Minute))

	It("says what it cannot see, goes on with what it can, and finds all right again", func(ctx SpecContext) {
		known, err := inventory(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(edge02.cp.StopAPIServer()).To(Succeed())

		By("losing sight of one edge")
		var s *corev1alpha2.HealthScope
		Eventually(ctx, func(g Gomega) {
			s = get(ctx)
			g.Expect(s.Status.Health).To(Equal(corev1alpha2.UnknownHealth))
			g.Expect(s.Status.ClustersReachable).To(Equal("1/2"))
		}).WithTimeout(lossLimit).Should(Succeed())
		Expect(s.Status.ResourcesReady).To(Equal("2/4"))
		Expect(s.Status.Apps[0].Clusters).To(HaveLen(2))
		lost := s.Status.Apps[0].Clusters[0]
		Expect(lost.Name).To(Equal(edge02.name))
		Expect(lost.State).To(Equal("Unknown"))
		Expect(lost.LastSeen).NotTo(BeNil())
		Expect(s.Status.FirstCulprit).To(Equal("Cluster/" + edge02.name + ": ClusterUnreachable"))
		Expect(s.Status.Culprits[0].Cause).To(HavePrefix("2 resources cannot be seen: "))
		Expect(s.Status.Culprits[1].Cause).To(ContainSubstring("last seen Ready"))
		c := meta.FindStatusCondition(s.Status.Conditions, corev1alpha2.ConditionClustersReachable)
		Expect(c.Reason).To(Equal("Unreachable"))
		Expect(c.Message).To(ContainSubstring(edge02.name))
		Eventually(ctx, metric).WithArguments(fmt.Sprintf("healthscope_cluster_up{cluster=%q} 0", edge02.name)).Should(BeTrue())
		Expect(metric(ctx, fmt.Sprintf("healthscope_cluster_up{cluster=%q} 1", edge01.name))).To(BeTrue())
		Eventually(ctx, listed).Should(MatchRegexp(`(?m)^` + strings.ReplaceAll(edge02.name, "+", `\+`) + ` +Unreachable `))

		By("going on with the other edge")
		crash(ctx, edge01, true)
		Eventually(ctx, func(g Gomega) { g.Expect(get(ctx).Status.Health).To(Equal(corev1alpha2.Unhealthy)) }).Should(Succeed())
		Eventually(ctx, inventory).Should(Equal(inBoth("Failed", "Ready")), "A&AI keeps the last state of what cannot be seen")
		crash(ctx, edge01, false)
		Eventually(ctx, inventory).Should(Equal(known))
		eventually(ctx, corev1alpha2.UnknownHealth, "2/4", "1/2") // A&AI may hear of it before the scope does.

		By("starting the hub again meanwhile")
		Expect(hs.StopController()).To(Succeed())
		Expect(hs.StartController(ctx)).To(Succeed())
		Consistently(ctx, func(g Gomega) {
			s := get(ctx)
			g.Expect(s.Status.Health).To(Equal(corev1alpha2.UnknownHealth), s.Status.FirstCulprit)
			g.Expect(s.Status.ResourcesReady).To(Equal("2/4"))
			g.Expect(s.Status.Apps[0].Clusters[0].LastSeen).NotTo(BeNil())
			g.Expect(inventory(ctx)).To(Equal(known))
		}).WithTimeout(lossLimit).WithPolling(time.Second).Should(Succeed())

		By("finding the edge again")
		last := lastRequest(ctx)
		scopes := follow(ctx, hub, k8s, &corev1alpha2.HealthScopeList{}, "healthscopes")
		Expect(edge02.member.Kill()).To(Succeed()) // Nobody is to write before the versions are followed.
		Expect(edge02.cp.StartAPIServer(ctx)).To(Succeed())
		bundles := follow(ctx, edge02.cp, edge02.client, &k8spluginv1alpha1.ResourceBundleStateList{}, "resourcebundlestates")
		Expect(edge02.member.Restart(ctx)).To(Succeed())
		s = eventually(ctx, corev1alpha2.Healthy, "4/4", "2/2")
		Expect(s.Status.Apps[0].Clusters[0].LastSeen).To(BeNil())
		Eventually(ctx, metric).WithArguments(fmt.Sprintf("healthscope_cluster_up{cluster=%q} 1", edge02.name)).Should(BeTrue())
		Eventually(ctx, inventory).Should(Equal(known))

		By("writing nothing that changes nothing")
		// Kubernetes itself may have found its nodes silent for too long, and change its mind even now.
		Eventually(ctx, func(g Gomega) {
			heard := len(writes(ctx, last))
			changes := bundles.changes(ctx, g, bundleVersion(ctx, edge02))
			g.Expect(heard).To(BeNumerically("<=", changes), "A&AI hears of nothing but changes of the bundle")
			g.Expect(scopes.changes(ctx, g, get(ctx).ResourceVersion)).To(BeNumerically(">", 0), "the edge is seen again")
		}).Should(Succeed())
	}, SpecTimeout(5*time.Minute))

	It("forgets an edge that is removed, with all that failed there", func(ctx SpecContext) {
		By("expecting no cluster in particular")
		Expect(k8s.Patch(ctx, scope(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"expectedClusters":null}}`)))).To(Succeed())
		crash(ctx, edge02, true)
		eventually(ctx, corev1alpha2.Unhealthy, "3/4", "2/2")
		Eventually(ctx, inventory).Should(Equal(inBoth("Ready", "Failed")))
		_, err := edge02.member.Remove(ctx)
		Expect(err).NotTo(HaveOccurred())
		eventually(ctx, corev1alpha2.Healthy, "2/2", "1/1")
		Eventually(ctx, measured).WithArguments(edge02.name).Should(BeEmpty(), "no metric is about the edge")
		Expect(measured(ctx, edge01.name)).NotTo(BeEmpty())
		want := inBoth("Ready", "")
		maps.DeleteFunc(want, func(_, state string) bool { return state == "" })
		Eventually(ctx, inventory).Should(Equal(want))

		By("adding it again")
		crash(ctx, edge02, false)
		Expect(edge02.member.Add(ctx)).To(Succeed())
		eventually(ctx, corev1alpha2.Healthy, "4/4", "2/2")
		Eventually(ctx, inventory).Should(Equal(inBoth("Ready", "Ready")))
	}, SpecTimeout(3*time.Minute))
})

func labels() map[string]string {
	return map[string]string{"app": "web", k8spluginv1alpha1.LabelDeploymentID: bundle}
}

func deployment() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web", Labels: labels()}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels()},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "example.org/web:1"}}},
		},
	}}
}

func service() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web", Labels: labels()},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80}}},
	}
}

func bundleState() *k8spluginv1alpha1.ResourceBundleState {
	return &k8spluginv1alpha1.ResourceBundleState{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: bundle, Labels: labels()}, Spec: k8spluginv1alpha1.ResourceBundleStateSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{k8spluginv1alpha1.LabelDeploymentID: bundle}},
	}}
}

func scope() *corev1alpha2.HealthScope {
	return &corev1alpha2.HealthScope{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}, Spec: corev1alpha2.HealthScopeSpec{
		ExpectedClusters: []string{edge01.name, edge02.name},
		Apps: []corev1alpha2.ScopeApp{{Name: "web", WorkloadReferences: []corev1alpha2.WorkloadReference{
			{APIVersion: k8spluginv1alpha1.GroupVersion.String(), Kind: k8spluginv1alpha1.ResourceBundleStateKind, Name: bundle},
		}}},
	}}
}

func get(ctx context.Context) *corev1alpha2.HealthScope {
	GinkgoHelper()
	s := scope()
	Expect(k8s.Get(ctx, client.ObjectKeyFromObject(s), s)).To(Succeed())
	return s
}

// eventually waits until the scope has a health, a number of ready resources, and one of clusters.
func eventually(ctx context.Context, health corev1alpha2.Health, ready, clusters string) *corev1alpha2.HealthScope {
	GinkgoHelper()
	var s *corev1alpha2.HealthScope
	Eventually(ctx, func(g Gomega) {
		s = get(ctx)
		g.Expect(s.Status.Health).To(Equal(health), "culprit: %s", s.Status.FirstCulprit)
		g.Expect(s.Status.ResourcesReady).To(Equal(ready))
		g.Expect(s.Status.ClustersReachable).To(Equal(clusters))
	}).Should(Succeed())
	return s
}

// crash makes the application's pods in an edge crash, or lets them recover.
func crash(ctx context.Context, e *edge, crash bool) {
	GinkgoHelper()
	var list corev1.PodList
	Expect(e.client.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{"app": "web"})).To(Succeed())
	Expect(list.Items).NotTo(BeEmpty())
	value := "null"
	if crash {
		value = `"true"`
	}
	for i := range list.Items {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, controlplane.CrashAnnotation, value)
		Expect(e.client.Patch(ctx, &list.Items[i], client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
	}
}

// inventory returns the states of the application in A&AI, by cluster and Kind/name, without pods, whose names are made up.
func inventory(ctx context.Context) (map[string]string, error) {
	objects, err := hs.Objects(ctx)
	states := map[string]string{}
	for _, o := range objects {
		if o.Body["kind"] != "Pod" && o.Body["kind"] != "ReplicaSet" {
			states[fmt.Sprint(o.Body["data-source"], ": ", o)] = o.Label(stateLabel)
		}
	}
	return states, err
}

// inBoth is what A&AI holds when the Deployment is in these states at the edges; an empty one means that nothing of the edge is there.
func inBoth(one, two string) map[string]string {
	states := map[string]string{}
	for name, state := range map[string]string{edge01.name: one, edge02.name: two} {
		states[name+": Deployment/web"] = state
		states[name+": Service/web"] = "Ready"
		if state == "" {
			states[name+": Service/web"] = ""
		}
	}
	return states
}

// bundleVersion is the version of the bundle in an edge.
func bundleVersion(ctx context.Context, e *edge) string {
	GinkgoHelper()
	b := bundleState()
	Expect(e.client.Get(ctx, client.ObjectKeyFromObject(b), b)).To(Succeed())
	return b.ResourceVersion
}

// metric says whether the controller's metrics hold a line that begins so.
func metric(ctx context.Context, line string) (bool, error) {
	_, text, err := hs.Text(ctx, hs.Metrics)
	return strings.Contains(text, "\n"+line), err
}

// measured returns the controller's metrics that name a cluster.
func measured(ctx context.Context, cluster string) (lines []string, err error) {
	_, text, err := hs.Text(ctx, hs.Metrics)
	for line := range strings.Lines(text) {
		if strings.Contains(line, strconv.Quote(cluster)) {
			lines = append(lines, line)
		}
	}
	return lines, err
}

// listed is what `healthscope clusters` prints; that a cluster is out of sight makes it exit with 1.
func listed(ctx context.Context) string {
	out, _ := hs.Clusters(ctx)
	return out
}

// lastRequest is the number of the last request that A&AI has received.
func lastRequest(ctx context.Context) (last uint64) {
	GinkgoHelper()
	all, err := hs.Requests(ctx, 0)
	Expect(err).NotTo(HaveOccurred())
	for _, r := range all {
		last = max(last, r.Seq)
	}
	return last
}

// writes are the requests after a certain one by which A&AI was changed.
func writes(ctx context.Context, after uint64) (list []installation.Request) {
	GinkgoHelper()
	all, err := hs.Requests(ctx, after)
	Expect(err).NotTo(HaveOccurred())
	for _, r := range all {
		if r.Method != http.MethodGet {
			list = append(list, r)
		}
	}
	return list
}
