package enrol_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/controllers/enrol"
	"github.com/healthscope/healthscope/e2e/controlplane"
)

// bundleCRD is the CRD of bundles, seen from this folder.
const bundleCRD = "../../config/crd/k8splugin.io_resourcebundlestates.yaml"

// patience is how long a suite on a busy machine waits for what must come.
const patience = 30 * time.Second

var (
	// hubPlane is the hub, and memberPlane the member. The member has controllers: they aggregate roles and delete namespaces.
	hubPlane, memberPlane *controlplane.ControlPlane
	// hub and member are the administrators' clients, without a cache.
	hub, member client.Client
	scheme      = runtime.NewScheme()
)

func TestSuite(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Enrol")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	SetDefaultEventuallyTimeout(patience)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	ctrl.SetLogger(GinkgoLogr)
	klog.SetLogger(logr.Discard())
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, corev1alpha2.AddToScheme, k8spluginv1alpha1.AddToScheme} {
		Expect(add(scheme)).To(Succeed())
	}
	hubPlane, hub = start(ctx, controlplane.Options{Name: "hub", Log: GinkgoWriter})
	memberPlane, member = start(ctx, controlplane.Options{Name: "member", Log: GinkgoWriter, Controllers: true, Nodes: 1})
	Expect(memberPlane.InstallManifests(ctx, bundleCRD)).To(Succeed())
	Expect(hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: corev1alpha2.DefaultClustersNamespace}})).To(Succeed())
}, NodeTimeout(8*time.Minute))

// start starts a control plane until the end of the suite.
func start(ctx context.Context, o controlplane.Options) (*controlplane.ControlPlane, client.Client) {
	GinkgoHelper()
	plane, err := controlplane.Start(ctx, o)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return plane.Stop() })
	c, err := client.New(plane.Config(), client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	return plane, c
}

// lasting returns a context that lasts until it is cancelled, or the spec is over. The context of a spec ends before its cleanup.
func lasting() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	DeferCleanup(cancel)
	return ctx, cancel
}

// clusters returns both clusters, and the lines that are reported.
func clusters() (enrol.Clusters, func() []string) {
	var lines []string
	c := enrol.Clusters{Hub: hub, Member: member, MemberConfig: memberPlane.Config(), Report: func(change enrol.Change) { lines = append(lines, change.String()) }}
	return c, func() []string { return lines }
}

// enrolment returns the enrolment of the member.
func enrolment(namespaces ...string) enrol.Enrolment {
	config := memberPlane.Config()
	return enrol.Enrolment{Name: "provider+edge01", Server: config.Host, Authority: config.CAData, Namespaces: namespaces, SecretNamespace: corev1alpha2.DefaultClustersNamespace}
}

// add makes the member one, and returns the lines that are reported.
func add(ctx context.Context, e enrol.Enrolment, now time.Time) []string {
	GinkgoHelper()
	c, lines := clusters()
	Expect(enrol.Add(ctx, c, e, now)).To(Succeed())
	return lines()
}

// removeAll makes the member none, whatever a spec has left.
func removeAll(ctx context.Context) {
	GinkgoHelper()
	Expect(hub.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace(corev1alpha2.DefaultClustersNamespace))).To(Succeed())
	c, _ := clusters()
	Expect(enrol.Remove(ctx, c, "provider+edge01", corev1alpha2.DefaultClustersNamespace)).To(Succeed())
	Eventually(ctx, func() error {
		return member.Get(ctx, client.ObjectKey{Name: enrol.MemberNamespace}, &corev1.Namespace{})
	}).Should(MatchError(ContainSubstring("not found")), "a namespace that goes takes nothing new")
}

// secret returns the hub's Secret of the member.
func secret(ctx context.Context) *corev1.Secret {
	GinkgoHelper()
	var s corev1.Secret
	Expect(hub.Get(ctx, client.ObjectKey{Namespace: corev1alpha2.DefaultClustersNamespace, Name: "provider-edge01"}, &s)).To(Succeed())
	return &s
}

// clientFor returns a client with a kubeconfig file.
func clientFor(path string) client.Client {
	GinkgoHelper()
	config, err := clientcmd.BuildConfigFromFlags("", path)
	Expect(err).NotTo(HaveOccurred())
	c, err := client.New(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	return c
}

// manifest writes a manifest to a file for InstallManifests.
func manifest(text string) string {
	GinkgoHelper()
	file := filepath.Join(GinkgoT().TempDir(), "manifest.yaml")
	Expect(os.WriteFile(file, []byte(text), 0o600)).To(Succeed())
	return file
}
