package monitor_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/controllers/monitor"
	"github.com/healthscope/healthscope/e2e/suite"
)

var _ = Describe("A monitor", func() {
	var namespace string
	var options monitor.Options

	BeforeEach(func(ctx SpecContext) {
		namespace = newNamespace(ctx)
		options = monitor.Options{LeaseNamespace: namespace}
	})

	It("fills a bundle with every labelled object of the default kinds", func(ctx SpecContext) {
		create(ctx, newBundle(namespace, "1-sink"))
		create(ctx, oneOfEach(namespace, "1-sink")...)
		create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "unlabelled"}})
		start(ctx, options)
		Eventually(statesOf(ctx, namespace, "1-sink")).Should(And(
			HaveLen(len(monitor.DefaultKinds())),
			HaveKeyWithValue("ConfigMap/configmap", "Ready"),
			HaveKeyWithValue("Pod/pod", "Pending"),
		))
		b := get(ctx, namespace, "1-sink")
		Expect(b.Status.ResourceCount).To(BeEquivalentTo(len(monitor.DefaultKinds())))
		Expect(b.Status.Summary).NotTo(BeNil())
		Expect(b.Status.Ready).To(BeFalse())
		Expect(string(b.Status.PodStatuses)).To(ContainSubstring(`"name":"pod"`))
		Expect(b.Labels).To(HaveKeyWithValue(k8spluginv1alpha1.LabelDeploymentID, "1-sink"), "only the status is written")
	})

	It("fills a bundle at once that appears after its objects, in one write", func(ctx SpecContext) {
		m := start(ctx, options)
		create(ctx, newPod(namespace, "pod", "1-sink"), newService(namespace, "service", "1-sink"))
		create(ctx, newBundle(namespace, "0-probe"), newPod(namespace, "probe", "0-probe"), newService(namespace, "probe", "0-probe"))
		Eventually(statesOf(ctx, namespace, "0-probe")).Should(HaveLen(2), "the monitor has seen the objects")
		before := len(m.writes())
		create(ctx, newBundle(namespace, "1-sink"))
		Eventually(statesOf(ctx, namespace, "1-sink")).Should(HaveLen(2))
		Expect(m.writes()[before:]).To(HaveLen(1))
	})

	It("follows the state of its objects", func(ctx SpecContext) {
		start(ctx, options)
		pod := newPod(namespace, "pod", "1-sink")
		create(ctx, newBundle(namespace, "1-sink"), pod)
		Eventually(statesOf(ctx, namespace, "1-sink")).Should(HaveKeyWithValue("Pod/pod", "Pending"))
		setReady(ctx, pod, true)
		Eventually(statesOf(ctx, namespace, "1-sink")).Should(HaveKeyWithValue("Pod/pod", "Ready"))
		Expect(get(ctx, namespace, "1-sink").Status.Ready).To(BeTrue())
		setReady(ctx, pod, false)
		Eventually(statesOf(ctx, namespace, "1-sink")).Should(HaveKeyWithValue("Pod/pod", "Failed"))
		Expect(get(ctx, namespace, "1-sink").Status.Ready).To(BeFalse())
	})

	It("drops what is deleted, also what was deleted while it was stopped", func(ctx SpecContext) {
		m := start(ctx, options)
		one, two, three := newService(namespace, "one", "1-sink"), newService(namespace, "two", "1-sink"), newPod(namespace, "three", "1-sink")
		create(ctx, newBundle(namespace, "1-sink"), one, two, three)
		Eventually(statesOf(ctx, namespace, "1-sink")).Should(HaveLen(3))
		remove(ctx, one)
		Eventually(statesOf(ctx, namespace, "1-sink")).Should(And(HaveLen(2), Not(HaveKey("Service/one"))))
		m.stop()
		remove(ctx, two, three)
		start(ctx, options)
		Eventually(statesOf(ctx, namespace, "1-sink")).Should(BeEmpty())
		Expect(get(ctx, namespace, "1-sink").Status.ResourceCount).To(BeZero())
	})

	It("moves an object whose label changes from one bundle to the other", func(ctx SpecContext) {
		start(ctx, options)
		service := newService(namespace, "service", "1-sink")
		create(ctx, newBundle(namespace, "1-sink"), newBundle(namespace, "2-sink"), service)
		Eventually(statesOf(ctx, namespace, "1-sink")).Should(HaveLen(1))
		update(ctx, service, func(s *corev1.Service) { s.Labels[k8spluginv1alpha1.LabelDeploymentID] = "2-sink" })
		Eventually(statesOf(ctx, namespace, "2-sink")).Should(HaveLen(1))
		Eventually(statesOf(ctx, namespace, "1-sink")).Should(BeEmpty())
		update(ctx, service, func(s *corev1.Service) { delete(s.Labels, k8spluginv1alpha1.LabelDeploymentID) })
		Eventually(statesOf(ctx, namespace, "2-sink")).Should(BeEmpty())
	})

	It("keeps since over a restart and moves it when the state changes", func(ctx SpecContext) {
		clock := suite.NewFastClock(20)
		options.Clock = clock
		m := start(ctx, options)
		pod, service := newPod(namespace, "pod", "1-sink"), newService(namespace, "service", "1-sink")
		create(ctx, newBundle(namespace, "1-sink"), pod, service)
		Eventually(statesOf(ctx, namespace, "1-sink")).Should(HaveLen(2))
		first := get(ctx, namespace, "1-sink")
		m.stop()

		Eventually(clock.Now).Should(BeTemporally(">", sinceOf(first, "Pod", "pod").Add(2*time.Second)), "since has whole seconds")
		setReady(ctx, pod, true)
		start(ctx, options)
		Eventually(statesOf(ctx, namespace, "1-sink")).Should(HaveKeyWithValue("Pod/pod", "Ready"))
		second := get(ctx, namespace, "1-sink")
		Expect(sinceOf(second, "Service", "service")).To(BeTemporally("==", sinceOf(first, "Service", "service")))
		Expect(sinceOf(second, "Pod", "pod")).To(BeTemporally(">", sinceOf(first, "Pod", "pod")))
	})

	It("writes nothing after a restart when nothing has changed, and never asks for single objects", func(ctx SpecContext) {
		m := start(ctx, options)
		create(ctx, oneOfEach(namespace, "1-sink")...)
		create(ctx, newBundle(namespace, "1-sink"), newBundle(namespace, "2-empty"))
		Eventually(statesOf(ctx, namespace, "1-sink")).Should(HaveLen(len(monitor.DefaultKinds())))
		Eventually(func() *k8spluginv1alpha1.ResourceCounts { return get(ctx, namespace, "2-empty").Status.Summary }).ShouldNot(BeNil())
		Consistently(m.writes).Should(HaveLen(len(m.writes())), "a write leads to no other write")
		m.stop()
		before := get(ctx, namespace, "1-sink").ResourceVersion

		again := start(ctx, options)
		create(ctx, newBundle(namespace, "3-probe"))
		Eventually(func() *k8spluginv1alpha1.ResourceCounts { return get(ctx, namespace, "3-probe").Status.Summary }).ShouldNot(BeNil())
		Consistently(again.writes).Should(HaveExactElements(ContainSubstring("3-probe")))
		Expect(get(ctx, namespace, "1-sink").ResourceVersion).To(Equal(before))
		Expect(append(m.all(), again.all()...)).NotTo(ContainElement(MatchRegexp(`^GET .*/namespaces/`)), "what is watched is not asked for")
	})

	It("gathers a burst of changes into few writes and ends right", func(ctx SpecContext) {
		const size = 50
		m := start(ctx, options)
		pods := make([]*corev1.Pod, size)
		for i := range pods {
			pods[i] = newPod(namespace, fmt.Sprintf("pod-%02d", i), "1-sink")
			create(ctx, pods[i])
		}
		create(ctx, newBundle(namespace, "1-sink"))
		Eventually(statesOf(ctx, namespace, "1-sink")).Should(HaveLen(size))

		before, began := len(m.writes()), time.Now()
		for _, pod := range pods {
			setReady(ctx, pod, true)
		}
		Eventually(func() bool { return get(ctx, namespace, "1-sink").Status.Ready }).Should(BeTrue())
		allowed := 4 + int(time.Since(began)/(250*time.Millisecond))
		Expect(len(m.writes())-before).To(BeNumerically("<=", allowed), "at most one write each 250 ms, after three")
		Expect(get(ctx, namespace, "1-sink").Status.Summary.Ready).To(BeEquivalentTo(size))
	})

	It("keeps bundles and namespaces apart", func(ctx SpecContext) {
		other := newNamespace(ctx)
		start(ctx, options)
		create(ctx,
			newBundle(namespace, "1-sink"), newBundle(namespace, "1-source"), newBundle(other, "1-sink"),
			newPod(namespace, "same", "1-sink"), newPod(other, "same", "1-sink"), newService(namespace, "same", "1-source"),
		)
		mine := get(ctx, namespace, "1-sink")
		Eventually(statesOf(ctx, namespace, "1-sink")).Should(And(HaveLen(1), HaveKey("Pod/same")))
		Eventually(statesOf(ctx, namespace, "1-source")).Should(And(HaveLen(1), HaveKey("Service/same")))
		Eventually(statesOf(ctx, other, "1-sink")).Should(And(HaveLen(1), HaveKey("Pod/same")))
		Expect(get(ctx, namespace, "1-sink").Status.Resources[0].UID).
			NotTo(Equal(get(ctx, other, "1-sink").Status.Resources[0].UID), "each has its own pod")
		Expect(get(ctx, namespace, "1-sink").UID).To(Equal(mine.UID))
		remove(ctx, newPod(other, "same", "1-sink"))
		Eventually(statesOf(ctx, other, "1-sink")).Should(BeEmpty())
		Consistently(statesOf(ctx, namespace, "1-sink")).Should(HaveLen(1))
	})

	It("follows more than one label key", func(ctx SpecContext) {
		options.LabelKeys = []string{k8spluginv1alpha1.LabelDeploymentID, "k8splugin.io/rb-instance-id"}
		start(ctx, options)
		named := newBundle(namespace, "gentle-fox")
		named.Spec.Selector = nil
		onap := newConfigMap(namespace, "onap", "gentle-fox")
		onap.Labels = map[string]string{"k8splugin.io/rb-instance-id": "gentle-fox"}
		both := newConfigMap(namespace, "both", "gentle-fox")
		both.Labels["k8splugin.io/rb-instance-id"] = "gentle-fox"
		create(ctx, named, onap, both, newConfigMap(namespace, "emco", "gentle-fox"))
		Eventually(statesOf(ctx, namespace, "gentle-fox")).Should(HaveLen(3))
		Expect(get(ctx, namespace, "gentle-fox").Status.ResourceCount).To(BeEquivalentTo(3), "an object with two labels counts once")
	})

	It("looks at the configured namespaces only", func(ctx SpecContext) {
		other := newNamespace(ctx)
		options.Namespaces = []string{namespace}
		m := start(ctx, options)
		create(ctx, newBundle(other, "1-sink"), newPod(other, "pod", "1-sink"), newBundle(namespace, "1-sink"), newPod(namespace, "pod", "1-sink"))
		Eventually(statesOf(ctx, namespace, "1-sink")).Should(HaveLen(1))
		Consistently(m.all).ShouldNot(ContainElement(ContainSubstring("/" + other + "/")))
		Expect(m.all()).NotTo(ContainElement(MatchRegexp(`^GET /api/v1/pods`)), "it needs no right to all pods")
	})

	It("shows no data of ConfigMaps, no environment values and no copies of manifests", func(ctx SpecContext) {
		start(ctx, options)
		objects := oneOfEach(namespace, "1-sink")
		for _, object := range objects {
			object.SetAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: `{"data":"canary-applied"}`})
		}
		create(ctx, objects...)
		create(ctx, newSecret(namespace, "secret", "1-sink"))
		create(ctx, newBundle(namespace, "1-sink"))
		Eventually(statesOf(ctx, namespace, "1-sink")).Should(HaveLen(len(objects)))
		Expect(raw(ctx, namespace, "1-sink")).To(And(
			ContainSubstring(`"sink:1"`), // The pods are there, and otherwise complete.
			Not(ContainSubstring("canary")),
			Not(ContainSubstring("Y2FuYXJ5")), // "canary" in base64, as in resourceStatuses and Secrets.
		))
	})

	It("spends nothing on objects that no bundle asks for", func(ctx SpecContext) {
		m := start(ctx, options)
		create(ctx, newBundle(namespace, "1-sink"), newPod(namespace, "pod", "1-sink"))
		Eventually(statesOf(ctx, namespace, "1-sink")).Should(HaveLen(1))
		before := m.all()
		create(ctx, oneOfEach(namespace, "9-nobody")[1:]...)
		Consistently(m.all).Should(Equal(before))
	})

	It("repairs a status that others have written badly", func(ctx SpecContext) {
		m := start(ctx, options)
		create(ctx, newBundle(namespace, "1-sink"), newPod(namespace, "pod", "1-sink"))
		Eventually(statesOf(ctx, namespace, "1-sink")).Should(HaveLen(1))
		m.stop()
		for _, status := range []string{
			`{"ready":false,"resourceCount":0,"podStatuses":null,"serviceStatuses":null,"resources":null}`,
			`{"ready":true,"resourceCount":7,"podStatuses":"none","configMapStatuses":{"a":1},"resourceStatuses":[{"res":3}],"resources":null}`,
		} {
			bad := newBundle(namespace, "1-sink")
			Expect(api.Status().Patch(ctx, bad, client.RawPatch("application/merge-patch+json", []byte(`{"status":`+status+`}`)))).To(Succeed())
			again := start(ctx, options)
			Eventually(statesOf(ctx, namespace, "1-sink")).Should(HaveKeyWithValue("Pod/pod", "Pending"))
			repaired := get(ctx, namespace, "1-sink")
			Expect(repaired.Status.Malformed).To(BeEmpty())
			Expect(repaired.Status.Ready).To(BeFalse())
			Expect(repaired.Status.ResourceCount).To(BeEquivalentTo(1))
			Consistently(func() string { return get(ctx, namespace, "1-sink").ResourceVersion }).Should(Equal(repaired.ResourceVersion))
			again.stop()
		}
	})

	It("fills a bundle anew that is deleted and created again", func(ctx SpecContext) {
		start(ctx, options)
		create(ctx, newBundle(namespace, "1-sink"), newPod(namespace, "pod", "1-sink"))
		Eventually(statesOf(ctx, namespace, "1-sink")).Should(HaveLen(1))
		remove(ctx, newBundle(namespace, "1-sink"))
		create(ctx, newBundle(namespace, "1-sink"))
		Eventually(statesOf(ctx, namespace, "1-sink")).Should(HaveLen(1))
	})
})
