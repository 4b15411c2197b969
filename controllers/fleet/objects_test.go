package fleet_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/e2e/suite"
	"github.com/healthscope/healthscope/healthscope"
)

var (
	deployments = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	configMaps  = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	namespaces  = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
	widgets     = schema.GroupVersionKind{Group: "acme.example.com", Version: "v1", Kind: "Widget"}
)

// roundTripper is a function that sends a request.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip sends a request.
func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// someone is the scope that wants kinds.
var someone = types.NamespacedName{Namespace: "default", Name: "someone"}

// observer is an Objects under test.
type observer struct {
	*fleet.Objects

	stop    func()
	mu      sync.Mutex
	changes []string
}

// observe starts an observer until the spec ends.
func observe(config *rest.Config) *observer {
	GinkgoHelper()
	objects := fleet.NewObjects([]string{"app.oam.dev/component"}, nil)
	Expect(objects.Attach("local", fleet.Access{Config: config})).To(Succeed())
	objects.FindInterval = 50 * time.Millisecond
	ctx, cancel := suite.Lasting()
	o := &observer{Objects: objects, stop: cancel}
	changes := o.Start(ctx)
	go changes.Deliver(ctx, func(c fleet.Change) {
		o.mu.Lock()
		defer o.mu.Unlock()
		switch c := c.(type) {
		case fleet.KindChange:
			o.changes = append(o.changes, c.Kind.Kind+"/")
		case fleet.ObjectChange:
			o.changes = append(o.changes, c.Kind.Kind+"/"+c.Name.Name)
		}
	})
	return o
}

// want wants kinds.
func (o *observer) want(kinds ...schema.GroupVersionKind) {
	set := map[fleet.Kind]struct{}{}
	for _, gvk := range kinds {
		set[fleet.Kind{Cluster: "local", GroupVersionKind: gvk}] = struct{}{}
	}
	o.Want(someone, set)
}

// notified returns the changes so far.
func (o *observer) notified() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.changes)
}

// state returns a function that returns the state and the reason of an object.
func (o *observer) state(gvk schema.GroupVersionKind, namespace, name string) func() string {
	return func() string {
		found := o.Get("local", gvk, types.NamespacedName{Namespace: namespace, Name: name})
		if found.Syncing {
			return "Settling"
		}
		return fmt.Sprintf("%s %s", found.Result.State, found.Result.Reason)
	}
}

// newDeployment creates a Deployment with all replicas ready, as its controller leaves it.
func newDeployment(ctx context.Context, namespace, name string) *appsv1.Deployment {
	GinkgoHelper()
	set := map[string]string{"app": name}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app.oam.dev/component": "front", "private": "x"}},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(2)),
			Selector: &metav1.LabelSelector{MatchLabels: set},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: set},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
			},
		},
	}
	Expect(api.Create(ctx, d)).To(Succeed())
	report(ctx, d, 2)
	return d
}

// report writes the status of a Deployment as its controller would.
func report(ctx context.Context, d *appsv1.Deployment, ready int32) {
	GinkgoHelper()
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 2, ReadyReplicas: ready, UpdatedReplicas: 2, AvailableReplicas: ready}
	Expect(api.Status().Update(ctx, d)).To(Succeed())
}

