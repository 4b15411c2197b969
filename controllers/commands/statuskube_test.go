package commands_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/commands"
	"github.com/healthscope/healthscope/e2e/suite"
)

// runStatus runs the command status, and returns its exit code and its output.
func runStatus(args ...string) (code int, out, errOut string) {
	var o, e bytes.Buffer
	code = commands.Main(append([]string{"status"}, args...), strings.NewReader(""), &o, &e)
	return code, o.String(), e.String()
}

// judged writes the status of a scope of 4 resources.
func judged(ctx context.Context, s *corev1alpha2.HealthScope, ready int32) {
	GinkgoHelper()
	s.Status = corev1alpha2.HealthScopeStatus{
		Health: corev1alpha2.Healthy, ResourcesReady: fmt.Sprintf("%d/4", ready), ClustersReachable: "1/1", ObservedGeneration: s.Generation,
		Summary: corev1alpha2.MemberCounts{State: "Ready", Total: 4, Ready: ready},
		Conditions: []metav1.Condition{{
			Type: corev1alpha2.ConditionReady, Status: metav1.ConditionTrue, Reason: "Healthy", Message: "all resources are ready", LastTransitionTime: metav1.NewTime(time.Now().Add(-time.Hour - 30*time.Second)),
		}},
	}
	if ready < 4 {
		s.Status.Health, s.Status.Summary.State, s.Status.Summary.Failed = corev1alpha2.Unhealthy, "Failed", 4-ready
		s.Status.Conditions[0].Status, s.Status.Conditions[0].Reason, s.Status.Conditions[0].Message = metav1.ConditionFalse, "MembersFailed", "resources are not healthy"
		s.Status.FirstCulprit = "Deployment/db in local: CrashLoopBackOff"
	}
	Expect(api.Status().Update(ctx, s)).To(Succeed())
}

