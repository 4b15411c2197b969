package e2e

import (
	"context"
	"fmt"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/e2e/installation"
)

// stateLabel is the label in A&AI that holds a resource's state.
const stateLabel = "healthscope.core.oam.dev/status"

// app is an application in its own namespace: a Deployment, a Service, a ConfigMap, their bundle and a scope.
type app struct {
	namespace, bundle string
}

// contextID numbers the AppContexts of the suite.
var contextID = 1000

// newApp returns an application that is not created yet.
func newApp() app {
	contextID++
	return app{namespace: fmt.Sprintf("app-%d", contextID), bundle: fmt.Sprintf("%d-web", contextID)}
}

// create creates the application's namespace, and objects in it, in a cluster.
func (a app) create(ctx context.Context, c client.Client, objects ...client.Object) {
	GinkgoHelper()
	Expect(c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.namespace}})).To(Succeed())
	for _, o := range objects {
		Expect(c.Create(ctx, o)).To(Succeed())
	}
}

// deploy creates an application in the hub and waits until its scope is healthy.
func deploy(ctx context.Context, replicas int32) app {
	GinkgoHelper()
	a := newApp()
	a.create(ctx, k8s, a.deployment(replicas), a.service(), a.configMap(), a.bundleState(), a.scope())
	a.eventually(ctx, corev1alpha2.Healthy, "3/3")
	return a
}

func (a app) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: a.namespace, Name: name, Labels: map[string]string{"app": "web", k8spluginv1alpha1.LabelDeploymentID: a.bundle}}
}

func (a app) deployment(replicas int32) *appsv1.Deployment {
	surge, none := intstr.FromInt32(1), intstr.FromInt32(0)
	return &appsv1.Deployment{ObjectMeta: a.meta("web"), Spec: appsv1.DeploymentSpec{
		Replicas: &replicas,
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &surge, MaxUnavailable: &none}},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: a.meta("").Labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "example.org/web:1", Env: []corev1.EnvVar{{Name: "PASSWORD", Value: "canary-env"}}}}},
		},
	}}
}

func (a app) service() *corev1.Service {
	return &corev1.Service{ObjectMeta: a.meta("web"), Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80}}}}
}

func (a app) configMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: a.meta("web"), Data: map[string]string{"password": "canary-config"}, BinaryData: map[string][]byte{"key": []byte("canary-binary")}}
}

func (a app) bundleState() *k8spluginv1alpha1.ResourceBundleState {
	return &k8spluginv1alpha1.ResourceBundleState{ObjectMeta: a.meta(a.bundle), Spec: k8spluginv1alpha1.ResourceBundleStateSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{k8spluginv1alpha1.LabelDeploymentID: a.bundle}},
	}}
}

func (a app) scope() *corev1alpha2.HealthScope {
	return &corev1alpha2.HealthScope{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: "web"}, Spec: corev1alpha2.HealthScopeSpec{
		WorkloadReferences: []corev1alpha2.WorkloadReference{},
		Apps:               []corev1alpha2.ScopeApp{{Name: "web", WorkloadReferences: []corev1alpha2.WorkloadReference{bundleRef(a.bundle)}}},
	}}
}

func bundleRef(name string) corev1alpha2.WorkloadReference {
	return corev1alpha2.WorkloadReference{APIVersion: k8spluginv1alpha1.GroupVersion.String(), Kind: k8spluginv1alpha1.ResourceBundleStateKind, Name: name}
}

// get reads the application's scope.
func (a app) get(ctx context.Context) (*corev1alpha2.HealthScope, error) {
	scope := a.scope()
	return scope, k8s.Get(ctx, client.ObjectKeyFromObject(scope), scope)
}

// eventually waits until the scope has the given health and ready resources.
func (a app) eventually(ctx context.Context, health corev1alpha2.Health, ready string) *corev1alpha2.HealthScope {
	GinkgoHelper()
	var scope *corev1alpha2.HealthScope
	Eventually(ctx, func(g Gomega) {
		var err error
		scope, err = a.get(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(scope.Status.Health).To(Equal(health), "culprit: %s", scope.Status.FirstCulprit)
		g.Expect(scope.Status.ResourcesReady).To(Equal(ready))
	}).Should(Succeed())
	return scope
}

// is waits until the scope has the given health, ready resources and clusters.
func (a app) is(ctx context.Context, health corev1alpha2.Health, ready, clusters string) *corev1alpha2.HealthScope {
	GinkgoHelper()
	Eventually(ctx, a.line).Should(Equal(fmt.Sprintf("%s %s %s", health, ready, clusters)))
	scope, err := a.get(ctx)
	Expect(err).NotTo(HaveOccurred())
	return scope
}

// line returns the health, ready resources and clusters of the scope in one line.
func (a app) line(ctx context.Context) (string, error) {
	s, err := a.get(ctx)
	return fmt.Sprintf("%s %s %s", s.Status.Health, s.Status.ResourcesReady, s.Status.ClustersReachable), err
}

// crash makes all pods of the application in the hub crash, or lets them recover.
func (a app) crash(ctx context.Context, crash bool) {
	GinkgoHelper()
	a.crashIn(ctx, k8s, crash)
}

// crashIn makes all pods of the application in a cluster crash, or lets them recover.
func (a app) crashIn(ctx context.Context, c client.Client, crash bool) {
	GinkgoHelper()
	value := "null"
	if crash {
		value = `"true"`
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, controlplane.CrashAnnotation, value)
	var pods corev1.PodList
	Expect(c.List(ctx, &pods, client.InNamespace(a.namespace))).To(Succeed())
	Expect(pods.Items).NotTo(BeEmpty())
	for i := range pods.Items {
		Expect(c.Patch(ctx, &pods.Items[i], client.RawPatch(types.MergePatchType, patch))).To(Succeed())
	}
}

// inventory returns the states of the application's resources in A&AI, by Kind/name, without pods and ReplicaSets, whose names
// are generated.
func (a app) inventory(ctx context.Context) (map[string]string, error) {
	objects, err := hs.Objects(ctx)
	states := map[string]string{}
	for _, o := range objects {
		if o.Body["namespace"] == a.namespace && o.Body["kind"] != "Pod" && o.Body["kind"] != "ReplicaSet" {
			states[o.String()] = o.Label(stateLabel)
		}
	}
	return states, err
}

// writes returns the requests that changed A&AI after the request with a given number, and the number of the last request.
func writes(ctx context.Context, after uint64) (list []installation.Request, last uint64) {
	GinkgoHelper()
	all, err := hs.Requests(ctx, after)
	Expect(err).NotTo(HaveOccurred())
	last = after
	for _, r := range all {
		last = max(last, r.Seq)
		if r.Method != http.MethodGet {
			list = append(list, r)
		}
	}
	return list, last
}
