package commands_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/healthscope/healthscope/e2e/suite"
)

// nonResourceRules returns the rules that allow GET requests for non-resource URLs.
func nonResourceRules(urls ...string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{NonResourceURLs: urls, Verbs: []string{"get"}}}
}

// startGuarded starts a command whose metrics server listens at an address for callers with a token, and has further settings.
func startGuarded(ctx context.Context, namespace, command, address, settings string) *running {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	r := start(namespace, command, "--config", configuration(dir, "metrics: {bindAddress: %q%s}\napi: {bindAddress: '0'}\n", address, settings))
	Eventually(getting(ctx, r.probes, "/readyz")).Should(Equal("200 ok"))
	Eventually(ctx, func() error { // Each server begins to listen at its own time.
		connection, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return connection.Close()
	}).Should(Succeed())
	return r
}

var _ = Describe("the metrics server", func() {
	DescribeTable("shows callers what they have a right to, and nothing else", func(ctx SpecContext, command string) {
		namespace := suite.NewNamespace(ctx, api)
		scraper, outsider := newCaller(ctx, namespace, nil, nonResourceRules("/metrics")), newCaller(ctx, namespace, nil, nil)
		developer := newCaller(ctx, namespace, nil, nonResourceRules("/debug/pprof/", "/debug/pprof/*"))
		guarded, open := freeAddress(), freeAddress()
		r := startGuarded(ctx, namespace, command, guarded, ", anonymousBindAddress: "+open)
		code := func(path, token string) int {
			return statusCode(ctx, http.DefaultClient, "http://"+guarded+path, token)()
		}
		profiles := []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/goroutine", "/debug/pprof/cmdline", "/debug/pprof/symbol", "/debug/pprof/profile?seconds=1", "/debug/pprof/trace?seconds=1"}
		for _, path := range append(profiles, "/metrics") {
			for _, unknown := range []string{"", "x", scraper + "x"} {
				Expect(code(path, unknown)).To(Equal(http.StatusUnauthorized), path)
			}
			Expect(code(path, outsider)).To(Equal(http.StatusForbidden), path)
		}
		Expect(code("/metrics", scraper)).To(Equal(http.StatusOK))
		Expect(code("/metrics", developer)).To(Equal(http.StatusForbidden))
		for _, path := range profiles {
			Expect(code(path, scraper)).To(Equal(http.StatusForbidden), path)
			Expect(code(path, developer)).To(Equal(http.StatusOK), path)
		}
		Expect(statusCode(ctx, http.DefaultClient, "http://"+open+"/metrics", "")()).To(Equal(http.StatusOK), "the other listener asks for no token")
		Expect(statusCode(ctx, http.DefaultClient, "http://"+open+"/debug/pprof/", developer)()).To(Equal(http.StatusNotFound), "and has no profiles")
		Expect(r.Stop(grace)).To(Succeed())
		for _, token := range []string{scraper, outsider, developer} {
			Expect(r.LogTail()).NotTo(ContainSubstring(token), "no token is logged")
		}
	},
		Entry("of the controller", NodeTimeout(time.Minute), "controller"),
		Entry("of the monitor", NodeTimeout(time.Minute), "monitor"),
	)

	It("speaks https beyond the machine, with a certificate of its own making if it is given none", func(ctx SpecContext) {
		namespace := suite.NewNamespace(ctx, api)
		token := newCaller(ctx, namespace, nil, nonResourceRules("/metrics"))
		_, port, err := net.SplitHostPort(freeAddress())
		Expect(err).NotTo(HaveOccurred())
		r := startGuarded(ctx, namespace, "monitor", ":"+port, "")
		careless := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
		Expect(statusCode(ctx, careless, "https://127.0.0.1:"+port+"/metrics", token)()).To(Equal(http.StatusOK))
		Expect(statusCode(ctx, careless, "https://127.0.0.1:"+port+"/metrics", "")()).To(Equal(http.StatusUnauthorized))
		Expect(statusCode(ctx, http.DefaultClient, "http://127.0.0.1:"+port+"/metrics", token)()).NotTo(Equal(http.StatusOK), "not in the clear")
		Expect(r.Stop(grace)).To(Succeed())
	})
})
