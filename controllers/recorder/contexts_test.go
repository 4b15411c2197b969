package recorder_test

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/controllers/recorder"
	"github.com/healthscope/healthscope/controllers/scope"
	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/e2e/suite"
	"github.com/healthscope/healthscope/healthscope"
	"github.com/healthscope/healthscope/healthscope/appcontext"
)

// withWeb and without are statuses of a bundle as a HealthScope monitor writes them: with the Deployment web, and without it.
const (
	withWeb = `{"ready":true,"resourceCount":2,"summary":{"state":"Ready","total":2,"ready":2,"pending":0,"failed":0,"unknown":0},"resources":[` +
		`{"group":"apps","version":"v1","kind":"Deployment","namespace":"NS","name":"web","state":"Ready"},{"version":"v1","kind":"Service","namespace":"NS","name":"front","state":"Ready"}]}`
	without = `{"ready":true,"resourceCount":1,"summary":{"state":"Ready","total":1,"ready":1,"pending":0,"failed":0,"unknown":0},"resources":[` +
		`{"version":"v1","kind":"Service","namespace":"NS","name":"front","state":"Ready"}]}`
)

// judge runs a hub that judges scopes with the requirements of contexts, until the spec ends.
func judge(o appcontext.Options) {
	GinkgoHelper()
	config := plane.Config()
	config.QPS = -1
	mgr, err := ctrl.NewManager(config, suite.ManagerOptions())
	Expect(err).NotTo(HaveOccurred())
	objects := fleet.NewObjects(nil, nil)
	view, err := fleet.Setup(mgr, fleet.Options{ClusterName: home, Policy: healthscope.DefaultPolicy(), Objects: objects})
	Expect(err).NotTo(HaveOccurred())
	o.Endpoints = []string{etcd.Endpoint()}
	store, err := appcontext.Open(o)
	Expect(err).NotTo(HaveOccurred())
	contexts, err := recorder.SetupContexts(mgr, store, nil, clock.RealClock{})
	Expect(err).NotTo(HaveOccurred())
	Expect(scope.Setup(mgr, scope.Options{View: view, Objects: objects, Registry: scope.NewRegistry(), Policy: healthscope.DefaultPolicy(), Contexts: contexts})).To(Succeed())
	life, cancel := suite.Lasting()
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(life) }()
	DeferCleanup(func() {
		cancel()
		Eventually(ended).Should(Receive(BeNil()), "the manager ends")
		Expect(store.Close()).To(Succeed())
	})
}

// inNamespace returns a status whose resources are in a namespace.
func inNamespace(status, namespace string) string {
	return strings.ReplaceAll(status, `"NS"`, `"`+namespace+`"`)
}

// deploy creates a context with the Deployment web of the app sink in the hub's own cluster. rsync has not applied it yet.
func deploy(ctx context.Context) (s *site, web appcontext.Handle) {
	GinkgoHelper()
	s = newSite(ctx, home)
	at, err := s.ac.GetClusterHandle(ctx, "sink", home)
	Expect(err).NotTo(HaveOccurred())
	web, err = s.ac.AddResource(ctx, at, "web+Deployment", "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n")
	Expect(err).NotTo(HaveOccurred())
	return s, web
}

// says stores a state at a level of a context.
func (s *site) says(ctx context.Context, at appcontext.Handle, state string) {
	GinkgoHelper()
	_, err := raw.Put(ctx, string(at)+"status/", `{"Status":"`+state+`"}`)
	Expect(err).NotTo(HaveOccurred())
}

