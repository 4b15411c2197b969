package charted

import (
	"context"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/healthscope/healthscope/e2e/installation"
)

// account creates a ServiceAccount in namespace default, binds it to ClusterRoles, and returns a token for it.
func account(ctx context.Context, name string, roles ...string) string {
	GinkgoHelper()
	kubectl(ctx, "create", "serviceaccount", "-n", "default", name)
	DeferCleanup(kubectl, "delete", "serviceaccount", "-n", "default", name)
	for _, role := range roles {
		binding := name + "-" + role
		kubectl(ctx, "create", "clusterrolebinding", binding, "--clusterrole", role, "--serviceaccount", "default:"+name)
		DeferCleanup(kubectl, "delete", "clusterrolebinding", binding)
	}
	return strings.TrimSpace(kubectl(ctx, "create", "token", "-n", "default", name))
}

var _ = Describe("What the pods serve", func() {
	It("is for those with a token and the right, and for nobody else", func(ctx context.Context) {
		controllerProfiles := strings.TrimSuffix(hs.GuardedMetrics, "/metrics") + "/debug/pprof/"
		monitorProfiles := strings.TrimSuffix(hs.GuardedMonitorMetrics, "/metrics") + "/debug/pprof/"
		scopes, instance := hs.GuardedAPI+"/scopes", hs.GuardedAPI+"/v1/instance/1/status"
		all := []string{hs.GuardedMetrics, hs.GuardedMonitorMetrics, controllerProfiles, monitorProfiles, scopes, hs.GuardedAPI + "/scopes/vfw", instance}
		answers := func(token string) (map[string]int, error) {
			codes := map[string]int{}
			for _, url := range all {
				code, _, err := hs.Ask(ctx, url, token)
				if err != nil {
					return nil, err
				}
				codes[url] = code
			}
			return codes, nil
		}
		want := func(code int, allowed ...string) map[string]int {
			codes := map[string]int{}
			for _, url := range all {
				codes[url] = code
			}
			for _, url := range allowed {
				codes[url] = http.StatusOK
			}
			return codes
		}
		Eventually(ctx, answers).WithArguments("").Should(Equal(want(http.StatusUnauthorized)),
			"another spec may have restarted the programs, which listen for metrics a moment after they are ready")
		Expect(answers("wrong")).To(Equal(want(http.StatusUnauthorized)))
		Expect(answers(account(ctx, "nobody"))).To(Equal(want(http.StatusForbidden)))
		viewer := account(ctx, "viewer", "healthscope-viewer")
		Eventually(ctx, answers).WithArguments(viewer).Should(
			Equal(want(http.StatusForbidden, scopes, hs.GuardedAPI+"/scopes/vfw")), "the API server notices a binding a moment later")

		By("asking as Prometheus, with the token that the ServiceMonitor names")
		reader := &corev1.Secret{}
		Eventually(ctx, func() ([]byte, error) {
			err := k8s.Get(ctx, client.ObjectKey{Namespace: installation.Namespace, Name: "healthscope-metrics-reader"}, reader)
			return reader.Data["token"], err
		}).ShouldNot(BeEmpty())
		_, metrics, err := hs.Ask(ctx, hs.GuardedMonitorMetrics, string(reader.Data["token"]))
		Expect(err).NotTo(HaveOccurred())
		Expect(metrics).To(MatchRegexp(`healthscope_build_info\{goversion="go1[^"]+",revision="[^"]*",version="[^"]+"\} 1\n`))
		Expect(answers(string(reader.Data["token"]))).To(Equal(want(http.StatusForbidden, hs.GuardedMetrics, hs.GuardedMonitorMetrics)))
	}, SpecTimeout(3*time.Minute))
})
