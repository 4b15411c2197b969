package commands_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/e2e/process"
	"github.com/healthscope/healthscope/e2e/suite"
)

// running is a process of the program.
type running struct {
	*process.Process

	// api, metrics and probes are the addresses on which it listens for callers without a token.
	api, metrics, probes string
	// guardedMetrics is the address for callers with a token; 0 for none.
	guardedMetrics string
	// config is its configuration file.
	config string
}

// configure writes the configuration file, with the addresses.
func (r *running) configure() {
	GinkgoHelper()
	r.configureWithf("api: {bindAddress: '0', anonymousBindAddress: %q}\n", r.api)
}

// configureWithf writes the configuration file with sections in addition to that of the metrics.
func (r *running) configureWithf(format string, args ...any) {
	GinkgoHelper()
	text := fmt.Appendf(nil, "apiVersion: config.healthscope.io/v1alpha1\nkind: Configuration\nmetrics: {bindAddress: %q, anonymousBindAddress: %q}\n", r.guardedMetrics, r.metrics)
	Expect(os.WriteFile(r.config, fmt.Appendf(text, format, args...), 0o600)).To(Succeed())
}

// configuration writes a configuration file with sections into a directory, and returns its path.
func configuration(dir, format string, args ...any) string {
	GinkgoHelper()
	path := filepath.Join(dir, "configuration.yaml")
	text := fmt.Appendf(nil, "apiVersion: config.healthscope.io/v1alpha1\nkind: Configuration\n"+format, args...)
	Expect(os.WriteFile(path, text, 0o600)).To(Succeed())
	return path
}

// start starts a command of the program whose Lease is in a namespace, and kills it when the spec ends.
func start(namespace, command string, args ...string) *running {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	r := &running{api: freeAddress(), metrics: freeAddress(), probes: freeAddress(), guardedMetrics: "0"}
	r.config = filepath.Join(dir, "config.yaml")
	r.configure()
	r.Process = launch(dir, append([]string{
		program, command, "--kubeconfig", plane.KubeconfigPath(), "--namespace", namespace, "--config", r.config,
		"--health-probe-bind-address", r.probes,
	}, args...)...)
	return r
}

// launch starts the test binary with arguments, and kills it when the spec ends.
func launch(dir string, args ...string) *process.Process {
	GinkgoHelper()
	self, err := os.Executable()
	Expect(err).NotTo(HaveOccurred())
	p, err := process.Start(process.Spec{Name: args[1], Path: self, Args: args, Dir: dir, LogPath: filepath.Join(dir, "log"), RestartOnSuccess: true})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		if CurrentSpecReport().Failed() {
			GinkgoWriter.Printf("the end of the log of %s:\n%s\n", p.Name(), p.LogTail())
		}
		Expect(p.Kill()).To(Succeed())
	})
	return p
}

// freeAddress returns a loopback address that is reserved for the spec's programs until the spec ends.
func freeAddress() string {
	GinkgoHelper()
	port, err := process.ReservePort()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(port.Release)
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port.Number))
}

// getting returns a function that gets a URL and returns "<status> <body>".
func getting(ctx context.Context, address, path string) func() string {
	return func() string {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, http.NoBody)
		if err != nil {
			return err.Error()
		}
		request.Header.Set("Accept", "text/plain")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err.Error()
		}
		body, err := io.ReadAll(response.Body)
		if err = errors.Join(err, response.Body.Close()); err != nil {
			return err.Error()
		}
		return strconv.Itoa(response.StatusCode) + " " + string(body)
	}
}

// leaseHolder returns a function that returns the holder of a Lease, or an empty string if there is none.
func leaseHolder(ctx context.Context, namespace, name string) func() string {
	return func() string {
		var lease coordinationv1.Lease
		if err := api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &lease); err != nil || lease.Spec.HolderIdentity == nil {
			return ""
		}
		return *lease.Spec.HolderIdentity
	}
}

// health returns a function that returns the health in the status of a scope.
func health(ctx context.Context, s *corev1alpha2.HealthScope) func() string {
	return func() string {
		var now corev1alpha2.HealthScope
		if err := api.Get(ctx, client.ObjectKeyFromObject(s), &now); err != nil {
			return err.Error()
		}
		return string(now.Status.Health)
	}
}

