package scope_test

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/healthscope"
)

const (
	healthy   = corev1alpha2.Healthy
	unhealthy = corev1alpha2.Unhealthy
	unknown   = corev1alpha2.UnknownHealth
)

var _ = Describe("A scope over bundles", func() {
	It("follows them from the first to the last, as kubectl shows", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		sink, source := newBundle(ctx, namespace, "7-sink", nil), newBundle(ctx, namespace, "7-source", nil)
		fill(ctx, sink, inBundle(namespace, "sink", replicas{2, 2, 2}), podInBundle(namespace, "sink-5d4f-aaaaa", true))
		fill(ctx, source, inBundle(namespace, "source", replicas{1, 1, 0}))
		c := start()
		s := newScope(ctx, namespace, "vfw", corev1alpha2.HealthScopeSpec{Apps: []corev1alpha2.ScopeApp{
			{Name: "sink", WorkloadReferences: refs(bundleRef("7-sink")).WorkloadReferences},
			{Name: "source", WorkloadReferences: refs(bundleRef("7-source")).WorkloadReferences},
		}})
		Eventually(reading(ctx, s)).Should(haveHealth(unhealthy, "1/2"))
		now := read(ctx, s)
		Expect(culprits(now)).To(Equal([]string{"Deployment/source Pending ReplicasNotReady"}))
		Expect(now.Status.ScopeHealthCondition).To(Equal(corev1alpha2.ScopeHealthCondition{HealthStatus: "UNHEALTHY", Total: 2, HealthyWorkloads: 1, UnhealthyWorkloads: 1}))
		Expect(now.Status.HealthConditions[0].TargetWorkload.UID).To(Equal(source.UID))
		Expect(now.Status.Apps).To(Equal([]corev1alpha2.AppStatus{
			{Name: "source", State: "Pending", Total: 1, Clusters: []corev1alpha2.ClusterStatus{{Name: "local", State: "Pending", Total: 1}}},
			{Name: "sink", State: "Ready", Total: 1, Ready: 1, Clusters: []corev1alpha2.ClusterStatus{{Name: "local", State: "Ready", Total: 1, Ready: 1}}},
		}))
		Expect(c.series(namespace, "vfw")).To(Equal(map[string]float64{
			"state Pending": 1, "health unhealthy": 1, "first_culprit source": 1, "resources sink Ready": 1, "resources source Pending": 1,
		}))

		table, err := kubectl(ctx, "-n", namespace, "get", "hs", "-o", "wide")
		Expect(err).NotTo(HaveOccurred())
		lines := strings.Split(strings.TrimSpace(table), "\n")
		Expect(strings.Fields(lines[0])).To(Equal([]string{"NAME", "HEALTH", "READY", "PENDING", "FAILED", "CLUSTERS", "AGE", "CULPRIT"}))
		Expect(lines[1]).To(MatchRegexp(`^vfw +unhealthy +1/2 +1 +0 +1/1 +\d+s +Deployment/source in local: ReplicasNotReady`))

		By("healing it")
		fill(ctx, source, inBundle(namespace, "source", replicas{1, 1, 1}))
		_, err = kubectl(ctx, "-n", namespace, "wait", "--for=condition=Ready", "hs/vfw", "--timeout=15s")
		Expect(err).NotTo(HaveOccurred())
		table, err = kubectl(ctx, "-n", namespace, "get", "healthscope")
		Expect(err).NotTo(HaveOccurred())
		Expect(table).To(MatchRegexp(`(?m)^vfw +healthy +2/2 +0 +0 +1/1 +\d+s$`))
		Expect(read(ctx, s)).To(haveHealth(healthy, "2/2"))

		By("deleting a bundle")
		Expect(api.Delete(ctx, sink)).To(Succeed())
		Eventually(reading(ctx, s)).Should(haveHealth(unhealthy, "1/2"))
		Expect(culprits(read(ctx, s))).To(Equal([]string{"ResourceBundleState/7-sink NotPresent NotFound"}))

		By("making a scope empty")
		now = read(ctx, s)
		now.Spec = corev1alpha2.HealthScopeSpec{}
		Expect(api.Update(ctx, &now)).To(Succeed())
		Eventually(reading(ctx, s)).Should(haveHealth(unknown, "0/0"))
		Expect(c.series(namespace, "vfw")).To(Equal(map[string]float64{"state Unknown": 1, "health unknown": 1}))
	})

	It("has the bundles that its selectors match, and those whose labels name it", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		start()
		s := newScope(ctx, namespace, "vfw", corev1alpha2.HealthScopeSpec{Apps: []corev1alpha2.ScopeApp{{
			Name: "edge", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "edge"}},
		}}})
		Eventually(reading(ctx, s)).Should(haveHealth(unknown, "0/0"))
		for i, labels := range []map[string]string{{"tier": "edge"}, {"healthscope.core.oam.dev/name": "vfw"}, {"healthscope.core.oam.dev/vfw": "true"}} {
			name := fmt.Sprintf("app%d", i)
			fill(ctx, newBundle(ctx, namespace, "7-"+name, labels), inBundle(namespace, name, replicas{1, 1, 1}))
			Eventually(reading(ctx, s)).Should(haveHealth(healthy, fmt.Sprintf("%d/%d", i+1, i+1)))
		}
		other := newBundle(ctx, namespace, "7-other", map[string]string{"healthscope.core.oam.dev/name": "other", "tier": "core"})
		fill(ctx, other, inBundle(namespace, "other", replicas{1, 1, 1}))
		Consistently(reading(ctx, s)).Should(haveHealth(healthy, "3/3"))

		By("taking a label away")
		labelled := other.DeepCopy()
		labelled.Labels = map[string]string{"tier": "edge"}
		Expect(api.Update(ctx, labelled)).To(Succeed())
		Eventually(reading(ctx, s)).Should(haveHealth(healthy, "4/4"))
		labelled.Labels = nil
		Expect(api.Update(ctx, labelled)).To(Succeed())
		Eventually(reading(ctx, s)).Should(haveHealth(healthy, "3/3"))
	})

	It("records one event for a change of health, and none for anything else", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		b := newBundle(ctx, namespace, "7-web", nil)
		fill(ctx, b, inBundle(namespace, "web", replicas{4, 4, 4}))
		start()
		s := newScope(ctx, namespace, "web", refs(bundleRef("7-web")))
		Eventually(eventsOf(ctx, s)).Should(ConsistOf("Normal Healthy"))
		for _, ready := range []int{3, 2, 1} {
			fill(ctx, b, inBundle(namespace, "web", replicas{4, 4, ready}))
			want := fmt.Sprintf("Ready:%d/4 Deployment/web: ReplicasNotReady", ready)
			Eventually(reading(ctx, s)).Should(HaveField("Status.HealthConditions", ConsistOf(HaveField("Diagnosis", want))))
		}
		Eventually(eventsOf(ctx, s)).Should(ConsistOf("Normal Healthy", "Warning Unhealthy"))
		fill(ctx, b, inBundle(namespace, "web", replicas{4, 4, 4}))
		Eventually(eventsOf(ctx, s)).Should(ConsistOf("Normal Healthy", "Warning Unhealthy", "Normal Healthy"))
		Consistently(eventsOf(ctx, s)).Should(HaveLen(3))
	})
})