var _ = Describe("Objects", func() {
	It("knows the objects of a kind that is wanted, and notifies of those that change", func(ctx SpecContext) {
		namespace := suite.NewNamespace(ctx, api)
		d := newDeployment(ctx, namespace, "web")
		o := observe(plane.Config())
		o.want(deployments)
		web := o.state(deployments, namespace, "web")
		Eventually(web).Should(Equal("Ready "))
		Eventually(o.notified).Should(Equal([]string{"Deployment/"}), "one word when the kind has been read, not one for each object")
		result := o.Get("local", deployments, types.NamespacedName{Namespace: namespace, Name: "web"}).Result
		Expect(result.Key).To(Equal(healthscope.Key{Cluster: "local", Group: "apps", Kind: "Deployment", Namespace: namespace, Name: "web"}))
		Expect(result.UID).To(BeEquivalentTo(d.UID))
		Expect(result.Labels).To(Equal(map[string]string{"app.oam.dev/component": "front"}), "labels that are not allowed do not travel")

		Expect(o.state(deployments, namespace, "gone")()).To(Equal("NotPresent NotFound"))
		Expect(o.Get("local", deployments, types.NamespacedName{Namespace: namespace, Name: "gone"}).Result.Message).To(ContainSubstring(`"gone" does not exist in namespace "` + namespace))

		report(ctx, d, 1)
		Eventually(web).Should(Equal("Pending ReplicasNotReady"))
		Eventually(o.notified).Should(HaveLen(2))

		By("changing what has nothing to do with health")
		d.Status.CollisionCount = new(int32(1))
		Expect(api.Status().Update(ctx, d)).To(Succeed())
		Consistently(o.notified).Should(HaveLen(2))

		Expect(api.Delete(ctx, d)).To(Succeed())
		Eventually(web).Should(Equal("NotPresent NotFound"))
		Eventually(o.notified).Should(Equal([]string{"Deployment/", "Deployment/web", "Deployment/web"}))
	})

	It("selects the objects of a namespace by any of their labels", func(ctx SpecContext) {
		namespace, another := suite.NewNamespace(ctx, api), suite.NewNamespace(ctx, api)
		web := newDeployment(ctx, namespace, "web")
		newDeployment(ctx, namespace, "shop")
		newDeployment(ctx, another, "web")
		o := observe(plane.Config())
		selected := func(selector string) func() string {
			parsed, err := labels.Parse(selector)
			Expect(err).NotTo(HaveOccurred())
			return func() string {
				found := o.Select("local", deployments, namespace, parsed)
				var names []string
				for _, l := range found.Objects {
					Expect(l.Result.Namespace).To(Equal(namespace))
					names = append(names, l.Result.Name+" "+string(l.Result.State))
				}
				return fmt.Sprintf("%s; others %s, settling %t", strings.Join(names, ", "), found.Others.Result.State, found.Others.Syncing)
			}
		}
		private, component := selected("private=y"), selected("app.oam.dev/component")
		Expect(private()).To(Equal("; others Unknown, settling true"))
		o.want(deployments)
		Eventually(component).Should(Equal("shop Ready, web Ready; others NotPresent, settling false"))
		Expect(private()).To(Equal("; others NotPresent, settling false"))
		web.Labels["private"] = "y"
		Expect(api.Update(ctx, web)).To(Succeed())
		Eventually(private).Should(Equal("web Ready; others NotPresent, settling false"))
		Eventually(o.notified).Should(ContainElement("Deployment/web"), "a change of labels is one for those who select by them")
		Expect(api.Delete(ctx, web)).To(Succeed())
		Eventually(private).Should(Equal("; others NotPresent, settling false"))
	})

	It("has one watch for a kind, as long as it is wanted", func(ctx SpecContext) {
		m := newMeter()
		o := observe(m.config())
		another := types.NamespacedName{Namespace: "default", Name: "another"}
		o.want(deployments, configMaps)
		o.Want(another, map[fleet.Kind]struct{}{{Cluster: "local", GroupVersionKind: deployments}: {}})
		Eventually(func() []int { return []int{m.Watches("deployments"), m.Watches("configmaps")} }).Should(Equal([]int{1, 1}))
		o.want(deployments)
		Eventually(func() int { return m.Watches("configmaps") }).Should(BeZero())
		Expect(o.state(configMaps, "default", "x")()).To(Equal("Settling"), "nothing is said of a kind that is not watched")
		o.want()
		Consistently(func() int { return m.Watches("deployments") }).Should(Equal(1), "another one wants it still")
		o.Want(another, nil)
		Eventually(func() int { return m.Watches("deployments") }).Should(BeZero())

		By("wanting it again")
		o.want(deployments)
		Eventually(o.state(deployments, "default", "gone")).Should(Equal("NotPresent NotFound"))
		Eventually(func() int { return m.Watches("deployments") }).Should(Equal(1))
		o.stop()
		Eventually(func() int { return m.Watches("deployments") }).Should(BeZero(), "all ends with the context")
	})

	It("looks at a hundred pods of a workload, and no more", func(ctx SpecContext) {
		namespace := suite.NewNamespace(ctx, api)
		web := newDeployment(ctx, namespace, "web")
		for i := range 103 {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint("web-", i), Labels: web.Spec.Selector.MatchLabels}, Spec: web.Spec.Template.Spec}
			Expect(api.Create(ctx, pod)).To(Succeed())
		}
		var answer []byte
		config := plane.Config()
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(request *http.Request) (*http.Response, error) {
				response, err := next.RoundTrip(request)
				if err == nil && path.Base(request.URL.Path) == "pods" {
					answer, err = io.ReadAll(response.Body)
					response.Body = io.NopCloser(bytes.NewReader(answer))
				}
				return response, err
			})
		})
		o := observe(config)
		of := healthscope.Key{Cluster: "local", Group: "apps", Kind: "Deployment", Namespace: namespace, Name: "web"}
		Eventually(func(g Gomega) { // The API server's cache may lack some pods.
			_, err := o.JudgePods(ctx, of, healthscope.DefaultPolicy(), time.Now())
			g.Expect(err).NotTo(HaveOccurred())
			var pods corev1.PodList
			g.Expect(json.Unmarshal(answer, &pods)).To(Succeed())
			g.Expect(pods.Items).To(HaveLen(100))
			g.Expect(pods.Continue).NotTo(BeEmpty(), "there are more")
		}).Should(Succeed())
	})

	It("leaves no goroutine behind", func(ctx SpecContext) {
		config := plane.Config()
		transport, err := rest.HTTPClientFor(config)
		Expect(err).NotTo(HaveOccurred())
		existing := []goleak.Option{goleak.IgnoreCurrent(), goleak.IgnoreAnyFunction("net/http.(*http2ClientConn).readLoop"), goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*clientConnReadLoop).run")}
		o := observe(config)
		o.want(deployments, configMaps, widgets)
		Eventually(o.state(configMaps, "default", "x")).Should(Equal("NotPresent NotFound"))
		Eventually(o.state(widgets, "default", "x")).Should(Equal("Unknown KindNotFound"))
		o.want(deployments)
		Eventually(o.state(deployments, "default", "x")).Should(Equal("NotPresent NotFound"))
		o.want()
		transport.CloseIdleConnections()
		subscribed := goleak.IgnoreTopFunction("github.com/healthscope/healthscope/controllers/fleet.(*Subscription).Deliver")
		Eventually(func() error { return goleak.Find(append(existing, subscribed)...) }).Should(Succeed(), "nothing is wanted any more")
		o.want(deployments, widgets)
		Eventually(o.state(deployments, "default", "x")).Should(Equal("NotPresent NotFound"))
		o.stop()
		transport.CloseIdleConnections()
		Eventually(func() error { return goleak.Find(existing...) }).Should(Succeed(), "the context has ended")
		o.want(configMaps)
		Expect(o.state(configMaps, "default", "x")()).To(Equal("Settling"))
		Expect(goleak.Find(existing...)).To(Succeed(), "nothing starts after the end")
	})

	It("is settling, and not Unknown, while a slow API server is being read", func(ctx SpecContext) {
		m := newMeter()
		release := m.Hold("deployments")
		DeferCleanup(release)
		o := observe(m.config())
		o.want(deployments)
		Consistently(o.state(deployments, "default", "x")).Should(Equal("Settling"))
		Expect(o.notified()).To(BeEmpty())
		release()
		Eventually(o.state(deployments, "default", "x")).Should(Equal("NotPresent NotFound"))
	})

	It("does not follow references to objects without a namespace", func(ctx SpecContext) {
		o := observe(plane.Config())
		o.want(namespaces)
		Eventually(o.state(namespaces, "default", "default")).Should(Equal("Unknown InvalidReference"))
		Expect(o.Get("local", namespaces, types.NamespacedName{Namespace: "default", Name: "default"}).Result.Message).To(ContainSubstring("Namespace is not namespaced"))
	})

	It("keeps what it knows while the API server is away, and goes on when it is back", func(ctx SpecContext) {
		namespace := suite.NewNamespace(ctx, api)
		d := newDeployment(ctx, namespace, "web")
		o := observe(plane.Config())
		o.want(deployments)
		web := o.state(deployments, namespace, "web")
		Eventually(web).Should(Equal("Ready "))
		Expect(plane.StopAPIServer()).To(Succeed())
		newcomer := observe(plane.Config())
		newcomer.want(configMaps)
		Consistently(web).Should(Equal("Ready "))
		Consistently(newcomer.state(configMaps, namespace, "x")).Should(Equal("Settling"), "no answer says nothing about a kind")
		Expect(plane.StartAPIServer(ctx)).To(Succeed())
		report(ctx, d, 1)
		Eventually(web, "90s").Should(Equal("Pending ReplicasNotReady"), "it may be a minute before it is tried again to read a kind")
		Eventually(newcomer.state(configMaps, namespace, "x"), "90s").Should(Equal("NotPresent NotFound"))
		Eventually(newcomer.notified).Should(Equal([]string{"ConfigMap/"}))
	}, SpecTimeout(5*time.Minute))
})

