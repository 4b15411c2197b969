package fleet_test

import (
	"context"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/controllers/fleet/kubeconfig"
	"github.com/healthscope/healthscope/e2e/suite"
)

// canary is a secret that no state and no event may contain.
const canary = "c4nary-in-the-m1ne"

// listening is a server over TLS that counts its connections.
type listening struct {
	*httptest.Server

	connections atomic.Int64
}

func listen(handler http.HandlerFunc) *listening {
	l := &listening{Server: httptest.NewUnstartedServer(handler)}
	l.Listener = counted{l.Listener, &l.connections}
	l.StartTLS()
	DeferCleanup(l.Close)
	return l
}

// authority returns the server's certificate in PEM.
func (l *listening) authority() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: l.Certificate().Raw})
}

// counted is a listener that counts its connections.
type counted struct {
	net.Listener

	connections *atomic.Int64
}

func (c counted) Accept() (net.Conn, error) {
	connection, err := c.Listener.Accept()
	if err == nil {
		c.connections.Add(1)
	}
	return connection, err
}

// secretReads records the requests of a client for Secrets.
type secretReads struct {
	mu    sync.Mutex
	asked []string
}

func (r *secretReads) note(request *http.Request) {
	if strings.Contains(request.URL.Path, "/secrets") {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.asked = append(r.asked, request.Method+" "+request.URL.Path+" "+request.URL.Query().Get("labelSelector"))
	}
}

// all returns each kind of request once.
func (r *secretReads) all() map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[string]bool{}
	for _, line := range r.asked {
		all[line] = true
	}
	return all
}

