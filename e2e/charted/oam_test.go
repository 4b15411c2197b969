package charted

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/e2e/installation"
	"github.com/healthscope/healthscope/e2e/suite"
)

// withOAM are the values of an installation that does what an OAM runtime would do for scopes, and probes.
const withOAM = withMonitors + `
probeNamespaces: [default]
config:
  oam: {applicationConfigurations: true, labelServices: true}
  monitor: {createBundles: {preset: kubevela}}
`

// helloworld is an application whose objects somebody else has applied: a Deployment and a Service. The address of the Service's
// pod, %s, and port, %d, are those of a listener of the test; the pod is no kubelet's, because there is no program in simulated pods.
const helloworld = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: helloworld-python-v1}
spec:
  selector: {matchLabels: {app: helloworld}}
  template:
    metadata: {labels: {app: helloworld}}
    spec: {containers: [{name: web, image: example.org/web}]}
---
apiVersion: v1
kind: Service
metadata: {name: helloworld-python-v1}
spec: {ports: [{port: 3003}]}
---
apiVersion: v1
kind: Pod
metadata: {name: helloworld-target}
spec: {schedulerName: none, containers: [{name: web, image: example.org/web}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: helloworld, labels: {kubernetes.io/service-name: helloworld-python-v1}}
addressType: IPv4
ports: [{port: %d, protocol: TCP}]
endpoints: [{addresses: [%s], conditions: {ready: true}, targetRef: {kind: Pod, namespace: default, name: helloworld-target}}]
`

// scopeAndApplication are those of the text that proposed health scopes for OAM; only the interval is shorter.
const scopeAndApplication = `
apiVersion: core.oam.dev/v1alpha2
kind: HealthScope
metadata: {name: example-health-scope}
spec: {probe-method: GET, probe-endpoint: /health, probe-interval: 1}
---
apiVersion: core.oam.dev/v1alpha2
kind: ApplicationConfiguration
metadata: {name: first-app}
spec:
  components:
  - componentName: helloworld-python-v1
    parameterValues: [{name: target, value: Rudr}, {name: port, value: "9999"}]
    scopes:
    - scopeRef: {apiVersion: core.oam.dev/v1alpha2, kind: HealthScope, name: example-health-scope}
`

// ofKubeVela returns the objects of a component of Application "store", as KubeVela writes them, without the annotations that repeat them.
func ofKubeVela(component string) string {
	labels := fmt.Sprintf(`app.oam.dev/app-revision-hash: 2d210f238217427, app.oam.dev/appRevision: store-v1, app.oam.dev/cluster: "", app.oam.dev/component: %[1]s,
    app.oam.dev/name: store, app.oam.dev/namespace: default, app.oam.dev/resourceType: WORKLOAD, app.oam.dev/revision: %[1]s-v1`, component)
	return fmt.Sprintf(`---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: %[1]s
  labels: {%[2]s, workload.oam.dev/type: webservice}
spec:
  selector: {matchLabels: {app.oam.dev/component: %[1]s}}
  template:
    metadata: {labels: {app.oam.dev/component: %[1]s, app.oam.dev/name: store}}
    spec: {containers: [{name: %[1]s, image: "example.org/%[1]s:1", ports: [{containerPort: 8080, name: port-8080, protocol: TCP}]}]}
---
apiVersion: v1
kind: Service
metadata:
  name: %[1]s
  labels: {%[2]s, trait.oam.dev/resource: service, trait.oam.dev/type: AuxiliaryWorkload}
spec:
  selector: {app.oam.dev/component: %[1]s}
  ports: [{name: port-8080, port: 8080, targetPort: 8080}]
`, component, labels)
}

// scopeOfKubeVela is a scope of that Application, by the bundle that the monitor makes for it. It has the labels that KubeVela gives to scopes of policies.
const scopeOfKubeVela = `---
apiVersion: core.oam.dev/v1alpha2
kind: HealthScope
metadata: {name: store, labels: {app.oam.dev/name: store, app.oam.dev/component: store-health}}
spec:
  workloadRefs: [{apiVersion: k8splugin.io/v1alpha1, kind: ResourceBundleState, name: store}]
  rollup: {required: [front, back]}
`

// applyManifest applies a manifest, and deletes what is in it after the spec.
func applyManifest(ctx context.Context, manifest string) {
	GinkgoHelper()
	file := filepath.Join(GinkgoT().TempDir(), "manifest.yaml")
	Expect(os.WriteFile(file, []byte(manifest), 0o600)).To(Succeed())
	kubectl(ctx, "apply", "-f", file)
	DeferCleanup(kubectl, "delete", "--ignore-not-found", "-f", file)
}

// probed listens at an address of this machine that API servers let Services have, and answers with a status code.
func probed(status *atomic.Int32) (address string, port int) {
	GinkgoHelper()
	address = suite.OwnAddress()
	socket, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", net.JoinHostPort(address, "0"))
	Expect(err).NotTo(HaveOccurred())
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(status.Load())) }))
	Expect(server.Listener.Close()).To(Succeed())
	server.Listener = socket
	server.Start()
	DeferCleanup(server.Close)
	at, ok := socket.Addr().(*net.TCPAddr)
	Expect(ok).To(BeTrue())
	return address, at.Port
}

var _ = Describe("An installation for OAM", Ordered, func() {
	BeforeAll(func(ctx context.Context) {
		DeferCleanup(kubectl, "delete", "crd", "applicationconfigurations.core.oam.dev") // The chart makes it, and leaves it.
		DeferCleanup(func(ctx context.Context) {
			before := hs.PIDs()["controller"]
			Expect(hs.Upgrade(ctx, withMonitors)).To(Succeed())
			// It starts itself again, which what comes next must not interrupt.
			Eventually(ctx, func() int { return hs.PIDs()["controller"] }).ShouldNot(Equal(before))
			Eventually(ctx, hs.Readyz).WithArguments("controller").Should(Equal(http.StatusOK))
		})
		Expect(hs.Upgrade(ctx, withOAM)).To(Succeed())
	})

	It("has an app for each component of an Application of KubeVela 1.9 and later", func(ctx context.Context) {
		applyManifest(ctx, ofKubeVela("front")+ofKubeVela("back")+scopeOfKubeVela)
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			var s corev1alpha2.HealthScope
			g.Expect(k8s.Get(ctx, client.ObjectKey{Namespace: "default", Name: "store"}, &s)).To(Succeed())
			g.Expect(s.Status.Health).To(Equal(corev1alpha2.Healthy))
			var apps []string
			for _, a := range s.Status.Apps {
				apps = append(apps, fmt.Sprintf("%s %d/%d", a.Name, a.Ready, a.Total))
			}
			g.Expect(apps).To(ConsistOf("front 2/2", "back 2/2"), "a Deployment and a Service each")
		}).Should(Succeed())
		kubectl(ctx, "delete", "deployment/back", "service/back")
		Eventually(ctx, func() string { return kubectl(ctx, "get", "healthscope", "store", "-o", "jsonpath={.status.health}") }).Should(Equal("unhealthy"), "back is required")
		kubectl(ctx, "delete", "healthscope", "store")
		kubectl(ctx, "delete", "resourcebundlestate", "store")
	})

	It("brings the component of an ApplicationConfiguration and its Service into the scope, which says how both are", func(ctx context.Context) {
		var status atomic.Int32
		status.Store(http.StatusOK)
		address, port := probed(&status)
		applyManifest(ctx, fmt.Sprintf(helloworld, port, address))
		kubectl(ctx, "patch", "pod", "helloworld-target", "--subresource=status", "-p",
			fmt.Sprintf(`{"status": {"phase": "Running", "podIP": %q, "podIPs": [{"ip": %q}]}}`, address, address))
		applyManifest(ctx, scopeAndApplication)

		health := func(ctx context.Context) (string, error) {
			_, word, err := hs.Text(ctx, hs.API+"/scopes/example-health-scope")
			return strings.TrimSpace(word), err
		}
		culprit := func(ctx context.Context) (string, error) {
			var s corev1alpha2.HealthScope
			err := k8s.Get(ctx, client.ObjectKey{Namespace: "default", Name: "example-health-scope"}, &s)
			return s.Status.FirstCulprit, err
		}
		label := func(ctx context.Context) (map[string]string, error) {
			var s corev1.Service
			err := k8s.Get(ctx, client.ObjectKey{Namespace: "default", Name: "helloworld-python-v1"}, &s)
			return s.Labels, err
		}
		references := func(ctx context.Context) ([]corev1alpha2.WorkloadReference, error) {
			var s corev1alpha2.HealthScope
			err := k8s.Get(ctx, client.ObjectKey{Namespace: "default", Name: "example-health-scope"}, &s)
			return s.Spec.WorkloadReferences, err
		}
		Eventually(ctx, references).Should(Equal([]corev1alpha2.WorkloadReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "helloworld-python-v1"}}))
		Eventually(ctx, label).Should(HaveKeyWithValue("healthscope.core.oam.dev/example-health-scope", "true"))
		Eventually(ctx, health).Should(Equal("healthy"))

		By("breaking what the Service answers, and healing it")
		status.Store(http.StatusServiceUnavailable)
		Eventually(ctx, health).Should(Equal("unhealthy"))
		Eventually(ctx, culprit).Should(Equal("Service/helloworld-python-v1 in local: ProbeFailed"))
		status.Store(http.StatusOK)
		Eventually(ctx, health).Should(Equal("healthy"))

		By("deleting the application")
		kubectl(ctx, "delete", "applicationconfiguration", "first-app")
		Eventually(ctx, references).Should(BeEmpty())
		Eventually(ctx, label).ShouldNot(HaveKey("healthscope.core.oam.dev/example-health-scope"))
	})
})

// rightsOfRuntime are the account and the roles that the chart of oam-kubernetes-runtime makes: one that takes in others by a label, and
// one of these, which gives everything of OAM.
const rightsOfRuntime = `
apiVersion: v1
kind: Namespace
metadata: {name: oam-system}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: oam-kubernetes-runtime, namespace: oam-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: oam-kubernetes-runtime}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {rbac.oam.dev/aggregate-to-controller: "true"}}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: oam-kubernetes-runtime:system:aggregate-to-controller
  labels: {rbac.oam.dev/aggregate-to-controller: "true"}