// widgetCRD is the CRD of the kind Widget.
const widgetCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.acme.example.com}
spec:
  group: acme.example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

var _ = Describe("Objects of a kind that comes and goes", func() {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "widgets.acme.example.com"}}
	var admin client.Client
	uninstall := func(ctx context.Context, crd client.Object) {
		GinkgoHelper()
		Expect(client.IgnoreNotFound(admin.Delete(ctx, crd))).To(Succeed())
		Eventually(func() error { return admin.Get(ctx, client.ObjectKeyFromObject(crd), crd) }).Should(MatchError(apierrors.IsNotFound, "NotFound"))
	}
	BeforeEach(func() {
		scheme := suite.Scheme()
		Expect(apiextensionsv1.AddToScheme(scheme)).To(Succeed())
		var err error
		admin, err = client.New(plane.Config(), client.Options{Scheme: scheme})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) { uninstall(ctx, crd.DeepCopy()) })
	})
	newWidget := func(ctx context.Context) {
		GinkgoHelper()
		w := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": "default", "name": "a"}}}
		w.SetGroupVersionKind(widgets)
		Eventually(func() error {
			fresh, err := client.New(plane.Config(), client.Options{}) // A new client does not know how the kind was served before.
			if err != nil {
				return err
			}
			return fresh.Create(ctx, w.DeepCopy())
		}).WithPolling(200 * time.Millisecond).Should(Succeed())
	}

	It("are Unknown without it, and known as soon as it is there", func(ctx SpecContext) {
		o := observe(plane.Config())
		o.want(widgets)
		widget := o.state(widgets, "default", "a")
		Eventually(widget).Should(Equal("Unknown KindNotFound"))
		Eventually(o.notified).ShouldNot(BeEmpty())
		Consistently(o.notified).Should(Equal([]string{"Widget/"}), "that a kind is missing is notified once, however often it is looked for")
		Expect(plane.InstallManifests(ctx, suite.Manifest(widgetCRD))).To(Succeed())
		Eventually(widget).Should(Equal("NotPresent NotFound"))
		newWidget(ctx)
		Eventually(widget).Should(HavePrefix("Ready"))

		By("installing the CRD again")
		Expect(admin.Delete(ctx, crd)).To(Succeed())
		Eventually(widget).Should(Equal("NotPresent NotFound"))
		uninstall(ctx, crd.DeepCopy()) // The objects of the CRD are deleted before it is.
		Expect(plane.InstallManifests(ctx, suite.Manifest(widgetCRD))).To(Succeed())
		newWidget(ctx)
		Eventually(widget, "60s").Should(HavePrefix("Ready"))
	}, SpecTimeout(3*time.Minute))

	It("are found however their CRD comes back", func(ctx SpecContext) {
		Expect(plane.InstallManifests(ctx, suite.Manifest(strings.ReplaceAll(widgetCRD, "Namespaced", "Cluster")))).To(Succeed())
		o := observe(plane.Config())
		o.want(widgets)
		widget := o.state(widgets, "default", "a")
		Eventually(widget).Should(Equal("Unknown InvalidReference"))

		By("in namespaces")
		uninstall(ctx, crd.DeepCopy())
		Expect(plane.InstallManifests(ctx, suite.Manifest(widgetCRD))).To(Succeed())
		Eventually(widget).Should(Equal("NotPresent NotFound"))
		newWidget(ctx)
		Eventually(widget).Should(HavePrefix("Ready"))

		By("with another name")
		uninstall(ctx, crd.DeepCopy())
		Expect(plane.InstallManifests(ctx, suite.Manifest(strings.ReplaceAll(widgetCRD, "widgets", "gadgets")))).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			uninstall(ctx, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "gadgets.acme.example.com"}})
		})
		newWidget(ctx)
		Eventually(widget, "60s").Should(HavePrefix("Ready"))
	}, SpecTimeout(2*time.Minute))

	It("are Unknown again when it has gone, and that is certain", func(ctx SpecContext) {
		Expect(plane.InstallManifests(ctx, suite.Manifest(widgetCRD))).To(Succeed())
		newWidget(ctx)
		o := observe(plane.Config())
		o.want(widgets)
		widget := o.state(widgets, "default", "a")
		Eventually(widget).Should(HavePrefix("Ready"))
		Expect(admin.Delete(ctx, crd)).To(Succeed())
		Eventually(widget).Should(Equal("NotPresent NotFound"))
		Eventually(widget, "60s").Should(Equal("Unknown KindNotFound"))
	}, SpecTimeout(2*time.Minute))
})

var _ = Describe("Attach", func() {
	It("refuses a configuration that makes no client", func() {
		err := fleet.NewObjects(nil, nil).Attach("local", fleet.Access{Config: &rest.Config{Host: "https://127.0.0.1", TLSClientConfig: rest.TLSClientConfig{CAFile: "/does/not/exist"}}})
		Expect(err).To(MatchError(ContainSubstring(`cannot make a client for cluster "local"`)))
	})
})