var _ = Describe("Kubeconfigs that are hostile", func() {
	var s *site
	BeforeEach(func(ctx SpecContext) { s = newSite(ctx) })

	// member creates the Secret of a cluster with a name.
	member := func(ctx context.Context, name string, data []byte) *corev1.Secret {
		GinkgoHelper()
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.secrets, Name: name, Labels: map[string]string{corev1alpha2.LabelClusterKubeconfig: "true"}},
			Data:       map[string][]byte{corev1alpha2.KubeconfigKey: data},
		}
		Expect(api.Create(ctx, secret)).To(Succeed())
		return secret
	}
	// reported waits until a cluster is in a state whose message contains words, and until an event on its Secret contains them
	// too.
	reported := func(ctx context.Context, name string, state fleet.Reachability, event, words string) {
		GinkgoHelper()
		Eventually(func() fleet.ClusterState {
			c, _ := s.State(name)
			return c
		}, "60s").Should(SatisfyAll(HaveField("Reachability", state), HaveField("Message", ContainSubstring(words))))
		Eventually(s.events(ctx)).Should(ContainElement(And(HavePrefix("Warning "+event), ContainSubstring(words))))
	}
	// silent asserts that no state and no event contains the canary.
	silent := func(ctx context.Context) {
		GinkgoHelper()
		Expect(fmt.Sprintf("%+v %v", s.States(), s.events(ctx)(Default))).NotTo(ContainSubstring(canary))
	}

	It("run nothing, read nothing, reach nothing, and are reported", func(ctx SpecContext) {
		s.run(ctx)
		dir := GinkgoT().TempDir()
		file, ran := filepath.Join(dir, "token"), filepath.Join(dir, "ran")
		Expect(os.WriteFile(file, []byte(canary), 0o600)).To(Succeed())
		server := listen(http.NotFound)
		harmless, err := kubeconfig.New(kubeconfig.Member{Name: "edge", Server: server.URL, Authority: server.authority(), Token: canary})
		Expect(err).NotTo(HaveOccurred())
		token := `token: ` + canary
		Expect(string(harmless)).To(And(ContainSubstring(token), ContainSubstring("    server: ")))
		in := func(before, after string) []byte { return []byte(strings.Replace(string(harmless), before, after, 1)) }

		for _, c := range []struct {
			name, words string
			data        []byte
		}{
			{"program", "user.exec: Forbidden", in(token, fmt.Sprintf(`exec: {command: /bin/touch, args: [%q], apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}`, ran))},
			{"auth-provider", "user.auth-provider: Forbidden", in(token, `auth-provider: {name: gcp, config: {cmd-path: /bin/touch, cmd-args: `+ran+`}}`)},
			{"token-file", "user.tokenFile: Forbidden", in(token, "tokenFile: "+file)},
			{"authority-file", "cluster.certificate-authority: Forbidden", in("    server: ", "    certificate-authority: "+file+"\n    server: ")},
			{"proxy", "cluster.proxy-url: Forbidden", in("    server: ", "    proxy-url: "+server.URL+"\n    server: ")},
			{"huge", "bytes, and may have", in("", "# "+strings.Repeat("x", kubeconfig.MaxSize)+"\n")},
		} {
			By(c.name)
			Expect(string(c.data)).NotTo(Equal(string(harmless)))
			member(ctx, c.name, c.data)
			reported(ctx, c.name, fleet.Refused, "KubeconfigRefused", c.words)
		}
		Expect(ran).NotTo(BeAnExistingFile(), "no program has run")
		Expect(server.connections.Load()).To(BeZero(), "nobody was talked to")
		silent(ctx)

		By("a harmless one")
		member(ctx, "harmless", harmless)
		Eventually(server.connections.Load).ShouldNot(BeZero(), "its server is talked to")
	}, SpecTimeout(3*time.Minute))

	It("do not lead to another server by a redirect", func(ctx SpecContext) {
		s.clock = suite.NewFastClock(10)
		s.run(ctx)
		elsewhere := listen(http.NotFound)
		server := listen(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+r.URL.Path, http.StatusTemporaryRedirect)
		})
		data, err := kubeconfig.New(kubeconfig.Member{Name: "edge", Server: server.URL, Authority: append(server.authority(), elsewhere.authority()...), Token: canary})
		Expect(err).NotTo(HaveOccurred())
		member(ctx, "edge", data)
		reported(ctx, "edge", fleet.Unreachable, "Unreachable", "the server redirects (307), which is not followed")
		Expect(elsewhere.connections.Load()).To(BeZero(), "nobody else was talked to")
		silent(ctx)
	}, SpecTimeout(2*time.Minute))

	It("are not even read in Secrets without the label, or in other namespaces", func(ctx SpecContext) {
		var reads secretReads
		tap := suite.Tap{Note: reads.note}
		s.wrap = tap.Wrap
		server := listen(http.NotFound)
		data, err := kubeconfig.New(kubeconfig.Member{Name: "edge", Server: server.URL, Authority: server.authority(), Token: canary})
		Expect(err).NotTo(HaveOccurred())
		label := map[string]string{corev1alpha2.LabelClusterKubeconfig: "true"}
		for _, secret := range []*corev1.Secret{
			{ObjectMeta: metav1.ObjectMeta{Namespace: s.secrets, Name: "unlabelled"}},
			{ObjectMeta: metav1.ObjectMeta{Namespace: s.secrets, Name: "labelled-otherwise", Labels: map[string]string{corev1alpha2.LabelClusterKubeconfig: "false"}}},
			{ObjectMeta: metav1.ObjectMeta{Namespace: s.watch, Name: "elsewhere", Labels: label}},
		} {
			secret.Data = map[string][]byte{corev1alpha2.KubeconfigKey: data}
			Expect(api.Create(ctx, secret)).To(Succeed())
		}
		s.run(ctx)
		Consistently(s.Clusters).Should(Equal([]string{"local"}))
		Expect(server.connections.Load()).To(BeZero())
		Expect(reads.all()).To(Equal(map[string]bool{
			"GET /api/v1/namespaces/" + s.secrets + "/secrets " + corev1alpha2.LabelClusterKubeconfig + "=true": true,
		}), "no Secret is asked for that has not the label")
	}, SpecTimeout(time.Minute))
})