var _ = Describe("A scope over workloads", func() {
	It("refers to Deployments and StatefulSets directly, as in OAM", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		web := newDeployment(ctx, namespace, "web", 3)
		selector, pod := template("db")
		db := &appsv1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "db"},
			Spec:       appsv1.StatefulSetSpec{Replicas: new(int32(2)), Selector: selector, Template: pod, ServiceName: "db"},
		}
		Expect(api.Create(ctx, db)).To(Succeed())
		start()
		s := newScope(ctx, namespace, "shop", refs(ref("apps/v1", "Deployment", "web"), ref("apps/v1", "StatefulSet", "db")))
		Eventually(reading(ctx, s)).Should(haveHealth(unhealthy, "1/2"))
		Expect(culprits(read(ctx, s))).To(Equal([]string{"StatefulSet/db Pending NotObserved"}))

		db.Status = appsv1.StatefulSetStatus{ObservedGeneration: db.Generation, Replicas: 2, ReadyReplicas: 2, UpdatedReplicas: 2, CurrentReplicas: 2, AvailableReplicas: 2}
		Expect(api.Status().Update(ctx, db)).To(Succeed())
		Eventually(reading(ctx, s)).Should(haveHealth(healthy, "2/2"))
		conditions := read(ctx, s).Status.HealthConditions
		Expect(conditions).To(ConsistOf(
			corev1alpha2.WorkloadHealthCondition{
				ComponentName: "web-component", HealthStatus: "HEALTHY", Diagnosis: "Ready:3/3 ",
				TargetWorkload: corev1alpha2.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: web.UID},
			},
			corev1alpha2.WorkloadHealthCondition{
				HealthStatus: "HEALTHY", Diagnosis: "Ready:2/2 ",
				TargetWorkload: corev1alpha2.WorkloadReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db", UID: db.UID},
			},
		))

		By("losing a replica, and then the workload")
		report(ctx, web, 2)
		Eventually(reading(ctx, s)).Should(haveHealth(unhealthy, "1/2"))
		Expect(api.Delete(ctx, web)).To(Succeed())
		Eventually(reading(ctx, s)).Should(WithTransform(culprits, Equal([]string{"Deployment/web NotPresent NotFound"})))
		Expect(read(ctx, s).Status.Summary.Pending).To(BeEquivalentTo(1), "what has just gone may come back")
		newDeployment(ctx, namespace, "web", 3)
		Eventually(reading(ctx, s)).Should(haveHealth(healthy, "2/2"))
	})

	It("selects them by their labels, as they come, change and go", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		web := newDeployment(ctx, namespace, "web", 3)
		start()
		s := newScope(ctx, namespace, "shop", corev1alpha2.HealthScopeSpec{Apps: []corev1alpha2.ScopeApp{{
			Name: "shop", WorkloadSelector: &corev1alpha2.WorkloadSelector{LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"part-of": "shop"}}},
		}}})
		Eventually(reading(ctx, s)).Should(WithTransform(func(s corev1alpha2.HealthScope) string {
			ready := meta.FindStatusCondition(s.Status.Conditions, corev1alpha2.ConditionReady)
			if ready == nil {
				return ""
			}
			return ready.Message
		}, ContainSubstring(`app "shop" (no Deployment, StatefulSet, DaemonSet, Job, CronJob in namespace %q has the labels part-of=shop)`, namespace)))

		By("labelling one, making another, and taking the label away")
		relabel := func(d *appsv1.Deployment, value string) {
			Expect(api.Get(ctx, client.ObjectKeyFromObject(d), d)).To(Succeed())
			d.Labels = map[string]string{"part-of": value}
			Expect(api.Update(ctx, d)).To(Succeed())
		}
		relabel(web, "shop")
		Eventually(reading(ctx, s)).Should(haveHealth(healthy, "1/1"))
		db := newDeployment(ctx, namespace, "db", 0)
		relabel(db, "shop")
		Eventually(reading(ctx, s)).Should(WithTransform(culprits, Equal([]string{"Deployment/db Pending ReplicasNotReady"})))
		relabel(web, "other")
		Eventually(reading(ctx, s)).Should(haveHealth(unhealthy, "0/1"))
		report(ctx, db, 3)
		Eventually(reading(ctx, s)).Should(haveHealth(healthy, "1/1"))
		Expect(read(ctx, s).Status.HealthConditions).To(HaveExactElements(HaveField("TargetWorkload",
			corev1alpha2.WorkloadReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "db", UID: db.UID, Cluster: "local"})))
	})

	It("keeps time limits without anything happening", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		newDeployment(ctx, namespace, "web", 1)
		policy := healthscope.Policy{PendingTimeout: 600 * time.Second, NotPresentGrace: 3 * time.Second}
		now := clocktesting.NewFakePassiveClock(time.Now())
		start(func(s *settings) { s.policy, s.clock = policy, now })
		s := newScope(ctx, namespace, "shop", refs(ref("apps/v1", "Deployment", "gone")))
		Eventually(reading(ctx, s)).Should(HaveField("Status.Summary", corev1alpha2.MemberCounts{State: "Pending", Total: 1, Pending: 1}))
		now.SetTime(now.Now().Add(policy.NotPresentGrace))
		Eventually(reading(ctx, s)).Should(HaveField("Status.Summary", corev1alpha2.MemberCounts{State: "Failed", Total: 1, Failed: 1}))
	})
})

