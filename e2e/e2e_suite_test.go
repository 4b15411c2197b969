package e2e

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/e2e/installation"
)

// The suite's control plane, and HealthScope on it.
var (
	cp  *controlplane.ControlPlane
	hs  *installation.Installation
	k8s client.WithWatch
)

// suiteConfiguration makes time pass quickly where it passes in a test; the defaults are tested where the clock can be set.
const suiteConfiguration = "policy:\n  notPresentGraceSeconds: 1\n"

func TestEndToEnd(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(60 * time.Second)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	RunSpecs(t, "End to end")
}

var _ = BeforeSuite(func(ctx context.Context) {
	root, err := filepath.Abs("..")
	Expect(err).NotTo(HaveOccurred())
	bin, dir := GinkgoT().TempDir(), GinkgoT().TempDir()
	Expect(installation.Build(ctx, root, bin)).To(Succeed())

	cp, err = controlplane.Start(ctx, controlplane.Options{Name: "e2e", Controllers: true, Log: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(cp.Stop)
	hs, err = installation.Start(ctx, cp, installation.Options{
		Root: root, Bin: bin, Dir: dir, Log: GinkgoWriter,
		Configuration: suiteConfiguration,
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(hs.Stop)
	DeferCleanup(func(ctx context.Context) {
		violations, err := hs.Violations(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(violations).To(BeEmpty(), "what A&AI found fault with in the whole suite")
	})

	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, corev1alpha2.AddToScheme, k8spluginv1alpha1.AddToScheme} {
		Expect(add(scheme)).To(Succeed())
	}
	k8s, err = client.NewWithWatch(cp.Config(), client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
}, NodeTimeout(10*time.Minute))

var _ = ReportAfterEach(func(r SpecReport) {
	if r.Failed() && hs != nil {
		_, _ = GinkgoWriter.Write([]byte(hs.LogTails()))
	}
})
