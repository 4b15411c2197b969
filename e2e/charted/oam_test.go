package charted

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/e2e/installation"
	"github.com/healthscope/healthscope/e2e/process"
	"github.com/healthscope/healthscope/e2e/suite"
)

// withOAM are further values, of an installation that does what an OAM runtime would do for scopes, and probes, and that is asked as OAM's
// first health scope was.
const withOAM = `
api: {port: 80}
probeNamespaces: [default]
config:
  oam: {applicationConfigurations: true, labelServices: true}
  monitor: {createBundles: {preset: kubevela}}
`

// helloworld is an application whose objects another client has applied: a Deployment and a Service. The address of the Service's
// pod, %s, and the port, %d, are those of a listener of the test. No kubelet runs the pod, because simulated pods contain no program.
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

// exampleScope and firstApp are the examples in the proposal of health scopes for OAM, with a shorter interval.
const exampleScope = `
apiVersion: core.oam.dev/v1alpha2
kind: HealthScope
metadata: {name: example-health-scope}
spec: {probe-method: GET, probe-endpoint: /health, probe-interval: 1}
`

const firstApp = `
apiVersion: core.oam.dev/v1alpha2
kind: ApplicationConfiguration
metadata: {name: first-app}
spec:
  components:
  - componentName: helloworld-python-v1
    parameterValues: [{name: target, value: Rudr}, {name: port, value: "9999"}]
    scopes:
    - {apiVersion: core.oam.dev/v1alpha2, kind: HealthScope, name: example-health-scope}
`

// ofKubeVela returns the objects of a component of Application "store", as KubeVela writes them, without the annotations that repeat their content.
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

// scopeOfKubeVela is a scope of that Application. It refers to the bundle that the monitor creates for the Application, and has the labels that KubeVela gives to scopes of policies.
const scopeOfKubeVela = `---
apiVersion: core.oam.dev/v1alpha2
kind: HealthScope
metadata: {name: store, labels: {app.oam.dev/name: store, app.oam.dev/component: store-health}}
spec:
  workloadRefs: [{apiVersion: k8splugin.io/v1alpha1, kind: ResourceBundleState, name: store}]
  rollup: {required: [front, back]}
`

// applyManifest applies a manifest, and deletes its objects after the spec.
func applyManifest(ctx context.Context, manifest string) {
	GinkgoHelper()
	file := filepath.Join(GinkgoT().TempDir(), "manifest.yaml")
	Expect(os.WriteFile(file, []byte(manifest), 0o600)).To(Succeed())
	kubectl(ctx, "apply", "-f", file)
	DeferCleanup(kubectl, "delete", "--ignore-not-found", "-f", file)
}