var _ = Describe("The command status with a kubeconfig alone", func() {
	var namespace, kubeconfig string
	var shop *corev1alpha2.HealthScope
	newScope := func(ctx context.Context, name string) *corev1alpha2.HealthScope {
		GinkgoHelper()
		s := &corev1alpha2.HealthScope{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1alpha2.HealthScopeSpec{WorkloadReferences: []corev1alpha2.WorkloadReference{}},
		}
		Expect(api.Create(ctx, s)).To(Succeed())
		return s
	}
	BeforeEach(func(ctx SpecContext) {
		namespace = suite.NewNamespace(ctx, api)
		shop = newScope(ctx, "shop")
		judged(ctx, shop, 3)
		judged(ctx, newScope(ctx, "web"), 4)
		newScope(ctx, "young")
		// The file has a client certificate, like those of kind, k3s and kubeadm, and no token.
		config, err := clientcmd.LoadFromFile(plane.KubeconfigPath())
		Expect(err).NotTo(HaveOccurred())
		config.Contexts[config.CurrentContext].Namespace = namespace
		Expect(config.AuthInfos[config.Contexts[config.CurrentContext].AuthInfo].ClientCertificateData).NotTo(BeEmpty())
		kubeconfig = filepath.Join(GinkgoT().TempDir(), "kubeconfig")
		Expect(clientcmd.WriteToFile(*config, kubeconfig)).To(Succeed())
	})

	It("prints scopes in all forms", func() {
		list := func(rows ...string) string { return strings.Join(rows, "\n") + "\n" }
		pad := strings.Repeat(" ", len(namespace)-len("NAMESPACE"))
		for _, c := range []struct {
			args string
			code int
			want string
		}{
			{"", 1, list(
				"NAMESPACE"+pad+"   NAME    HEALTH      STATE     READY   CLUSTERS   REASON          FIRST CULPRIT",
				namespace+"   shop    unhealthy   Failed    3/4     1/1        MembersFailed   Deployment/db in local: CrashLoopBackOff",
				namespace+"   web     healthy     Ready     4/4     1/1        Healthy         -",
				namespace+"   young   unknown     Unknown   0/0     0/0        NotObserved     -",
				"", "! HealthScope "+namespace+"/young was changed and has not been judged since",
			)},
			{"web", 0, list("HealthScope "+namespace+"/web: healthy, Ready", "all resources are ready", "4 of 4 resources are ready, 0 pending, 0 failed, 0 unknown; 1/1 clusters can be seen")},
			{namespace + "/web -o wide", 0, list("HealthScope "+namespace+"/web: healthy, Ready", "all resources are ready", "4 of 4 resources are ready, 0 pending, 0 failed, 0 unknown; 1/1 clusters can be seen",
				"", "CONDITION   STATUS   REASON    AGE   MESSAGE", "Ready       True     Healthy   60m   all resources are ready")},
			{"-o name", 1, list("healthscope.core.oam.dev/shop", "healthscope.core.oam.dev/web", "healthscope.core.oam.dev/young")},
			{"-o name --sort-by .status.summary.ready", 1, list("healthscope.core.oam.dev/young", "healthscope.core.oam.dev/shop", "healthscope.core.oam.dev/web")},
			{"-o name --sort-by status.summary.state", 1, list("healthscope.core.oam.dev/young", "healthscope.core.oam.dev/shop", "healthscope.core.oam.dev/web")},
			{"-o jsonpath={.items[*].status.health}", 1, "unhealthy healthy"},
			{"web -o jsonpath={.status.resourcesReady}", 0, "4/4"},
			{"young -o name", 3, list("healthscope.core.oam.dev/young")},
			{"-n absent", 0, list("There are no HealthScopes.")},
		} {
			code, out, errOut := runStatus(append([]string{"--kubeconfig", kubeconfig}, strings.Fields(c.args)...)...)
			Expect([]any{code, out, errOut}).To(Equal([]any{c.code, c.want, ""}), c.args)
		}
		_, out, _ := runStatus("--kubeconfig", kubeconfig, "-A", "-o", "wide")
		Expect(out).To(And(MatchRegexp(`MESSAGE\n`), ContainSubstring(namespace)), out)
		for _, form := range []string{"json", "yaml"} {
			_, out, _ = runStatus("--kubeconfig", kubeconfig, "-n", namespace, "-o", form)
			Expect(out).To(And(ContainSubstring("HealthScopeList"), ContainSubstring("firstCulprit"), Not(ContainSubstring("managedFields"))))
			_, out, _ = runStatus("--kubeconfig", kubeconfig, "web", "-o", form)
			Expect(out).To(And(ContainSubstring("HealthScope"), ContainSubstring("resourcesReady"), Not(ContainSubstring("managedFields"))))
		}
	})

	It("follows changes", func(ctx SpecContext) {
		follow := func(args ...string) (*gbytes.Buffer, context.CancelFunc, chan error) {
			ctx, cancel := context.WithCancel(ctx)
			DeferCleanup(cancel)
			out, ended := gbytes.NewBuffer(), make(chan error, 1)
			root := commands.NewCommand()
			root.SetArgs(append([]string{"status", "--kubeconfig", kubeconfig, "-w"}, args...))
			root.SetOut(out)
			root.SetErr(GinkgoWriter)
			go func() { ended <- root.ExecuteContext(ctx) }()
			return out, cancel, ended
		}
		all, stop, ended := follow()
		one, _, _ := follow("shop")
		names, _, _ := follow("-o", "jsonpath={.metadata.name}={.status.resourcesReady};")
		Eventually(all).Should(gbytes.Say(`shop +unhealthy`))
		Eventually(one).Should(gbytes.Say(`shop: unhealthy`))
		Eventually(names).Should(gbytes.Say(`shop=3/4;web=4/4;young=;`))
		judged(ctx, shop, 4)
		Eventually(all).Should(gbytes.Say(`shop +healthy`))
		Eventually(one).Should(gbytes.Say(`shop: healthy`))
		Eventually(names).Should(gbytes.Say(`shop=4/4;`))
		Expect(api.Delete(ctx, shop)).To(Succeed())
		Eventually(one).Should(gbytes.Say(`HealthScope ` + namespace + `/shop does not exist any more`))
		Eventually(all).Should(gbytes.Say(`web +healthy`))
		stop()
		Eventually(ended).Should(Receive(Succeed()), "to be interrupted is no failure")
	}, SpecTimeout(time.Minute))

	It("says why there is no answer", func(ctx SpecContext) {
		stranger := filepath.Join(GinkgoT().TempDir(), "stranger")
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "stranger"}}
		Expect(api.Create(ctx, account)).To(Succeed())
		Expect(plane.ServiceAccountKubeconfig(ctx, namespace, account.Name, stranger)).To(Succeed())
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0") // It accepts connections, and sends nothing.
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(listener.Close)
		silent := kubeconfigOf(GinkgoT().TempDir(), "https://"+listener.Addr().String())
		bare := httptest.NewServer(http.NotFoundHandler())
		DeferCleanup(bare.Close)
		for _, c := range []struct {
			kubeconfig, args string
			code             int
			want             string
		}{
			{kubeconfig, "absent", 3, `cannot get the status of HealthScope ` + namespace + `/absent: healthscopes.core.oam.dev "absent" not found`},
			{kubeconfig, "absent -w", 3, `cannot follow the status of HealthScope ` + namespace + `/absent: healthscopes.core.oam.dev "absent" not found`},
			{stranger, "-n " + namespace, 3, `cannot get the status of the HealthScopes in namespace ` + namespace + `: healthscopes.core.oam.dev is forbidden: User "system:serviceaccount:` + namespace + `:stranger" cannot list`},
			{stranger, "-n " + namespace + " -w", 3, `is forbidden`},
			{silent, "--timeout 100ms", 3, `no answer within 100ms; increase --timeout`},
			{kubeconfigOf(GinkgoT().TempDir(), "http://"+freeAddress()), "", 3, `connection refused`},
			{kubeconfigOf(GinkgoT().TempDir(), bare.URL), "", 3, `the cluster has no CustomResourceDefinition of HealthScopes`},
			{filepath.Join(GinkgoT().TempDir(), "none"), "", 2, `cannot find out how to reach the API server: stat `},
			{kubeconfig, "-o xml", 2, `--output is "xml"; it must be table, wide, json, yaml, name or jsonpath=TEMPLATE`},
			{kubeconfig, "-o jsonpath={", 2, `--output has JSONPath "{", which cannot be used`},
			{kubeconfig, "--sort-by {[", 2, `--sort-by is "{["; it must be a JSONPath`},
			{kubeconfig, "--sort-by .spec.nothing", 2, `cannot sort by ".spec.nothing": no HealthScope has such a field`},
			{kubeconfig, "web --sort-by .a", 2, `--sort-by is given; it is for the list of HealthScopes`},
			{kubeconfig, "web -A", 2, `--all-namespaces is given; it is for the list of HealthScopes`},
			{kubeconfig, "a/web -n b", 2, `--namespace is "b"; it cannot be together with HealthScope a/web`},
			{kubeconfig, "--ca-file x", 2, `--ca-file is given; it is for the server of --server, which is missing`},
			{kubeconfig, "--server http://localhost --sort-by .a", 2, `--sort-by is given; it cannot be together with --server`},
			{kubeconfig, "--server http://localhost -o name", 2, `--output is "name"; it must be table, json or yaml`},
		} {
			code, out, errOut := runStatus(append([]string{"--kubeconfig", c.kubeconfig}, strings.Fields(c.args)...)...)
			Expect([]any{code, out}).To(Equal([]any{c.code, ""}), "%s: %s", c.args, errOut)
			Expect(errOut).To(ContainSubstring(c.want), c.args)
		}
	}, SpecTimeout(time.Minute))
})
