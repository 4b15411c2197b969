package commands_test

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/healthscope/healthscope/aai/simulator"
	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/e2e/collector"
	"github.com/healthscope/healthscope/e2e/suite"
)

// newAAI starts an A&AI with a tenant, and returns the section of a configuration that sends the resources of a namespace to it.
func newAAI(namespace string) (section string) {
	GinkgoHelper()
	inventory := simulator.New(simulator.Options{Strict: true, Users: map[string]string{"healthscope": "canary-pa55word"}})
	Expect(inventory.Seed(simulator.CloudRegion("o", "r"), simulator.Tenant("o", "r", "t"))).To(Succeed())
	server := httptest.NewServer(inventory)
	DeferCleanup(server.Close)
	DeferCleanup(func() { Expect(inventory.Violations()).To(BeEmpty()) })
	dir := GinkgoT().TempDir()
	user, password := filepath.Join(dir, "user"), filepath.Join(dir, "password")
	Expect(os.WriteFile(user, []byte("healthscope"), 0o600)).To(Succeed())
	Expect(os.WriteFile(password, []byte("canary-pa55word"), 0o600)).To(Succeed())
	return "inventory:\n  url: " + server.URL + "\n  usernameFile: " + user + "\n  passwordFile: " + password +
		"\n  select: all\n  regions: [{cluster: local, namespace: " + namespace + ", cloudOwner: o, cloudRegionId: r, tenantId: t}]\n"
}

// spansIn returns the spans with a name that concern a namespace.
func spansIn(received *collector.Collector, name, namespace string) []collector.Span {
	var found []collector.Span
	for _, s := range received.Spans(name) {
		if s.Attributes["k8s.namespace.name"] == namespace {
			found = append(found, s)
		}
	}
	return found
}

var _ = Describe("Traces", func() {
	It("show the reconciles of the controller, with their requests to A&AI, and the monitor's", func(ctx SpecContext) {
		namespace := suite.NewNamespace(ctx, api)
		GinkgoT().Setenv("OTEL_BSP_SCHEDULE_DELAY", "200") // Milliseconds. By default spans are collected for five seconds.
		received := &collector.Collector{}
		sink := httptest.NewServer(received)
		DeferCleanup(sink.Close)
		newBundle(ctx, namespace, "5-web", "gentle-fox")
		scope := &corev1alpha2.HealthScope{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
		Expect(api.Create(ctx, scope)).To(Succeed())
		settings := configuration(GinkgoT().TempDir(), "api: {bindAddress: '0'}\nmetrics: {bindAddress: '0'}\ntracing: {endpoint: %q}\n"+newAAI(namespace), sink.URL)
		for _, command := range []string{"controller", "monitor"} {
			r := start(namespace, command, "--config", settings)
			Eventually(getting(ctx, r.probes, "/readyz")).Should(Equal("200 ok"))
			if command == "controller" {
				Eventually(health(ctx, scope)).Should(Equal("unknown"))
			}
			reconcile := map[string]string{"controller": "reconcile healthscope", "monitor": "reconcile monitor"}[command]
			Eventually(func() []collector.Span { return spansIn(received, reconcile, namespace) }).ShouldNot(BeEmpty())
			if command == "controller" {
				Eventually(func() []collector.Span { return received.Spans("A&AI GET") }).ShouldNot(BeEmpty())
			}
			Expect(r.Stop(grace)).To(Succeed())
			Expect(spansIn(received, reconcile, namespace)[0].Resource).To(And(HaveKeyWithValue("service.name", "healthscope-"+command), HaveKeyWithValue("k8s.cluster.name", "local")))
		}
		passes := map[string]collector.Span{}
		for _, s := range received.Spans("reconcile inventory") {
			passes[s.ID] = s
		}
		for _, request := range received.Spans("A&AI GET") {
			Expect(passes).To(HaveKey(request.Parent), "each request is part of a pass")
			Expect(request.Attributes).To(HaveKey("healthscope.aai.transaction_id"))
			Expect(passes[request.Parent].Attributes).To(HaveKeyWithValue("healthscope.name", "o/r/t"))
		}
		for _, s := range received.Spans("") {
			for key, value := range s.Attributes {
				Expect(value).NotTo(ContainSubstring("canary"), key)
			}
		}
	}, NodeTimeout(time.Minute))

	It("are lost while nobody takes them, which is said once and harms nothing", func(ctx SpecContext) {
		GinkgoT().Setenv("OTEL_BSP_SCHEDULE_DELAY", "200")
		namespace := suite.NewNamespace(ctx, api)
		scope := &corev1alpha2.HealthScope{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
		Expect(api.Create(ctx, scope)).To(Succeed())
		settings := configuration(GinkgoT().TempDir(), "api: {bindAddress: '0'}\nmetrics: {bindAddress: '0'}\ntracing: {endpoint: %q}\n", "http://"+freeAddress())
		r := start(namespace, "controller", "--config", settings)
		Eventually(health(ctx, scope)).Should(Equal("unknown"))
		Eventually(func() string { return r.LogTail() }).Should(ContainSubstring("Cannot send traces"))
		Expect(r.Stop(grace)).To(Succeed())
		log, err := os.ReadFile(filepath.Join(filepath.Dir(r.config), "log"))
		Expect(err).NotTo(HaveOccurred())
		Expect(strings.Count(string(log), "Cannot send traces")).To(Equal(1))
	}, NodeTimeout(time.Minute))
})
