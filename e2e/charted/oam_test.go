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
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/e2e/suite"
)

// withOAM are the values of an installation that does what an OAM runtime would do for scopes, and probes.
const withOAM = withMonitors + `
probeNamespaces: [default]
config:
  oam: {applicationConfigurations: true, labelServices: true}
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

var _ = Describe("An ApplicationConfiguration with a health scope", func() {
	It("brings its component and its Service into the scope, which says how both are", func(ctx context.Context) {
		var status atomic.Int32
		status.Store(http.StatusOK)
		address, port := probed(&status)
		kubectl(ctx, "apply", "-f", filepath.Join(root, "config", "integrations", "oam", "applicationconfigurations.yaml"))
		DeferCleanup(kubectl, "delete", "crd", "applicationconfigurations.core.oam.dev")
		DeferCleanup(func(ctx context.Context) {
			before := hs.PIDs()["controller"]
			Expect(hs.Upgrade(ctx, withMonitors)).To(Succeed())
			// It starts itself again, which what comes next must not interrupt.
			Eventually(ctx, func() int { return hs.PIDs()["controller"] }).ShouldNot(Equal(before))
			Eventually(ctx, hs.Readyz).WithArguments("controller").Should(Equal(http.StatusOK))
		})
		Expect(hs.Upgrade(ctx, withOAM)).To(Succeed())
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