var _ = Describe("Scopes that refer to each other", func() {
	It("name the cycle, all of them, and are well again once one of them leaves it", func(ctx SpecContext) {
		namespace := newNamespace(ctx)
		newDeployment(ctx, namespace, "web", 3)
		start()
		scopeRef := func(name string) corev1alpha2.HealthScopeSpec {
			return refs(ref("core.oam.dev/v1alpha2", "HealthScope", name))
		}
		a, b := newScope(ctx, namespace, "a", scopeRef("b")), newScope(ctx, namespace, "b", scopeRef("c"))
		c := newScope(ctx, namespace, "c", refs(ref("apps/v1", "Deployment", "web")))
		for _, s := range []*corev1alpha2.HealthScope{a, b, c} {
			Eventually(reading(ctx, s)).Should(haveHealth(healthy, "1/1"))
		}
		now := read(ctx, c)
		now.Spec = scopeRef("a")
		Expect(api.Update(ctx, &now)).To(Succeed())
		for _, s := range []*corev1alpha2.HealthScope{a, b, c} {
			Eventually(reading(ctx, s)).Should(SatisfyAll(haveHealth(unknown, "0/1"), HaveField("Status.Culprits", ConsistOf(SatisfyAll(
				HaveField("Reason", "ReferenceCycle"), HaveField("Cause", HaveSuffix("leads back to this scope")))))))
		}
		now = read(ctx, b)
		now.Spec = refs(ref("apps/v1", "Deployment", "web"))
		Expect(api.Update(ctx, &now)).To(Succeed())
		for _, s := range []*corev1alpha2.HealthScope{a, b, c} {
			Eventually(reading(ctx, s)).Should(haveHealth(healthy, "1/1"))
		}
	})
})
