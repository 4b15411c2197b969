package charted

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/healthscope/healthscope/e2e/installation"
	"github.com/healthscope/healthscope/e2e/observed"
)

// endpoint holds the fields of a ServiceMonitor's endpoint that the test needs.
type endpoint struct {
	Port          string `json:"port"`
	Scheme        string `json:"scheme"`
	Path          string `json:"path"`
	HonorLabels   bool   `json:"honorLabels"`
	Authorization struct {
		Type        string                   `json:"type"`
		Credentials corev1.SecretKeySelector `json:"credentials"`
	} `json:"authorization"`
	TLSConfig struct {
		InsecureSkipVerify bool `json:"insecureSkipVerify"`
	} `json:"tlsConfig"`
}

// target returns the target that Prometheus Operator would configure for a ServiceMonitor: the pod at a URL, with the settings of
// the only endpoint. It writes the credentials to a file in dir.
func target(ctx context.Context, name, url, dir string) observed.Target {
	GinkgoHelper()
	monitor := &unstructured.Unstructured{}
	monitor.SetAPIVersion("monitoring.coreos.com/v1")
	monitor.SetKind("ServiceMonitor")
	Expect(k8s.Get(ctx, client.ObjectKey{Namespace: installation.Namespace, Name: name}, monitor)).To(Succeed())
	text, err := json.Marshal(monitor.Object["spec"])
	Expect(err).NotTo(HaveOccurred())
	var spec struct {
		Endpoints []endpoint `json:"endpoints"`
	}
	Expect(json.Unmarshal(text, &spec)).To(Succeed())
	Expect(spec.Endpoints).To(HaveLen(1))
	e := spec.Endpoints[0]

	secret := &corev1.Secret{}
	Eventually(ctx, func() ([]byte, error) { // Kubernetes fills in the token.
		err := k8s.Get(ctx, client.ObjectKey{Namespace: installation.Namespace, Name: e.Authorization.Credentials.Name}, secret)
		return secret.Data[e.Authorization.Credentials.Key], err
	}).ShouldNot(BeEmpty())
	file := filepath.Join(dir, name+"-credentials")
	Expect(os.WriteFile(file, secret.Data[e.Authorization.Credentials.Key], 0o600)).To(Succeed())

	scrape := map[string]any{
		"scheme": e.Scheme, "honor_labels": e.HonorLabels,
		"authorization": map[string]any{"type": e.Authorization.Type, "credentials_file": file},
		"tls_config":    map[string]any{"insecure_skip_verify": e.TLSConfig.InsecureSkipVerify},
	}
	if e.Path != "" {
		scrape["metrics_path"] = e.Path
	}
	return observed.Target{Job: name, URL: url, Scrape: scrape}
}

var _ = Describe("Prometheus", func() {
	It("reads the metrics of both programs as the ServiceMonitors say", func(ctx context.Context) {
		program := observed.Program(GinkgoT(), "prometheus")
		rules, err := os.ReadFile(filepath.Join(root, "config", "prometheus", "rules.yaml"))
		Expect(err).NotTo(HaveOccurred())
		dir := GinkgoT().TempDir()
		prometheus, err := observed.Start(ctx, program, dir, rules,
			target(ctx, "healthscope-controller", hs.GuardedMetrics, dir), target(ctx, "healthscope-monitor", hs.GuardedMonitorMetrics, dir))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(prometheus.Stop)

		jobs := func(query string) func() ([]string, error) {
			return func() ([]string, error) {
				series, err := prometheus.Query(ctx, query)
				found := map[string]bool{}
				for _, s := range series {
					found[s.Labels["job"]] = true
				}
				return slices.Sorted(maps.Keys(found)), err
			}
		}
		Eventually(ctx, jobs(`up == 1`)).Should(Equal([]string{"healthscope-controller", "healthscope-monitor"}), prometheus.Log())
		// The label is the namespace of the scope, and not of the pod.
		Eventually(ctx, jobs(`healthscope_scope_health{namespace="default", scope="vfw"} == 1`)).Should(Equal([]string{"healthscope-controller"}))
		Eventually(ctx, jobs(`leader_election_master_status{name="healthscope-monitor"} == 1`)).Should(Equal([]string{"healthscope-monitor"}))
	}, SpecTimeout(2*time.Minute))
})