rules:
- {apiGroups: [core.oam.dev], resources: ["*"], verbs: ["*"]}
- {apiGroups: [apps], resources: [deployments], verbs: ["*"]}
- {apiGroups: [""], resources: [services], verbs: ["*"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: oam-kubernetes-runtime}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: oam-kubernetes-runtime}
subjects: [{kind: ServiceAccount, name: oam-kubernetes-runtime, namespace: oam-system}]
`

var _ = Describe("The role for oam-kubernetes-runtime", func() {
	It("keeps its HealthScope controller from writing, and nothing else of it", func(ctx context.Context) {
		const runtime, controller = "system:serviceaccount:oam-system:oam-kubernetes-runtime", "system:serviceaccount:" + installation.Namespace + ":healthscope-controller"
		may := func(account, verb, resource, subresource string) func(context.Context) (bool, error) {
			return func(ctx context.Context) (bool, error) {
				review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: account, ResourceAttributes: &authorizationv1.ResourceAttributes{
					Group: "core.oam.dev", Resource: resource, Subresource: subresource, Verb: verb, Namespace: "default",
				}}}
				err := k8s.Create(ctx, review)
				return review.Status.Allowed, err
			}
		}
		applyManifest(ctx, rightsOfRuntime)
		Eventually(ctx, may(runtime, "update", "healthscopes", "status")).Should(BeTrue(), "the runtime writes the status of scopes")

		kubectl(ctx, "apply", "-f", filepath.Join(root, "config", "integrations", "oam", "runtime_role.yaml"))
		DeferCleanup(kubectl, "delete", "-f", filepath.Join(root, "config", "integrations", "oam", "runtime_role.yaml"))
		kubectl(ctx, "label", "clusterrole", "oam-kubernetes-runtime:system:aggregate-to-controller", "rbac.oam.dev/aggregate-to-controller-")
		Eventually(ctx, may(runtime, "update", "healthscopes", "status")).Should(BeFalse())
		Expect(may(runtime, "patch", "healthscopes", "status")(ctx)).To(BeFalse())
		Eventually(ctx, may(runtime, "update", "healthscopes", "")).Should(BeTrue(), "it keeps references")
		Expect(may(runtime, "update", "applicationconfigurations", "status")(ctx)).To(BeTrue())
		Expect(may(controller, "patch", "healthscopes", "status")(ctx)).To(BeTrue())

		By("acting as the runtime")
		scope := &corev1alpha2.HealthScope{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "of-the-runtime"}}
		Expect(k8s.Create(ctx, scope)).To(Succeed())
		DeferCleanup(k8s.Delete, scope)
		config := rest.CopyConfig(plane.Config())
		config.Impersonate.UserName = runtime
		as, err := client.New(config, client.Options{Scheme: suite.Scheme()})
		Expect(err).NotTo(HaveOccurred())
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec": {"workloadRefs": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}]}, "status": {"health": "healthy"}}`))
		Expect(as.Patch(ctx, scope, patch)).To(Succeed())
		Expect(as.Status().Patch(ctx, scope, patch)).To(WithTransform(apierrors.IsForbidden, BeTrue()))
		Eventually(ctx, func() (corev1alpha2.Health, error) {
			err := k8s.Get(ctx, client.ObjectKeyFromObject(scope), scope)
			return scope.Status.Health, err
		}).Should(Equal(corev1alpha2.Unhealthy), "HealthScope's controller writes: the Deployment is missing")
	})
})
