package commands_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/e2e/faults"
	"github.com/healthscope/healthscope/e2e/suite"
	"github.com/healthscope/healthscope/healthscope/status"
)

// outageTime limits how long a replica may take to detect an outage of its API server.
const outageTime = time.Minute

// startProxy starts a proxy to the API server, and writes a kubeconfig file that connects through it.
func startProxy() (proxy *faults.Proxy, kubeconfig string) {
	GinkgoHelper()
	proxy, err := faults.Start(plane.Config())
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(proxy.Stop)
	kubeconfig = filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(os.WriteFile(kubeconfig, fmt.Appendf(nil, "apiVersion: v1\nkind: Config\nclusters: [{name: a, cluster: {server: %q}}]\ncontexts: [{name: a, context: {cluster: a}}]\ncurrent-context: a\n", proxy.Config().Host), 0o600)).To(Succeed())
	return proxy, kubeconfig
}

// There is only one spec with an outage, because each takes as long as a replica needs to lose its Lease.
var _ = Describe("a replica whose API server is away", func() {
	It("shows nothing as current; the only one starts, gives up its Lease, and leads again", func(ctx SpecContext) {
		proxy, kubeconfig := startProxy()
		only := startOnlyReplica(ctx, proxy, kubeconfig)
		namespace := suite.NewNamespace(ctx, api)
		scope := &corev1alpha2.HealthScope{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
		Expect(api.Create(ctx, scope)).To(Succeed())
		etcd, store := newStore(ctx)
		id := newGroup(ctx, store, "retail")
		newBundle(ctx, namespace, id+"-web", "quiet-fox")
		leader := start(namespace, "controller") // It stays connected, and writes changes that the other one must not miss.
		Eventually(health(ctx, scope)).Should(Equal("unknown"))
		proxy, kubeconfig = startProxy()
		r := start(namespace, "controller", "--kubeconfig", kubeconfig)
		old := r.api
		r.api = freeAddress()
		r.configureWithf("clusterName: local+local\napi: {bindAddress: '0', anonymousBindAddress: %q}\nappContext: {endpoints: [%q]}\n", r.api, etcd.Endpoint())
		Eventually(getting(ctx, old, "/readyz")).Should(ContainSubstring("connection refused"))
		ask := getting(ctx, r.api, "/scopes/"+namespace+"/web")
		Eventually(ask).Should(Equal("200 unknown\n"))
		Eventually(getting(ctx, r.api, "/readyz")).Should(Equal("200 ok\n"))
		resource := func() (status.Document, status.Resource) {
			GinkgoHelper()
			var d status.Document
			Expect(json.Unmarshal([]byte(document(ctx, r.api, statusOf("retail")+"?type=all&health=true")), &d)).To(Succeed())
			return d, d.Apps[0].Clusters[0].Resources[0]
		}
		_, seen := resource()
		Expect(seen.ClusterStatus).To(Equal(status.Present))
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.api+"/scopes/"+namespace+"/web?watch=true", http.NoBody)
		Expect(err).NotTo(HaveOccurred())
		response, err := http.DefaultClient.Do(request)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { _ = response.Body.Close() })

		By("cutting both off")
		proxy.Cut()
		only.proxy.Cut()
		Eventually(ask).WithTimeout(outageTime).Should(And(HavePrefix("503 "), ContainSubstring(`"lastSeen":"`), ContainSubstring(`"reason":"`)))
		for _, path := range []string{"/scopes", "/scopes?namespace=" + namespace, "/readyz"} {
			Expect(getting(ctx, r.api, path)()).To(HavePrefix("503 "), path)
		}
		Expect(getting(ctx, r.api, "/healthz")()).To(HavePrefix("200 "))
		var lines []string
		for events := bufio.NewScanner(response.Body); events.Scan(); {
			lines = append(lines, events.Text())
		}
		Expect(strings.Join(lines, "\n")).To(MatchRegexp(`event: problem\ndata: .*"status":503.*"lastSeen":`), "the stream has ended and said why")
		Eventually(func() string { _, seen := resource(); return seen.Health.Reason }).WithTimeout(outageTime).Should(Equal("ClusterUnreachable"))
		d, lost := resource()
		Expect(lost.ClusterStatus).To(Equal(status.PresenceUnknown))
		Expect(lost.Health.LastState).To(Equal("Ready"))
		Expect(d.LastSeen).NotTo(BeEmpty())
		var instance status.InstanceDocument
		Expect(json.Unmarshal([]byte(document(ctx, r.api, "/v1/instance/quiet-fox/status")), &instance)).To(Succeed())
		Expect(instance.Ready).To(BeFalse())
		Expect(instance.LastSeen).NotTo(BeEmpty())

		By("changing what it cannot see, and mending it")
		absent := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"workloadRefs":[{"apiVersion":"apps/v1","kind":"Deployment","name":"absent"}]}}`))
		Expect(api.Patch(ctx, scope, absent)).To(Succeed())
		Eventually(health(ctx, scope)).Should(Equal("unhealthy"))
		only.losesLease(ctx)
		proxy.Mend()
		var first string
		Eventually(func() string { first = ask(); return first }).WithTimeout(outageTime).WithPolling(time.Millisecond).ShouldNot(HavePrefix("503 "))
		Expect(first).To(Equal("200 unhealthy\n"), "the first answer is none of before")
		Eventually(func() status.Presence { _, seen := resource(); return seen.ClusterStatus }).Should(Equal(status.Present))
		Expect(r.Running()).To(BeTrue())
		Expect(r.Stop(grace)).To(Succeed())
		Expect(leader.Stop(grace)).To(Succeed())
		only.leadsAgain(ctx) // This is last: no other controller may judge scopes.
	}, NodeTimeout(5*time.Minute))
})
