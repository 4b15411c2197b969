package app_test

import (
	"context"
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/controllers/app"
	"github.com/healthscope/healthscope/e2e/controlplane"
)

// program as the first argument makes the test binary the healthscope program.
const program = "healthscope"

// crds is the folder of the CRDs, seen from this one.
const crds = "../../config/crd"

const (
	// patience is how long a suite on a busy machine waits for what must come.
	patience = 30 * time.Second
	// grace is how long a process may take to stop.
	grace = 10 * time.Second
)

var (
	// plane is an API server without controllers.
	plane *controlplane.ControlPlane
	// api is the administrator's client, without a cache.
	api client.Client
)

// TestMain lets the test binary be started as the program under test: exit codes and signals are those of a process.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == program {
		os.Exit(app.Main(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func TestSuite(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "App")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	SetDefaultEventuallyTimeout(patience)
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	var err error
	plane, err = controlplane.Start(ctx, controlplane.Options{Name: "app", Log: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return plane.Stop() })
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, coordinationv1.AddToScheme, corev1alpha2.AddToScheme, k8spluginv1alpha1.AddToScheme} {
		Expect(add(scheme)).To(Succeed())
	}
	api, err = client.New(plane.Config(), client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	Expect(plane.InstallManifests(ctx, crds)).To(Succeed())
}, NodeTimeout(5*time.Minute))

// newNamespace makes a namespace for a spec.
func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "spec-"}}
	Expect(api.Create(ctx, namespace)).To(Succeed())
	return namespace.Name
}
