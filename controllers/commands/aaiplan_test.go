package commands_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/healthscope/healthscope/aai/simulator"
	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/e2e/suite"
	"github.com/healthscope/healthscope/healthscope/bundle"
)

var _ = Describe("The command aai plan", func() {
	var inventory *simulator.Simulator
	var config, namespace string
	run := func(args ...string) (code int, out, errOut string) {
		return execute(GinkgoT().Context(), "", program, append([]string{"aai", "plan", "--kubeconfig", plane.KubeconfigPath()}, args...)...)
	}
	BeforeEach(func(ctx SpecContext) {
		namespace = suite.NewNamespace(ctx, api)
		createMonitorLease(ctx, namespace)
		inventory = simulator.New(simulator.Options{Strict: true, Users: map[string]string{"healthscope": "canary-pa55word"}})
		Expect(inventory.Seed(simulator.CloudRegion("o", "r"), simulator.Tenant("o", "r", "t"), simulator.GenericVNF("vnf-1"), simulator.VFModule("vnf-1", "m-1"))).To(Succeed())
		server := httptest.NewServer(inventory)
		DeferCleanup(server.Close)
		dir := GinkgoT().TempDir()
		for name, content := range map[string]string{"user": "healthscope", "password": "canary-pa55word", "config.yaml": fmt.Sprintf(`
apiVersion: config.healthscope.io/v1alpha1
kind: Configuration
inventory:
  url: %s
  usernameFile: %s
  passwordFile: %s
  regions:
  - {cluster: local, namespace: %[4]s, cloudOwner: o, cloudRegionId: r, tenantId: t}
  links:
  - {namespace: %[4]s, genericVnfIds: [vnf-1]}
  operationalStatus: true
fleet:
  monitorNamespace: %[4]s
`, server.URL, filepath.Join(dir, "user"), filepath.Join(dir, "password"), namespace)} {
			Expect(os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600)).To(Succeed())
		}
		config = filepath.Join(dir, "config.yaml")
		DeferCleanup(func() { Expect(inventory.Violations()).To(BeEmpty()) })
	})

	It("says what there is to do, and does nothing", func(ctx SpecContext) {
		b := &k8spluginv1alpha1.ResourceBundleState{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "7-web"}}
		Expect(api.Create(ctx, b)).To(Succeed())
		web := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"type": "ClusterIP"}}}
		web.SetAPIVersion("v1")
		web.SetKind("Service")
		web.SetNamespace(namespace)
		web.SetName("web")
		b.Status = bundle.Build([]*unstructured.Unstructured{web}, nil, time.Now(), bundle.Options{})
		Expect(api.Status().Update(ctx, b)).To(Succeed())
		s := &corev1alpha2.HealthScope{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shop"},
			Spec: corev1alpha2.HealthScopeSpec{
				WorkloadReferences: []corev1alpha2.WorkloadReference{},
				Apps:               []corev1alpha2.ScopeApp{linkedApp("web", "m-1"), linkedApp("web-too", "m-2")},
			},
		}
		Expect(api.Create(ctx, s)).To(Succeed())
		DeferCleanup(api.Delete, s)
		resource := func(id, owner string) simulator.Fixture {
			return simulator.Fixture{
				URI: "/cloud-infrastructure/cloud-regions/cloud-region/o/r/tenants/tenant/t/k8s-resources/k8s-resource/" + id,
				Body: map[string]any{
					"id": id, "name": id, "group": "", "version": "v1", "kind": "Service", "namespace": namespace, "selflink": "x", "data-owner": owner, "data-source": "local",
				},
			}
		}
		Expect(inventory.Seed(resource("old", "healthscope-default"), resource("theirs", "somebody"))).To(Succeed())
		before := inventory.State()

		code, out, errOut := run("--config", config)
		Expect(out).To(And(
			ContainSubstring("+ Service/%s/web of local in o/r/t: status=Ready\n", namespace), ContainSubstring("- Service/%s/old of local in o/r/t\n", namespace),
			ContainSubstring("~ vf-module vnf-1/m-1: operational-status=in-service-path, now \"\"\n"), ContainSubstring("! vf-module vnf-1/m-2 does not exist in A&AI"),
			Not(ContainSubstring("theirs")), HaveSuffix("1 to create, 1 to change, 1 to delete, 0 deletions held, 0 conflicts, 1 waiting\n"),
		), errOut)
		Expect(code).To(Equal(1), errOut)
		Expect(inventory.State()).To(Equal(before))
		for _, r := range inventory.Requests() {
			Expect(r.Method).To(Equal(http.MethodGet))
		}
		var now corev1alpha2.HealthScope
		Expect(api.Get(ctx, client.ObjectKeyFromObject(s), &now)).To(Succeed())
		Expect(now.ResourceVersion).To(Equal(s.ResourceVersion), "the cluster is not written to either")
		Expect(out + errOut).NotTo(ContainSubstring("canary-pa55word"))

		By("having nowhere to go")
		Expect(inventory.ReplaceState(simulator.CloudRegion("o", "r"))).To(Succeed())
		code, out, errOut = run("--config", config)
		Expect(out).To(And(
			ContainSubstring("! Service/%s/web of local in o/r/t: waits, A&AI does not have tenant \"o/r/t\" and generic-vnf \"vnf-1\" and vf-module \"m-1\"\n", namespace),
			HaveSuffix("0 to create, 0 to change, 0 to delete, 0 deletions held, 0 conflicts, 3 waiting\n"),
		), errOut)
		Expect(code).To(Equal(1), errOut)
	})

	It("ends with 0 when there is nothing to do", func(SpecContext) {
		code, out, errOut := run("--config", config)
		Expect(code).To(BeZero(), errOut)
		Expect(out).To(Equal("0 to create, 0 to change, 0 to delete, 0 deletions held, 0 conflicts, 0 waiting\n"))
	})

	It("ends with 3 when it cannot tell, and with 2 when it was asked in a wrong way", func(SpecContext) {
		code, _, errOut := run()
		Expect(code).To(Equal(2))
		Expect(errOut).To(ContainSubstring("no section inventory"))
		Expect(os.WriteFile(filepath.Join(filepath.Dir(config), "password"), []byte("wrong"), 0o600)).To(Succeed())
		code, out, errOut := run("--config", config)
		Expect(code).To(Equal(3))
		Expect(errOut).To(And(ContainSubstring("refuses the user or the password"), Not(ContainSubstring("wrong"))))
		Expect(out).To(BeEmpty())
		code, _, errOut = run("--kubeconfig", config)
		Expect(code).To(Equal(2), errOut)
		code, _, _ = run("surplus")
		Expect(code).To(Equal(2))
	})
})

// linkedApp returns an app of one bundle that names a module.
func linkedApp(name, module string) corev1alpha2.ScopeApp {
	return corev1alpha2.ScopeApp{
		Name: name,
		WorkloadReferences: []corev1alpha2.WorkloadReference{
			{APIVersion: k8spluginv1alpha1.GroupVersion.String(), Kind: k8spluginv1alpha1.ResourceBundleStateKind, Name: "7-web"},
		},
		Inventory: &corev1alpha2.InventoryLinks{GenericVNFID: "vnf-1", VFModuleID: module},
	}
}
