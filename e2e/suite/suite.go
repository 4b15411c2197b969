// Package suite holds what the Ginkgo suites that run against a real API server share.
package suite

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/e2e/controlplane"
)

// Run runs the specs of a package, which need an API server.
func Run(t *testing.T, name string) {
	t.Helper()
	NeedsControlPlane(t)
	gomega.RegisterFailHandler(ginkgo.Fail)
	ginkgo.RunSpecs(t, name)
}

// NeedsControlPlane skips a test that starts an etcd or an API server when only short tests run (go test -short).
func NeedsControlPlane(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("it needs a control plane, which `make controlplane` builds, and -short leaves out what needs one")
	}
}

// Extended skips a test that is too slow to run for every change, unless the environment variable HEALTHSCOPE_TEST_EXTENDED is set.
func Extended(t testing.TB) {
	t.Helper()
	if !IsExtended() {
		t.Skip(takesMinutes)
	}
}

// ExtendedSpec is Extended for a spec.
func ExtendedSpec() {
	if !IsExtended() {
		ginkgo.Skip(takesMinutes, 1)
	}
}

const takesMinutes = "it takes minutes: make test-extended runs it"

// IsExtended reports whether tests may take minutes.
func IsExtended() bool { return os.Getenv("HEALTHSCOPE_TEST_EXTENDED") != "" }

// Timeout is the default timeout of Eventually. It is long because a busy machine is slow.
const Timeout = 30 * time.Second

// Defaults sets the timeouts of Eventually and Consistently, also for calls with a context. It sends the logs of controllers to
// the output of the spec.
func Defaults() {
	gomega.EnforceDefaultTimeoutsWhenUsingContexts()
	gomega.SetDefaultEventuallyTimeout(Timeout)
	gomega.SetDefaultEventuallyPollingInterval(50 * time.Millisecond) // More requests cost a busy machine more than they save.
	gomega.SetDefaultConsistentlyDuration(500 * time.Millisecond)
	ctrl.SetLogger(ginkgo.GinkgoLogr)
	klog.SetLogger(ginkgo.GinkgoLogr)
}

// Scheme returns a scheme with the types of Kubernetes and HealthScope.
func Scheme() *runtime.Scheme {
	ginkgo.GinkgoHelper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, corev1alpha2.AddToScheme, k8spluginv1alpha1.AddToScheme} {
		gomega.Expect(add(scheme)).To(gomega.Succeed())
	}
	return scheme
}

// ManagerOptions returns options for one of many managers in a process: it serves no metrics, and its queues are those of the
// programs.
func ManagerOptions() ctrl.Options {
	ginkgo.GinkgoHelper()
	return ctrl.Options{
		Scheme: Scheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true), UsePriorityQueue: new(false)},
	}
}

// Start starts a control plane that runs until the suite ends, and installs manifests, which are files or folders. It returns the
// control plane and an administrator's client without a cache.
func Start(ctx context.Context, options controlplane.Options, manifests ...string) (*controlplane.ControlPlane, client.Client) {
	ginkgo.GinkgoHelper()
	options.Log = ginkgo.GinkgoWriter
	plane, err := controlplane.Start(ctx, options)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	ginkgo.DeferCleanup(func() error { return plane.Stop() })
	if len(manifests) > 0 {
		gomega.Expect(plane.InstallManifests(ctx, manifests...)).To(gomega.Succeed())
	}
	api, err := client.New(plane.Config(), client.Options{Scheme: Scheme()})
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	return plane, api
}

// NewNamespace creates a namespace for a spec. It deletes the objects of the given kinds in it
// when the spec ends, because the controllers of other specs read all namespaces.
func NewNamespace(ctx context.Context, api client.Client, kinds ...client.Object) string {
	ginkgo.GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "spec-"}}
	gomega.Expect(api.Create(ctx, namespace)).To(gomega.Succeed())
	for _, kind := range kinds {
		ginkgo.DeferCleanup(api.DeleteAllOf, kind, client.InNamespace(namespace.Name))
	}
	return namespace.Name
}

// Lasting returns a context that ends when it is cancelled or when the spec's cleanup runs. The spec's own context ends before
// the cleanup.
func Lasting() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	ginkgo.DeferCleanup(cancel)
	return ctx, cancel
}

// Manifest writes a manifest to a file for InstallManifests.
func Manifest(text string) string {
	ginkgo.GinkgoHelper()
	file := filepath.Join(ginkgo.GinkgoT().TempDir(), "manifest.yaml")
	gomega.Expect(os.WriteFile(file, []byte(text), 0o600)).To(gomega.Succeed())
	return file
}
