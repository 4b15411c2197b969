package commands_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/e2e/suite"
)

var _ = Describe("A cluster that is a member", Ordered, func() {
	var (
		namespace string
		edge      *controlplane.ControlPlane
		edgeAPI   client.Client
	)
	BeforeAll(func(ctx SpecContext) {
		edge, edgeAPI = suite.Start(ctx, controlplane.Options{Name: "edge"})
		// There is no controller here that finishes the deletion of a namespace that the command has created.
		Expect(edgeAPI.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "healthscope-system"}})).To(Succeed())
	}, NodeTimeout(3*time.Minute))
	BeforeEach(func(ctx SpecContext) { namespace = suite.NewNamespace(ctx, api) })

	contextOf := func(p *controlplane.ControlPlane) []string {
		GinkgoHelper()
		file, err := clientcmd.LoadFromFile(p.KubeconfigPath())
		Expect(err).NotTo(HaveOccurred())
		return []string{"--kubeconfig", p.KubeconfigPath(), "--context", file.CurrentContext}
	}
	run := func(verb, name string, flags ...string) (code int, out, errOut string) {
		GinkgoHelper()
		return runClusters(append([]string{verb, name, "--hub-kubeconfig", plane.KubeconfigPath(), "--hub-namespace", namespace}, flags...)...)
	}
	account := func(ctx context.Context) error {
		return edgeAPI.Get(ctx, client.ObjectKey{Namespace: "healthscope-system", Name: "healthscope-hub"}, &corev1.ServiceAccount{})
	}

	It("is added and removed", func(ctx SpecContext) {
		code, out, errOut := run("add", "provider+edge01", contextOf(edge)...)
		Expect(code).To(Equal(0), errOut)
		Expect(errOut).To(ContainSubstring("is an address of this machine"))
		Expect(out).To(HaveSuffix(fmt.Sprintf("hub: secret/provider-edge01 -n %s created\n", namespace)))
		code, out, errOut = run("add", "provider+edge01", contextOf(edge)...)
		Expect(code).To(Equal(0), errOut)
		Expect(strings.Split(strings.TrimSpace(out), "\n")).To(HaveEach(HaveSuffix(" unchanged")))

		By("saying what would be deleted")
		code, out, errOut = run("remove", "provider+edge01", append(contextOf(edge), "--dry-run")...)
		Expect(code).To(Equal(0), errOut)
		Expect(out).To(And(
			HavePrefix(fmt.Sprintf("hub: secret/provider-edge01 -n %s to be deleted\n", namespace)),
			ContainSubstring("member: serviceaccount/healthscope-hub -n healthscope-system to be deleted\n"),
			HaveSuffix("member: namespace/healthscope-system kept\n"),
		))
		Expect(account(ctx)).To(Succeed())
		secret := &corev1.Secret{}
		Expect(api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "provider-edge01"}, secret)).To(Succeed())

		By("deleting it")
		code, out, errOut = run("remove", "provider+edge01", contextOf(edge)...)
		Expect(code).To(Equal(0), errOut)
		Expect(errOut).To(HavePrefix(fmt.Sprintf("deleting the Secret of cluster %q in %s, then the hub's account and rights in %s\n", "provider+edge01", plane.Config().Host, edge.Config().Host)))
		Expect(out).To(HavePrefix(fmt.Sprintf("hub: secret/provider-edge01 -n %s deleted\n", namespace)))
		Expect(api.Get(ctx, client.ObjectKeyFromObject(secret), secret)).To(MatchError(ContainSubstring("not found")))
		Expect(account(ctx)).To(MatchError(ContainSubstring("not found")))
	}, SpecTimeout(2*time.Minute))

	It("does not lose its account by a name that was mistyped", func(ctx SpecContext) {
		code, _, errOut := run("add", "edge01", contextOf(edge)...)
		Expect(code).To(Equal(0), errOut)
		code, out, errOut := run("remove", "edgeO1", contextOf(edge)...)
		Expect([]any{code, out}).To(Equal([]any{1, ""}))
		Expect(errOut).To(ContainSubstring(fmt.Sprintf(`there is no Secret of cluster "edgeO1" in namespace %q, which has those of "edge01"; nothing was deleted`, namespace)))
		Expect(account(ctx)).To(Succeed())

		By("forcing it while another Secret uses the account")
		code, out, errOut = run("remove", "edgeO1", append(contextOf(edge), "--force")...)
		Expect([]any{code, out}).To(Equal([]any{1, ""}))
		Expect(errOut).To(ContainSubstring(`of cluster "edge01" uses the account that would be deleted: nothing was deleted`))
		Expect(account(ctx)).To(Succeed())

		By("forcing it when no Secret does")
		Expect(api.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace(namespace))).To(Succeed())
		code, _, errOut = run("remove", "edge01", append(contextOf(edge), "--force")...)
		Expect(code).To(Equal(0), errOut)
		Expect(account(ctx)).To(MatchError(ContainSubstring("not found")))
	}, SpecTimeout(2*time.Minute))

	It("has one name, and the hub is not one", func(ctx SpecContext) {
		code, _, errOut := run("add", "edge01", contextOf(edge)...)
		Expect(code).To(Equal(0), errOut)
		code, out, errOut := run("add", "edge02", contextOf(edge)...)
		Expect([]any{code, out}).To(Equal([]any{1, ""}))
		Expect(errOut).To(ContainSubstring(fmt.Sprintf(`the cluster is a member already, by the name "edge01" of Secret "%s/edge01"`, namespace)))

		By("recognizing it after its account was made anew")
		Expect(edgeAPI.Delete(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "healthscope-system", Name: "healthscope-hub"}})).To(Succeed())
		code, _, errOut = run("add", "edge02", contextOf(edge)...)
		Expect(code).To(Equal(1))
		Expect(errOut).To(ContainSubstring("the cluster is a member already"))

		By("giving it the name of the hub's own cluster")
		code, _, errOut = run("add", "local", contextOf(edge)...)
		Expect(code).To(Equal(1))
		Expect(errOut).To(ContainSubstring(`"local" is the name of the hub's own cluster`))
		Expect(api.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "healthscope-clusters"},
			Data:       map[string]string{"clusters.json": `{"clusters": [{"name": "bonn", "local": true}]}`},
		})).To(Succeed())
		code, _, errOut = run("add", "bonn", contextOf(edge)...)
		Expect(code).To(Equal(1))
		Expect(errOut).To(ContainSubstring(`"bonn" is the name of the hub's own cluster`))

		By("adding the hub by another of its addresses")
		flags := contextOf(plane)
		file, err := clientcmd.LoadFromFile(plane.KubeconfigPath())
		Expect(err).NotTo(HaveOccurred())
		for _, c := range file.Clusters {
			c.Server = strings.Replace(c.Server, "127.0.0.1", "localhost", 1)
		}
		flags[1] = GinkgoT().TempDir() + "/hub"
		Expect(clientcmd.WriteToFile(*file, flags[1])).To(Succeed())
		Eventually(ctx, func() error { return api.Get(ctx, client.ObjectKey{Name: "kube-system"}, &corev1.Namespace{}) }).Should(Succeed())
		code, out, errOut = run("add", "edge03", flags...)
		Expect([]any{code, out}).To(Equal([]any{1, ""}))
		Expect(errOut).To(ContainSubstring("the cluster is the hub itself"))
	}, SpecTimeout(2*time.Minute))
})