// probed starts a server that answers with a status code. It listens at an address of this machine that API servers allow as an endpoint of Services.
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
		DeferCleanup(kubectl, "delete", "crd", "applicationconfigurations.core.oam.dev") // The chart creates it, and an upgrade does not delete it.
		DeferCleanup(func(ctx context.Context) {
			before := hs.PIDs()["controller"]
			Expect(hs.Upgrade(ctx, withMonitors)).To(Succeed())
			// The controller restarts, and the next specs must not interrupt that.
			Eventually(ctx, func() int { return hs.PIDs()["controller"] }).ShouldNot(Equal(before))
			Eventually(ctx, hs.Readyz).WithArguments("controller").Should(Equal(http.StatusOK))
		})
		Expect(hs.Upgrade(ctx, withMonitors, withOAM)).To(Succeed())
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
		Eventually(ctx, func() string { return kubectl(ctx, "get", "healthscope", "store", "-o", "jsonpath={.status.health}") }).WithPolling(time.Second).Should(Equal("unhealthy"), "back is required")
		kubectl(ctx, "delete", "healthscope", "store")
		kubectl(ctx, "delete", "resourcebundlestate", "store")
	})

	It("goes the way of the text that proposed health scopes: from the scope and the application to the answer on localhost", func(ctx context.Context) {
		var status atomic.Int32
		status.Store(http.StatusOK)
		address, port := probed(&status)
		applyManifest(ctx, fmt.Sprintf(helloworld, port, address))
		kubectl(ctx, "patch", "pod", "helloworld-target", "--subresource=status", "-p",
			fmt.Sprintf(`{"status": {"phase": "Running", "podIP": %q, "podIPs": [{"ip": %q}]}}`, address, address))
		document, word := onLocalhost(ctx)
		applyManifest(ctx, exampleScope)
		Eventually(ctx, word).Should(Equal("unknown"), "nothing is in the scope")
		applyManifest(ctx, firstApp)

		references := func(ctx context.Context) string {
			return kubectl(ctx, "get", "healthscope", "example-health-scope", "-o", "jsonpath={.spec.workloadRefs}")
		}
		labels := func(ctx context.Context) string {
			return kubectl(ctx, "get", "service", "helloworld-python-v1", "-o", "jsonpath={.metadata.labels}")
		}
		Eventually(ctx, references).WithPolling(time.Second).Should(Equal(`[{"apiVersion":"apps/v1","kind":"Deployment","name":"helloworld-python-v1"}]`))
		Eventually(ctx, labels).WithPolling(time.Second).Should(Equal(`{"healthscope.core.oam.dev/example-health-scope":"true"}`))
		Eventually(ctx, word).Should(Equal("healthy"))
		Expect(document(ctx)).To(ContainSubstring(`"health":"healthy"`))
		Expect(kubectl(ctx, "get", "healthscope", "example-health-scope")).To(MatchRegexp(`example-health-scope +healthy +2/2 `), "the Deployment and the Service")

		By("breaking what the Service answers, and healing it")
		status.Store(http.StatusServiceUnavailable)
		Eventually(ctx, word).Should(Equal("unhealthy"))
		Expect(document(ctx)).To(ContainSubstring(`"firstCulprit":"Service/helloworld-python-v1 in onap+hub: ProbeFailed"`))
		Expect(kubectl(ctx, "get", "healthscope", "example-health-scope", "-o", "jsonpath={.status.culprits[*].cause}")).To(
			HavePrefix("GET /health on port 3003: status code 503; last success "))
		status.Store(http.StatusOK)
		Eventually(ctx, word).Should(Equal("healthy"))

		By("deleting the application")
		kubectl(ctx, "delete", "applicationconfiguration", "first-app")
		Eventually(ctx, references).Should(Equal("[]"))
		Eventually(ctx, labels).Should(BeEmpty())
	})
})

// answered is the jsonpath of the fields of a scope's status that report what the scope cannot use.
const answered = "jsonpath={.status.health}{range .status.conditions[*]}{\"\\n\"}{.reason}: {.message}{end}{range .status.healthConditions[*]}{\"\\n\"}{.diagnosis}{end}{range .status.culprits[*]}{\"\\n\"}{.reason}{end}"

