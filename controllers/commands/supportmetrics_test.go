package commands_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/healthscope/healthscope/e2e/kubelet"
	"github.com/healthscope/healthscope/e2e/suite"
)

// ourLabels are the labels of the programs' pods.
var ourLabels = map[string]string{"app.kubernetes.io/name": "healthscope"}

// newNode creates a node and a pod on it with a port for metrics. The kubelet of the node forwards the ports of the pod to an
// address.
func newNode(ctx context.Context, namespace, pod, address string) {
	GinkgoHelper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/portForward/"+namespace+"/"+pod {
			http.NotFound(w, r)
			return
		}
		kubelet.ServePortForward(w, r, pod, func(int32) (string, error) { return address, nil })
	}))
	DeferCleanup(server.Close)
	at, ok := server.Listener.Addr().(*net.TCPAddr)
	Expect(ok).To(BeTrue())
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{GenerateName: "node-"}}
	Expect(api.Create(ctx, node)).To(Succeed())
	DeferCleanup(func(ctx context.Context) error { return client.IgnoreNotFound(api.Delete(ctx, node)) })
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: at.IP.String()}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(at.Port)
	Expect(api.Status().Update(ctx, node)).To(Succeed())
	Expect(api.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod, Labels: ourLabels},
		Spec: corev1.PodSpec{NodeName: node.Name, AutomountServiceAccountToken: new(false), Containers: []corev1.Container{{
			Name: "monitor", Image: "example.org/healthscope:1", Ports: []corev1.ContainerPort{{Name: "metrics", ContainerPort: 8080}},
		}}},
	})).To(Succeed())
}

// forwardingAccount creates an account with the rights to read metrics through a port-forward, and returns its kubeconfig file.
func forwardingAccount(ctx context.Context, namespace, dir string, verbs ...string) string {
	GinkgoHelper()
	name := metav1.ObjectMeta{Namespace: namespace, Name: "forward"}
	for _, o := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: name},
		&rbacv1.Role{ObjectMeta: name, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}},
			{APIGroups: []string{""}, Resources: []string{"pods/portforward"}, Verbs: verbs},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name.Name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name.Name}},
		},
	} {
		Expect(api.Create(ctx, o)).To(Succeed())
	}
	path := filepath.Join(dir, "kubeconfig")
	Expect(plane.ServiceAccountKubeconfig(ctx, namespace, name.Name, path)).To(Succeed())
	return path
}

var _ = Describe("The command support-bundle, of metrics that want a token", func() {
	DescribeTable("reads them with one through a port-forward", func(ctx SpecContext, verbs []string) {
		namespace, dir := suite.NewNamespace(ctx, api), GinkgoT().TempDir()
		_, port, err := net.SplitHostPort(freeAddress())
		Expect(err).NotTo(HaveOccurred())
		r := startGuarded(ctx, namespace, "monitor", ":"+port, "")
		newNode(ctx, namespace, "monitor-1", "127.0.0.1:"+port)
		scraper, outsider := newCaller(ctx, namespace, nil, nonResourceRules("/metrics")), newCaller(ctx, namespace, nil, nil)
		tokenFile := filepath.Join(dir, "token")
		flags := []string{"--kubeconfig", forwardingAccount(ctx, namespace, dir, verbs...), "--namespace", namespace, "--hub-namespace", namespace, "--scopes=false", "--metrics-token-file", tokenFile, "-o", "-"}
		collected := func(token string) map[string]string {
			GinkgoHelper()
			Expect(os.WriteFile(tokenFile, []byte(token+"\n"), 0o600)).To(Succeed())
			code, out, errOut := runSupportBundle(ctx, dir, flags...)
			Expect(code).To(Equal(0), errOut)
			Expect(errOut).NotTo(ContainSubstring(token))
			files := unpack(strings.NewReader(out))
			for name, content := range files {
				Expect(content).NotTo(ContainSubstring(token), name)
			}
			return files
		}
		files := collected(scraper)
		Expect(files).To(HaveKeyWithValue("metrics/monitor-1.txt", ContainSubstring("\ngo_goroutines ")), files["errors.txt"])
		Expect(files["errors.txt"]).NotTo(ContainSubstring("metrics/"))
		for token, want := range map[string]string{
			canary:   "the pod answers 401 Unauthorized: .*the bearer token is not accepted",
			outsider: "the pod answers 403 Forbidden: .*may not get the URL",
		} {
			files := collected(token)
			Expect(files).NotTo(HaveKey("metrics/monitor-1.txt"))
			Expect(files["errors.txt"]).To(MatchRegexp(`(?m)^metrics/monitor-1\.txt: cannot read metrics through a port-forward: ` + want))
		}
		Expect(r.Stop(grace)).To(Succeed())
	},
		Entry("by a WebSocket", NodeTimeout(time.Minute), []string{"get", "create"}),
		Entry("by SPDY, for who may do no more than create port-forwards", NodeTimeout(time.Minute), []string{"create"}),
	)

	It("shows the token to no pod of somebody else", func(ctx SpecContext) {
		namespace, dir := suite.NewNamespace(ctx, api), GinkgoT().TempDir()
		asked := make(chan string, 10)
		stranger := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.Header.Get("Authorization") }))
		DeferCleanup(stranger.Close)
		newNode(ctx, namespace, "stranger", stranger.Listener.Addr().String())
		pod := &corev1.Pod{}
		Expect(api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "stranger"}, pod)).To(Succeed())
		pod.Labels = map[string]string{"app.kubernetes.io/name": "postgres"}
		Expect(api.Update(ctx, pod)).To(Succeed())
		Expect(os.WriteFile(filepath.Join(dir, "token"), []byte(canary), 0o600)).To(Succeed())
		kubeconfig := forwardingAccount(ctx, namespace, dir, "get", "create")
		flags := []string{"--kubeconfig", kubeconfig, "--namespace", namespace, "--hub-namespace", namespace, "--metrics-token-file", "token", "-o", "-"}
		code, out, errOut := runSupportBundle(ctx, dir, flags...)
		Expect(code).To(Equal(0), errOut)
		Expect(unpack(strings.NewReader(out))["errors.txt"]).NotTo(ContainSubstring("stranger"), "neither its logs nor its metrics are asked for")
		Expect(asked).NotTo(Receive())

		By("going through an API server that is not verified")
		file, err := clientcmd.LoadFromFile(kubeconfig)
		Expect(err).NotTo(HaveOccurred())
		for _, c := range file.Clusters {
			c.InsecureSkipTLSVerify, c.CertificateAuthority, c.CertificateAuthorityData = true, "", nil
		}
		Expect(clientcmd.WriteToFile(*file, kubeconfig)).To(Succeed())
		code, out, errOut = runSupportBundle(ctx, dir, append(flags, "--selector", "app.kubernetes.io/name=postgres")...)
		Expect(code).To(Equal(0), errOut)
		Expect(unpack(strings.NewReader(out))["errors.txt"]).To(ContainSubstring("metrics/stranger.txt: the token is not sent, because the kubeconfig does not have the API server verified"))
		Expect(asked).NotTo(Receive())

		code, _, errOut = runSupportBundle(ctx, dir, append(flags, "--selector", "")...)
		Expect(code).To(Equal(2))
		Expect(errOut).To(ContainSubstring("--selector is"))
	}, NodeTimeout(time.Minute))
})