var _ = Describe("Contexts", func() {
	var namespace string
	var scopeOfApp *corev1alpha2.HealthScope
	health := func(ctx context.Context) func() string {
		return func() string {
			var now corev1alpha2.HealthScope
			Expect(api.Get(ctx, client.ObjectKeyFromObject(scopeOfApp), &now)).To(Succeed())
			return string(now.Status.Health) + " " + now.Status.ResourcesReady + " " + now.Status.FirstCulprit
		}
	}
	// judged creates a bundle with a status, and the scope of its app. It returns the bundle.
	judged := func(ctx context.Context, name, status string) *k8spluginv1alpha1.ResourceBundleState {
		GinkgoHelper()
		namespace = newNamespace(ctx)
		b := newBundle(ctx, namespace, name, name, inNamespace(status, namespace))
		scopeOfApp = &corev1alpha2.HealthScope{}
		scopeOfApp.Namespace, scopeOfApp.Name = namespace, "vfw"
		scopeOfApp.Spec.Apps = []corev1alpha2.ScopeApp{{Name: "sink", WorkloadReferences: []corev1alpha2.WorkloadReference{
			{APIVersion: "k8splugin.io/v1alpha1", Kind: "ResourceBundleState", Name: name},
		}}}
		Expect(api.Create(ctx, scopeOfApp)).To(Succeed())
		return b
	}

	It("make a scope miss what they have brought, from when rsync has until it is asked to end", func(ctx SpecContext) {
		s, web := deploy(ctx)
		b := judged(ctx, s.bundle(), without)
		judge(appcontext.Options{})
		Eventually(health(ctx)).Should(HavePrefix("healthy 1/1"), "nothing was done with the context yet")

		By("applying it")
		s.says(ctx, s.root, "Instantiated")
		s.says(ctx, web, "Applied")
		Eventually(health(ctx)).Should(HavePrefix("unhealthy 1/2 Deployment/web"))

		By("its coming")
		fill(ctx, b, inNamespace(withWeb, namespace))
		Eventually(health(ctx)).Should(HavePrefix("healthy 2/2"))
		By("its vanishing")
		fill(ctx, b, inNamespace(without, namespace))
		Eventually(health(ctx)).Should(HavePrefix("unhealthy 1/2 Deployment/web"))

		By("an update without it, which keeps its states where they were")
		meta := `{"Project":"p","CompositeApp":"a","Version":"v1","DeploymentIntentGroup":"` + s.id + `"}`
		next := newSite(ctx, home)
		for _, of := range []*site{s, next} {
			_, err := raw.Put(ctx, string(of.root)+"meta/", meta)
			Expect(err).NotTo(HaveOccurred())
		}
		_, err := raw.Put(ctx, string(next.root)+"statusappctxid/", `"`+s.id+`"`)
		Expect(err).NotTo(HaveOccurred())
		s.says(ctx, s.root, "Updated")
		next.says(ctx, next.root, "Instantiated")
		Eventually(health(ctx)).Should(HavePrefix("healthy 1/1"))

		By("a rollback, and the end")
		next.says(ctx, next.root, "Updated")
		s.says(ctx, s.root, "Instantiated")
		Eventually(health(ctx)).Should(HavePrefix("unhealthy 1/2 Deployment/web"))
		s.says(ctx, s.root, "Terminating")
		Eventually(health(ctx)).Should(HavePrefix("healthy 1/1"))
	}, SpecTimeout(2*time.Minute))

	It("say what they said last while etcd is away, and hold up no scope for long", func(ctx SpecContext) {
		own, err := controlplane.StartEtcd(ctx, controlplane.EtcdOptions{Log: GinkgoWriter})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(own.Stop)
		shared, rest := etcd, raw
		etcd, raw = own, newRaw(own.Endpoint())
		DeferCleanup(func() { etcd, raw = shared, rest })
		s, web := deploy(ctx)
		s.says(ctx, s.root, "Instantiated")
		s.says(ctx, web, "Applied")
		b := judged(ctx, s.bundle(), without)
		judge(appcontext.Options{Timeout: time.Second})
		Eventually(health(ctx)).Should(HavePrefix("unhealthy 1/2 Deployment/web"))

		Expect(own.Kill()).To(Succeed())
		fill(ctx, b, inNamespace(strings.ReplaceAll(without, "front", "back"), namespace)) // The scope is judged again.
		Consistently(health(ctx)).Should(HavePrefix("unhealthy 1/2 Deployment/web"))

		By("a scope that is new meanwhile")
		before := scopeOfApp
		judged(ctx, "4712-sink", without)
		Eventually(health(ctx)).Should(HavePrefix("healthy 1/1"))

		By("its return")
		scopeOfApp = before
		Expect(own.Start(ctx)).To(Succeed())
		Eventually(func() error { _, err := raw.Put(ctx, string(web)+"status/", `{"Status":"Deleted"}`); return err }).Should(Succeed())
		Eventually(health(ctx)).Should(HavePrefix("healthy 1/1"))
	}, SpecTimeout(2*time.Minute))
})