var _ = Describe("healthscope controller", func() {
	var namespace string
	var s *corev1alpha2.HealthScope
	BeforeEach(func(ctx SpecContext) {
		namespace = suite.NewNamespace(ctx, api)
		s = &corev1alpha2.HealthScope{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
			Spec:       corev1alpha2.HealthScopeSpec{WorkloadReferences: []corev1alpha2.WorkloadReference{}},
		}
		Expect(api.Create(ctx, s)).To(Succeed())
	})

	It("becomes ready, serves, and stops when it is asked to", func(ctx SpecContext) {
		r := start(namespace, "controller", "--log-format", "json")
		Eventually(getting(ctx, r.probes, "/readyz")).Should(Equal("200 ok"))
		Expect(getting(ctx, r.probes, "/healthz")()).To(Equal("200 ok"))
		Eventually(health(ctx, s)).Should(Equal("unknown"))
		Eventually(getting(ctx, r.api, "/scopes/"+namespace+"/web")).Should(Equal("200 unknown\n"))
		Expect(getting(ctx, r.api, "/scopes/"+namespace+"/absent")()).To(HavePrefix("404 "))
		Expect(getting(ctx, r.metrics, "/metrics")()).To(And(
			ContainSubstring(fmt.Sprintf(`healthscope_scope_state{namespace=%q,scope="web",state="Unknown"} 1`, namespace)),
			ContainSubstring(`leader_election_master_status{name="healthscope-controller"} 1`),
			Not(ContainSubstring("healthscope_aai")),
		))
		Expect(leaseHolder(ctx, namespace, "healthscope-controller")()).NotTo(BeEmpty())
		Expect(r.Stop(grace)).To(Succeed())
		Expect(leaseHolder(ctx, namespace, "healthscope-controller")()).To(BeEmpty(), "the Lease is given back")
		Expect(r.LogTail()).To(HavePrefix(`{"time":`))
	})

	It("ends when its configuration changes, and takes it up when it is started again", func(ctx SpecContext) {
		r := start(namespace, "controller")
		Eventually(getting(ctx, r.api, "/scopes/"+namespace+"/web")).Should(Equal("200 unknown\n"))
		leader := leaseHolder(ctx, namespace, "healthscope-controller")()
		old, pid := r.api, r.PID()
		r.api = freeAddress()
		r.configure()
		Eventually(getting(ctx, r.api, "/scopes/"+namespace+"/web")).Should(Equal("200 unknown\n"))
		Expect(getting(ctx, old, "/scopes")()).To(ContainSubstring("connection refused"))
		Eventually(leaseHolder(ctx, namespace, "healthscope-controller")).Should(Not(Or(BeEmpty(), Equal(leader))), "the Lease was released, and taken again")
		Expect(r.PID()).NotTo(Equal(pid))
		Expect(r.Stop(grace)).To(Succeed())
	})

	It("waits while another one leads, answers meanwhile, and takes over when that stops", func(ctx SpecContext) {
		first := start(namespace, "controller")
		Eventually(health(ctx, s)).Should(Equal("unknown"))
		leader := leaseHolder(ctx, namespace, "healthscope-controller")()
		second := start(namespace, "controller")
		for _, r := range []*running{first, second} {
			Eventually(getting(ctx, r.probes, "/readyz")).Should(Equal("200 ok"))
			Eventually(getting(ctx, r.api, "/scopes/"+namespace+"/web")).Should(Equal("200 unknown\n"))
		}
		Expect(leaseHolder(ctx, namespace, "healthscope-controller")()).To(Equal(leader))
		Expect(getting(ctx, second.metrics, "/metrics")()).NotTo(ContainSubstring("healthscope_scope_state"))

		Expect(first.Stop(grace)).To(Succeed())
		Eventually(leaseHolder(ctx, namespace, "healthscope-controller")).WithTimeout(grace).ShouldNot(Or(BeEmpty(), Equal(leader)), "it need not wait for the Lease to run out")
		absent := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"workloadRefs":[{"apiVersion":"apps/v1","kind":"Deployment","name":"absent"}]}}`))
		Expect(api.Patch(ctx, s, absent)).To(Succeed())
		Eventually(health(ctx, s)).Should(Equal("unhealthy"))
		Eventually(getting(ctx, second.api, "/scopes/"+namespace+"/web")).Should(Equal("200 unhealthy\n"))
		Expect(second.Stop(grace)).To(Succeed())
	})

	It("says which address it cannot listen on", func(ctx SpecContext) {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(l.Close)
		taken := l.Addr().String()
		settings := configuration(GinkgoT().TempDir(), "metrics: {bindAddress: %q}\n", taken)
		anonymous := configuration(GinkgoT().TempDir(), "metrics: {bindAddress: '0', anonymousBindAddress: %q}\n", taken)
		for _, flags := range [][]string{{"--config", settings}, {"--config", anonymous}, {"--health-probe-bind-address", taken}} {
			r := start(namespace, "controller", flags...)
			Expect(r.ExitsWithin(suite.Timeout)).To(BeTrue(), flags)
			Expect(r.Failure()).To(MatchError(And(ContainSubstring("exit status 1"), MatchRegexp(`healthscope: cannot run the controller: .*`+taken))), flags)
		}
	})
})

var _ = Describe("healthscope monitor", func() {
	It("becomes ready, fills bundles, and stops when it is asked to", func(ctx SpecContext) {
		namespace := suite.NewNamespace(ctx, api)
		b := &k8spluginv1alpha1.ResourceBundleState{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "1-web", Labels: map[string]string{k8spluginv1alpha1.LabelDeploymentID: "1-web"},
		}}
		Expect(api.Create(ctx, b)).To(Succeed())
		r := start(namespace, "monitor")
		Eventually(getting(ctx, r.probes, "/readyz")).Should(Equal("200 ok"))
		Expect(getting(ctx, r.probes, "/healthz")()).To(Equal("200 ok"))
		Eventually(func(g Gomega) {
			g.Expect(api.Get(ctx, client.ObjectKeyFromObject(b), b)).To(Succeed())
			g.Expect(b.Status.Summary).NotTo(BeNil())
		}).Should(Succeed())
		Expect(getting(ctx, r.metrics, "/metrics")()).To(ContainSubstring("controller_runtime_reconcile_total"))
		Expect(leaseHolder(ctx, namespace, "healthscope-monitor")()).NotTo(BeEmpty())
		Expect(r.Stop(grace)).To(Succeed())
		Expect(leaseHolder(ctx, namespace, "healthscope-monitor")()).To(BeEmpty(), "the Lease is given back")
	})
})
