package observed

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/e2e/installation"
)

const (
	// secret is the Secret of the edge, and secrets is its namespace.
	secret, secrets = "vfw-cluster-provider-edge01", "healthscope-clusters"
	maintenance     = "healthscope.core.oam.dev/maintenance"
	// vnf is the path of the VNF of the demo in A&AI.
	vnf = "/network/generic-vnfs/generic-vnf/" + installation.GenericVNFID
)

// local is an application in the hub's own cluster, and refused is a cluster whose kubeconfig HealthScope does not use.
const (
	local = `{apiVersion: v1, kind: Service, metadata: {name: local, namespace: default, labels: {emco/deployment-id: 7-local}}, spec: {ports: [{port: 80}]}}
---
{apiVersion: k8splugin.io/v1alpha1, kind: ResourceBundleState, metadata: {name: 7-local, namespace: default, labels: {emco/deployment-id: 7-local}}, spec: {selector: {matchLabels: {emco/deployment-id: 7-local}}}}
---
{apiVersion: core.oam.dev/v1alpha2, kind: HealthScope, metadata: {name: local, namespace: default}, spec: {apps: [{name: local, workloadRefs: [{apiVersion: k8splugin.io/v1alpha1, kind: ResourceBundleState, name: 7-local}]}]}}
`
	refused = `{apiVersion: v1, kind: Secret, metadata: {name: refused, namespace: healthscope-clusters, labels: {healthscope.core.oam.dev/cluster-kubeconfig: "true"}}, stringData: {kubeconfig: "{}"}}`
	// readable grants the monitor the right to read CSIStorageCapacities, which it lacks.
	readable = `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: capacities, labels: {healthscope.core.oam.dev/aggregate-to-monitor: "true"}}, rules: [{apiGroups: [storage.k8s.io], resources: [csistoragecapacities], verbs: [list, watch]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: capacities}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: capacities}, subjects: [{kind: ServiceAccount, name: healthscope-monitor, namespace: healthscope-system}]}
`
	// denied is an admission policy that denies all writes to the status of scopes.
	denied = `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: denied}, spec: {matchConstraints: {resourceRules: [{apiGroups: [core.oam.dev], apiVersions: ["*"], operations: [UPDATE], resources: [healthscopes/status]}]}, validations: [{expression: "false"}]}}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: denied}, spec: {policyName: denied, validationActions: [Deny]}}
`
)

