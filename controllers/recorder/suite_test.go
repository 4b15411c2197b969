package recorder_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/e2e/controlplane"
)

// bundleCRD is the CRD of bundles, seen from this folder.
const bundleCRD = "../../config/crd/k8splugin.io_resourcebundlestates.yaml"

const (
	// patience is how long a suite on a busy machine waits for what must come.
	patience = 30 * time.Second
	// quiet is how long is watched that nothing comes.
	quiet = 500 * time.Millisecond
)

var (
	// plane is an API server without controllers: the specs write status themselves.
	plane *controlplane.ControlPlane
	// api is the administrator's client, without a cache.
	api client.Client
	// etcd holds the AppContexts, and raw is a client that knows nothing of them.
	etcd *controlplane.Etcd
	raw  *clientv3.Client
)

func TestSuite(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Recorder")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	SetDefaultEventuallyTimeout(patience)
	SetDefaultEventuallyPollingInterval(10 * time.Millisecond)
	SetDefaultConsistentlyDuration(quiet)
	ctrl.SetLogger(GinkgoLogr)
	klog.SetLogger(GinkgoLogr)

	var err error
	etcd, err = controlplane.StartEtcd(ctx, controlplane.EtcdOptions{Log: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return etcd.Stop() })
	raw = newRaw(etcd.Endpoint())
	plane, err = controlplane.Start(ctx, controlplane.Options{Name: "recorder", Log: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return plane.Stop() })
	Expect(plane.InstallManifests(ctx, bundleCRD)).To(Succeed())
	api, err = client.New(plane.Config(), client.Options{Scheme: newScheme()})
	Expect(err).NotTo(HaveOccurred())
}, NodeTimeout(10*time.Minute))

func newScheme() *runtime.Scheme {
	GinkgoHelper()
	scheme := runtime.NewScheme()
	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(k8spluginv1alpha1.AddToScheme(scheme)).To(Succeed())
	return scheme
}

// lasting returns a context that lasts until it is cancelled, or the spec is over. The context of a spec ends before its cleanup.
func lasting() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	DeferCleanup(cancel)
	return ctx, cancel
}

// newNamespace makes a namespace for a spec, whose bundles do not outlive it.
func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "spec-"}}
	Expect(api.Create(ctx, namespace)).To(Succeed())
	DeferCleanup(api.DeleteAllOf, &k8spluginv1alpha1.ResourceBundleState{}, client.InNamespace(namespace.Name))
	return namespace.Name
}
