package inventory_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/e2e/controlplane"
)

// crds is the folder of the CRDs, seen from this one.
const crds = "../../config/crd"

const (
	// patience is how long a suite on a busy machine waits for what must come.
	patience = 20 * time.Second
	// quiet is how long is watched that nothing comes.
	quiet = 500 * time.Millisecond
)

var (
	// plane is an API server without controllers: the specs write the status of bundles themselves.
	plane *controlplane.ControlPlane
	// api is the administrator's client, without a cache.
	api client.Client
)

func TestSuite(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Inventory")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	SetDefaultEventuallyTimeout(patience)
	SetDefaultEventuallyPollingInterval(10 * time.Millisecond)
	SetDefaultConsistentlyDuration(quiet)
	ctrl.SetLogger(GinkgoLogr)
	klog.SetLogger(GinkgoLogr)

	var err error
	plane, err = controlplane.Start(ctx, controlplane.Options{Name: "inventory", Log: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return plane.Stop() })
	Expect(plane.InstallManifests(ctx, crds)).To(Succeed())
	api, err = client.New(plane.Config(), client.Options{Scheme: newScheme()})
	Expect(err).NotTo(HaveOccurred())
}, NodeTimeout(5*time.Minute))

func newScheme() *runtime.Scheme {
	GinkgoHelper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, corev1alpha2.AddToScheme, k8spluginv1alpha1.AddToScheme} {
		Expect(add(scheme)).To(Succeed())
	}
	return scheme
}

// newNamespace makes a namespace for a spec. What the spec puts there does not outlive it, for the next spec's hub would see it too.
func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "spec-"}}
	Expect(api.Create(ctx, namespace)).To(Succeed())
	for _, kind := range []client.Object{&corev1alpha2.HealthScope{}, &k8spluginv1alpha1.ResourceBundleState{}} {
		DeferCleanup(api.DeleteAllOf, kind, client.InNamespace(namespace.Name))
	}
	return namespace.Name
}

// lasting returns a context that lasts until it is cancelled, or the spec is over. The context of a spec ends before its cleanup.
func lasting() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	DeferCleanup(cancel)
	return ctx, cancel
}