var _ = DescribeTable("A scope with what OAM's specification, its runtimes and Rudr have is answered as the page about compatibility says",
	func(ctx context.Context, apiVersion, spec, want string) {
		page, err := os.ReadFile(filepath.Join(root, "config", "docs", "compatibility.md"))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(page)).To(ContainSubstring("`" + want + "`"))
		manifest := suite.Manifest(fmt.Sprintf("apiVersion: %s\nkind: HealthScope\nmetadata: {name: of-others}\nspec: {%s}\n", apiVersion, spec))
		out, err := plane.KubectlCommand(ctx, "apply", "-f", manifest).CombinedOutput()
		if err != nil {
			Expect(string(out)).To(ContainSubstring(want))
			return
		}
		DeferCleanup(kubectl, "delete", "-f", manifest)
		Eventually(ctx, func() string { return kubectl(ctx, "get", "healthscope", "of-others", "-o", answered) }).WithPolling(time.Second).Should(ContainSubstring(want))
	},
	Entry(nil, v1alpha2, `workloadRefs: [{apiVersion: apps/v1, kind: Deployment}]`, "the reference has no name"),
	Entry(nil, v1alpha2, ``, "NoMembers"),
	Entry(nil, v1alpha2, `workloadRefs: [{apiVersion: apps/v1, kind: Deployment, name: a, namespace: kube-system}]`, "CrossNamespace"),
	Entry(nil, v1alpha2, `probe-method: x, probe-endpoint: /health`, `probe-method: "x" is not known: want GET, httpGet or HEAD`),
	Entry(nil, v1alpha2, `probe-method: GET, probe-endpoint: /health, probe-timeout: 61`, "probe-timeout: 61 is out of range: want 60 at most"),
	Entry(nil, v1alpha2, `probe-method: GET, probe-endpoint: /health, failure-rate-threshold: 101`, "failure-rate-threshold: 101 is out of range: want 0 to 1, or a percentage"),
	Entry(nil, v1alpha2, `health-threshold-percentage: 101`, "health-threshold-percentage: 101 is out of range: want more than 0, and 100 at most"),
	Entry(nil, v1alpha2, `required-healthy-components: "a, b"`, "spec.required-healthy-components in body must be of type array"),
	Entry(nil, v1alpha2, `probeMethod: GET`, `strict decoding error: unknown field "spec.probeMethod"`),
	Entry(nil, "core.oam.dev/v1alpha1", ``, "no matches for kind"),
)

const v1alpha2 = "core.oam.dev/v1alpha2"

// onLocalhost forwards a port to the controller's pod with the commands on the page about the REST API, changing only the local port. It
// returns functions that read the scope there, as a document and as one word.
func onLocalhost(ctx context.Context) (document, word func(context.Context) (string, error)) {
	GinkgoHelper()
	page, err := os.ReadFile(filepath.Join(root, "config", "docs", "rest.md"))
	Expect(err).NotTo(HaveOccurred())
	const first = "helm install healthscope ./charts/healthscope --set api.port=80"
	_, section, _ := strings.Cut(string(page), "```sh\n"+first+"\n")
	section, _, _ = strings.Cut(section, "```")
	free, err := process.ReservePort()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(free.Release)
	commands := strings.Split(strings.TrimSpace(strings.ReplaceAll(section, "8080", strconv.Itoa(free.Number))), "\n")
	Expect(commands).To(HaveExactElements(HavePrefix("export POD_NAME="), HavePrefix("kubectl port-forward "), HavePrefix("curl http"), HavePrefix("curl -H 'Accept: text/plain' http")))

	kubectl(ctx, "rollout", "status", "--namespace", installation.Namespace, "deployment/healthscope-controller")
	stop, err := hs.ForwardPorts(ctx)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(stop)
	kubeconfig := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(os.WriteFile(kubeconfig, []byte(kubectl(ctx, "config", "view", "--raw")), 0o600)).To(Succeed())
	kubectl(ctx, "config", "set-context", "--current", "--namespace", installation.Namespace, "--kubeconfig", kubeconfig)
	run := func(ctx context.Context, script string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, "bash", "-c", script)
		cmd.Env = []string{"PATH=" + filepath.Dir(plane.Kubectl()) + string(filepath.ListSeparator) + os.Getenv("PATH"), "HOME=" + GinkgoT().TempDir(), "KUBECONFIG=" + kubeconfig, "KUBERC=off"}
		return cmd
	}
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	forward := run(lasting, commands[0]+"\nexec "+commands[1])
	forward.Stdout, forward.Stderr = GinkgoWriter, GinkgoWriter
	Expect(forward.Start()).To(Succeed())
	DeferCleanup(func() {
		cancel()
		_ = forward.Wait() // It was killed.
	})
	answer := func(command string) func(context.Context) (string, error) {
		return func(ctx context.Context) (string, error) {
			out, err := run(ctx, command).Output()
			return strings.TrimSpace(string(out)), err
		}
	}
	return answer(commands[2]), answer(commands[3])
}

// rightsOfRuntime are the account and the roles that the chart of oam-kubernetes-runtime creates: a role that aggregates others by a
// label, and one of these, which grants all rights to OAM's kinds.
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