// service returns a Service of the sink at the edge.
func service(name string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: Service, metadata: {name: %s, namespace: default, labels: {emco/deployment-id: 171887448792644816-sink}}, spec: {ports: [{port: 80}]}}`, name)
}

// faults replaces the rules by which A&AI fails.
func faults(ctx context.Context, rules string) {
	GinkgoHelper()
	order(ctx, http.MethodDelete, "/__sim/faults", "")
	order(ctx, http.MethodPost, "/__sim/faults", rules)
}

// order sends a request to the control surface of A&AI.
func order(ctx context.Context, method, path, body string) {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, method, hs.Control+path, strings.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	response, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	said, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	Expect(response.Body.Close()).To(Succeed())
	Expect(response.StatusCode).To(BeNumerically("<", 300), "%s %s: %s", method, path, said)
}

// act changes A&AI as another client does, through the simulator's actions.
func act(ctx context.Context, actions string) {
	GinkgoHelper()
	order(ctx, http.MethodPost, "/__sim/actor", actions)
}

func crash(ctx context.Context, change string) {
	GinkgoHelper()
	kubectl(ctx, edge, "", "annotate", "pod", "-n", "default", "-l", "app=sink", controlplane.CrashAnnotation+change)
}

var _ = Describe("Prometheus", Ordered, func() {
	var open questions
	var started time.Time
	vfw := "scope=vfw"
	unhealthy, unknown := alert{"HealthScopeUnhealthy", []string{vfw}}, alert{"HealthScopeUnknown", []string{"scope=local"}}
	stale := alert{"HealthScopeMonitorStale", []string{"cluster=local"}}

	It("is told that all is well, but for a kind that a monitor may not read", func(ctx SpecContext) {
		open = allQuestions()
		started = time.Now()
		sample := func(name string) string { return filepath.Join(root, "config", "samples", "vfw", name) }
		kubectl(ctx, edge, "", "apply", "-f", sample("1-application.yaml"), "-f", sample("2-bundles.yaml"))
		kubectl(ctx, hub, "", "apply", "-f", sample("3-healthscope.yaml"))
		apply(ctx, hub, local)
		kubectl(ctx, hub, "", "wait", "--for=condition=Ready", "--timeout=60s", "-n", "default", "hs/vfw", "hs/local")
		kubectl(ctx, hub, "", "wait", "--for=condition=InventorySynced", "--timeout=60s", "-n", "default", "hs/vfw", "hs/local")
		unread := alert{name: "HealthScopeKindsUnreadable"}
		fire(ctx, open, unread)
		apply(ctx, hub, readable)
		stop(ctx, unread)
		Eventually(ctx, prometheus.Firing).WithTimeout(alertTimeout).Should(BeEmpty())
	}, SpecTimeout(3*time.Minute))

	It("tells that a configuration file is refused, and the one before stays in use", func(ctx SpecContext) {
		refusals := []alert{{"HealthScopeConfigurationRefused", []string{"job=healthscope-controller"}}, {"HealthScopeConfigurationRefused", []string{"job=healthscope-monitor"}}}
		Expect(hs.Configure(ctx, base()+"monitr: {}\n")).To(Succeed())
		fire(ctx, open, refusals...)
		Expect(hs.Configure(ctx, base())).To(Succeed())
		stop(ctx, refusals...)
	}, SpecTimeout(3*time.Minute))

	It("tells that resources and modules wait for a VNF that A&AI does not have", func(ctx SpecContext) {
		waiting := alert{name: "HealthScopeInventoryPending"}
		act(ctx, `[{"action": "delete", "uri": "`+vnf+`"}]`)
		apply(ctx, edge, service("early"))
		kubectl(ctx, hub, "", "patch", "-n", "default", "hs/local", "--type=json", "-p", `[{"op": "add", "path": "/spec/apps/0/inventory", "value": {"genericVnfId": "`+installation.GenericVNFID+`", "vfModuleId": "local"}}]`)
		for _, metric := range []string{"healthscope_aai_objects", "healthscope_aai_vf_modules"} {
			Eventually(ctx, prometheus.Query).WithArguments(metric+`{state="pending"}`).WithTimeout(alertTimeout).ShouldNot(BeEmpty(), metric)
		}
		fire(ctx, open, waiting)
		firing, err := prometheus.Firing(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(firing).NotTo(HaveKey("HealthScopeInventoryProblem"))
		act(ctx, `[{"action": "put", "uri": "`+vnf+`", "body": {"vnf-id": "`+installation.GenericVNFID+`", "vnf-name": "vfw", "vnf-type": "vfw"}}]`)
		for _, module := range []string{installation.VFModuleID, "local"} {
			act(ctx, `[{"action": "put", "uri": "`+vnf+"/vf-modules/vf-module/"+module+`", "body": {"vf-module-id": "`+module+`", "is-base-vf-module": true}}]`)
		}
		stop(ctx, waiting)
	}, SpecTimeout(3*time.Minute))

	It("tells what is wrong with scopes, clusters, rules, writes and objects, and that it is over", func(ctx SpecContext) {
		all := []alert{
			unhealthy, {"HealthScopeClusterForbidden", []string{"cluster=refused"}}, {"HealthScopeRuleInvalid", []string{"rule=typo", "job=healthscope-controller"}},
			{"HealthScopeReconcileErrors", []string{"controller=healthscope"}}, {"HealthScopeInventoryRejected", []string{"cause=rejected"}}, {"HealthScopeRecorderFailing", []string{"cause=etcd"}},
		}
		Expect(hs.KillMonitor()).To(Succeed()) // A silent monitor counts as stale only after most of a minute.
		Expect(hs.Configure(ctx, base()+"healthCheckExprs:\n- {name: typo, apiVersion: v1, kind: Service, current: status.conditons.exists(}\n")).To(Succeed())
		faults(ctx, `[{"body-contains": "\"refused\"", "code": "AAI_3000"}]`)
		apply(ctx, edge, service("refused"))
		Expect(etcd.Kill()).To(Succeed())
		apply(ctx, hub, denied)
		apply(ctx, hub, refused)
		crash(ctx, "=true")
		fire(ctx, open, all...)

		By("being silent while somebody works on the scope")
		kubectl(ctx, hub, "", "annotate", "-n", "default", "hs/vfw", maintenance+"=new switches")
		stop(ctx, unhealthy)
		open.ask(ctx)
		kubectl(ctx, hub, "", "annotate", "-n", "default", "hs/vfw", maintenance+"-")
		fire(ctx, open, unhealthy)

		By("mending it")
		crash(ctx, "-")
		kubectl(ctx, hub, denied, "delete", "-f", "-")
		kubectl(ctx, hub, refused, "delete", "-f", "-")
		kubectl(ctx, edge, "", "delete", "service", "-n", "default", "refused")
		faults(ctx, `[]`)
		Expect(etcd.Start(ctx)).To(Succeed())
		Expect(hs.Configure(ctx, base())).To(Succeed())
		stop(ctx, all...)
	}, SpecTimeout(3*time.Minute))

	It("tells that A&AI is slow, and then away", func(ctx SpecContext) {
		slow := alert{name: "HealthScopeInventoryLagging"}
		faults(ctx, `[{"delay": "11s"}]`)
		apply(ctx, edge, service("late"))
		fire(ctx, open, slow)
		problem := alert{"HealthScopeInventoryProblem", []string{"problem=outage"}}
		faults(ctx, `[{"status": 503}]`)
		apply(ctx, edge, service("later"))
		fire(ctx, open, problem)
		Expect(edge.StopAPIServer()).To(Succeed()) // The hub notices this only after some time, too.
		faults(ctx, `[]`)
		stop(ctx, slow, problem)
	}, SpecTimeout(3*time.Minute))

	It("tells that a monitor does not run, that a cluster is away and its token ends, and what that holds back", func(ctx SpecContext) {
		lost := []alert{{"HealthScopeClusterUnreachable", []string{"cluster=" + edgeName}}, {"HealthScopeTokenNotRenewed", []string{"cluster=" + edgeName}}, {"HealthScopeUnknown", []string{vfw}}}
		held := alert{"HealthScopeDeletionsHeld", []string{"cause=source"}}
		kubectl(ctx, hub, "", "annotate", "--overwrite", "secret", "-n", secrets, secret, "healthscope.core.oam.dev/token-expires="+time.Now().Add(10*time.Minute).UTC().Format(time.RFC3339))
		fire(ctx, open, stale, unknown)
		kubectl(ctx, hub, "", "patch", "-n", "default", "hs/local", "--type=merge", "-p", `{"spec":{"apps":[]}}`)
		fire(ctx, open, append(lost, held)...)

		By("being silent while somebody works on the cluster")
		kubectl(ctx, hub, "", "annotate", "secret", "-n", secrets, secret, maintenance+"=new switches")
		stop(ctx, lost...)
		open.ask(ctx)
		kubectl(ctx, hub, "", "annotate", "secret", "-n", secrets, secret, maintenance+"-")
		fire(ctx, open, lost...)

		By("bringing both back")
		Expect(hs.StartMonitor(ctx)).To(Succeed())
		Expect(edge.StartAPIServer(ctx)).To(Succeed())
		Expect(member.Restart(ctx)).To(Succeed())
		stop(ctx, append(lost, stale, unknown, held)...)
	}, SpecTimeout(4*time.Minute))

	It("tells that no controller leads", func(ctx SpecContext) {
		down := alert{name: "HealthScopeControllerDown"}
		Expect(hs.StopController()).To(Succeed())
		fire(ctx, open, down)
		Expect(hs.StartController(ctx)).To(Succeed())
		stop(ctx, down)
	}, SpecTimeout(3*time.Minute))

	It("has had an answer to each question of dashboard and alerts, and nothing is left", func(ctx SpecContext) {
		Eventually(ctx, func() []string {
			open.ask(ctx)
			return open.open()
		}).WithTimeout(alertTimeout).Should(BeEmpty(), "queries that never had an answer")
		Eventually(ctx, prometheus.Firing).WithTimeout(alertTimeout).Should(BeEmpty())
	}, SpecTimeout(3*time.Minute))

	It("has seen each alert fire", func(ctx SpecContext) {
		var silent []string
		for _, g := range shipped().Groups {
			for _, r := range g.Rules {
				series, err := prometheus.Query(ctx, fmt.Sprintf(`max_over_time(ALERTS{alertname=%q, alertstate="firing"}[1h])`, r.Alert))
				Expect(err).NotTo(HaveOccurred())
				if len(series) == 0 {
					silent = append(silent, r.Alert)
				}
			}
		}
		Expect(silent).To(ConsistOf(slices.Collect(maps.Keys(uncaused))))
	})

	AfterAll(func(ctx SpecContext) {
		if *redraw {
			Expect(os.WriteFile(filepath.Join(root, picture), []byte(draw(ctx, started, time.Now())), 0o644)).To(Succeed())
		}
	}, NodeTimeout(time.Minute))
})
