package e2e

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

// lossLimit is the maximum time until a cluster that does not answer is reported as unreachable.
const lossLimit = time.Minute

var _ = Describe("An application at two edges", Ordered, Serial, func() {
	var a app

	BeforeAll(func(ctx SpecContext) {
		a = newApp()
		a.create(ctx, k8s, a.scope())
		for _, e := range []*edge{edge01, edge02} {
			a.create(ctx, e.client, a.deployment(1), a.service(), a.configMap(), a.bundleState())
		}
		a.is(ctx, corev1alpha2.Healthy, "6/6", "2/2")
		Eventually(ctx, a.inventoryByCluster).Should(Equal(inBoth("Ready", "Ready")))
	}, NodeTimeout(2*time.Minute))

	It("is forgotten at an edge that is removed, with all that failed there", func(ctx SpecContext) {
		a.crashIn(ctx, edge02.client, true)
		s := a.is(ctx, corev1alpha2.Unhealthy, "5/6", "2/2")
		Expect(s.Status.FirstCulprit).To(HavePrefix("Deployment/web in " + edge02.Cluster()))
		Eventually(ctx, a.inventoryByCluster).Should(Equal(inBoth("Ready", "Failed")))
		_, err := edge02.Remove(ctx)
		Expect(err).NotTo(HaveOccurred())
		a.is(ctx, corev1alpha2.Healthy, "3/3", "1/1")
		Eventually(ctx, measured).WithArguments(edge02.Cluster()).Should(BeEmpty(), "no metric is about the edge")
		Expect(measured(ctx, edge01.Cluster())).NotTo(BeEmpty())
		Eventually(ctx, a.inventoryByCluster).Should(Equal(inBoth("Ready", "")))

		By("adding it again")
		a.crashIn(ctx, edge02.client, false)
		Expect(edge02.Add(ctx)).To(Succeed())
		a.is(ctx, corev1alpha2.Healthy, "6/6", "2/2")
		Eventually(ctx, a.inventoryByCluster).Should(Equal(inBoth("Ready", "Ready")))
	}, SpecTimeout(3*time.Minute))

	It("is unknown where an edge is cut off, goes on at the other, and is right again afterwards", func(ctx SpecContext) {
		expected := fmt.Appendf(nil, `{"spec":{"expectedClusters":[%q,%q]}}`, edge01.Cluster(), edge02.Cluster())
		Expect(k8s.Patch(ctx, a.scope(), client.RawPatch(types.MergePatchType, expected))).To(Succeed())
		known, err := a.inventoryByCluster(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(edge02.Plane.StopAPIServer()).To(Succeed())

		By("losing sight of one edge")
		Eventually(ctx, a.line).WithTimeout(lossLimit).Should(Equal("unknown 3/6 1/2"))
		a.showsLost(ctx)
		Eventually(ctx, metric).WithArguments(fmt.Sprintf("healthscope_cluster_up{cluster=%q} 0", edge02.Cluster())).Should(BeTrue())
		Eventually(ctx, metric).WithArguments(fmt.Sprintf("healthscope_cluster_up{cluster=%q} 1", edge01.Cluster())).Should(BeTrue())

		By("going on with the other edge")
		a.crashIn(ctx, edge01.client, true)
		Eventually(ctx, a.line).Should(HavePrefix("unhealthy "))
		Eventually(ctx, a.inventoryByCluster).Should(Equal(inBoth("Failed", "Ready")), "A&AI keeps the last state of what cannot be seen")
		a.crashIn(ctx, edge01.client, false)
		Eventually(ctx, a.inventoryByCluster).Should(Equal(known))
		a.is(ctx, corev1alpha2.UnknownHealth, "3/6", "1/2") // A&AI may receive the state before the scope shows it.

		By("starting the hub again meanwhile")
		Expect(hs.StopController()).To(Succeed())
		Expect(hs.StartController(ctx)).To(Succeed())
		Eventually(ctx, func(g Gomega) {
			line, err := a.line(ctx)
			Expect(err).NotTo(HaveOccurred())
			Expect(line).To(Equal("unknown 3/6 1/2"), "at no time is anything else said")
			g.Expect(listed(ctx)).To(MatchRegexp(`(?m)^` + strings.ReplaceAll(edge02.Cluster(), "+", `\+`) + ` +Unreachable `))
		}).WithPolling(time.Second).Should(Succeed())
		a.showsLost(ctx)
		Expect(a.inventoryByCluster(ctx)).To(Equal(known))

		By("finding the edge again")
		_, last := writes(ctx, 0)
		scopes := follow(ctx, cp, k8s, &corev1alpha2.HealthScopeList{}, "healthscopes")
		Expect(edge02.Kill()).To(Succeed()) // So that the monitor writes nothing before the chronicle follows the bundles.
		Expect(edge02.Plane.StartAPIServer(ctx)).To(Succeed())
		bundles := follow(ctx, edge02.Plane, edge02.client, &k8spluginv1alpha1.ResourceBundleStateList{}, "resourcebundlestates")
		Expect(edge02.Restart(ctx)).To(Succeed())
		s := a.is(ctx, corev1alpha2.Healthy, "6/6", "2/2")
		Expect(s.Status.Apps[0].Clusters[0].LastSeen).To(BeNil())
		Eventually(ctx, metric).WithArguments(fmt.Sprintf("healthscope_cluster_up{cluster=%q} 1", edge02.Cluster())).Should(BeTrue())
		Eventually(ctx, a.inventoryByCluster).Should(Equal(known))

		By("writing nothing that changes nothing")
		// Kubernetes may have marked its nodes as NotReady, and may still be reverting that.
		Eventually(ctx, func(g Gomega) {
			heard, _ := writes(ctx, last)
			g.Expect(len(heard)).To(BeNumerically("<=", bundles.changes(ctx, g)), "A&AI hears of nothing but changes of bundles")
			g.Expect(scopes.changes(ctx, g)).To(BeNumerically(">", 0), "the edge is seen again")
		}).Should(Succeed())
	}, SpecTimeout(5*time.Minute))
})

// showsLost expects that the scope shows the last known state of the second edge, which is unreachable.
func (a app) showsLost(ctx context.Context) {
	GinkgoHelper()
	s, err := a.get(ctx)
	Expect(err).NotTo(HaveOccurred())
	Expect(s.Status.Apps[0].Clusters).To(HaveLen(2))
	lost := s.Status.Apps[0].Clusters[0]
	Expect(lost.Name).To(Equal(edge02.Cluster()))
	Expect(lost.State).To(Equal("Unknown"))
	Expect(lost.LastSeen).NotTo(BeNil())
	Expect(s.Status.Culprits[0]).To(And(HaveField("Kind", "Cluster"), HaveField("Name", edge02.Cluster())))
	c := meta.FindStatusCondition(s.Status.Conditions, corev1alpha2.ConditionClustersReachable)
	Expect(c).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", "Unreachable"), HaveField("Message", ContainSubstring(edge02.Cluster()))))
}

// inventoryByCluster returns the states of the application in A&AI, by cluster and Kind/name, without pods and ReplicaSets,
// whose names are generated.
func (a app) inventoryByCluster(ctx context.Context) (map[string]string, error) {
	objects, err := hs.Objects(ctx)
	states := map[string]string{}
	for _, o := range objects {
		if o.Body["namespace"] == a.namespace && o.Body["kind"] != "Pod" && o.Body["kind"] != "ReplicaSet" {
			states[fmt.Sprint(o.Body["data-source"], ": ", o)] = o.Label(stateLabel)
		}
	}
	return states, err
}

// inBoth returns the states in A&AI when the Deployment has these states at the edges. An empty state means that A&AI holds
// nothing of that edge.
func inBoth(one, two string) map[string]string {
	states := map[string]string{}
	for name, state := range map[string]string{edge01.Cluster(): one, edge02.Cluster(): two} {
		if state != "" {
			states[name+": Deployment/web"], states[name+": Service/web"] = state, "Ready"
		}
	}
	return states
}

// measured returns the lines of the controller's metrics that name a cluster.
func measured(ctx context.Context, cluster string) (lines []string, err error) {
	_, text, err := hs.Text(ctx, hs.Metrics)
	for line := range strings.Lines(text) {
		if strings.Contains(line, strconv.Quote(cluster)) {
			lines = append(lines, line)
		}
	}
	return lines, err
}

// listed returns the output of `healthscope clusters`. It ignores the exit code, which is 1 while a cluster is unreachable.
func listed(ctx context.Context) string {
	out, _ := hs.Clusters(ctx)
	return out
}
