package edges

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/e2e/installation"
)

// provider is the name of the provider of the edges.
const provider = "vfw-cluster-provider+"

// edge is an edge cluster.
type edge struct {
	name   string
	cp     *controlplane.ControlPlane
	client client.WithWatch
	member *installation.Member
}

// The suite's clusters: the hub, and two edges that are its members.
var (
	hub            *controlplane.ControlPlane
	hs             *installation.Installation
	k8s            client.WithWatch
	edge01, edge02 = &edge{name: provider + "edge01"}, &edge{name: provider + "edge02"}
)

func TestEdges(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(60 * time.Second)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	RunSpecs(t, "Edges")
}

var _ = BeforeSuite(func(ctx context.Context) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	Expect(err).NotTo(HaveOccurred())
	bin, dir := GinkgoT().TempDir(), GinkgoT().TempDir()
	Expect(installation.Build(ctx, root, bin)).To(Succeed())

	By("starting three control planes")
	group, starting := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		hub, err = controlplane.Start(starting, controlplane.Options{Name: "hub", Log: GinkgoWriter})
		return err
	})
	for kubecontext, e := range map[string]*edge{"edge01": edge01, "edge02": edge02} {
		group.Go(func() (err error) {
			e.cp, err = controlplane.Start(starting, controlplane.Options{Name: kubecontext, Controllers: true, Log: GinkgoWriter})
			return err
		})
	}
	err = group.Wait()
	for _, cp := range []*controlplane.ControlPlane{hub, edge01.cp, edge02.cp} {
		if cp != nil {
			DeferCleanup(cp.Stop)
		}
	}
	Expect(err).NotTo(HaveOccurred())

	By("starting HealthScope in all of them")
	hs, err = installation.Start(ctx, hub, installation.Options{Root: root, Bin: bin, Dir: dir, Log: GinkgoWriter, Regions: installation.Regions(edge01.name, edge02.name), Configuration: "policy:\n  notPresentGraceSeconds: 1\n"})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(hs.Stop)
	DeferCleanup(func(ctx context.Context) {
		violations, err := hs.Violations(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(violations).To(BeEmpty(), "what A&AI found fault with in the whole suite")
	})
	for kubecontext, e := range map[string]*edge{"edge01": edge01, "edge02": edge02} {
		e.member, err = hs.Join(ctx, e.cp, e.name, kubecontext)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() error { return e.member.Stop() })
	}
	k8s = newClient(hub)
	edge01.client, edge02.client = newClient(edge01.cp), newClient(edge02.cp)
}, NodeTimeout(10*time.Minute))

var _ = ReportAfterEach(func(r SpecReport) {
	if r.Failed() && hs != nil {
		_, _ = GinkgoWriter.Write([]byte(hs.LogTails()))
	}
})

// newClient returns a client for a control plane, as administrator.
func newClient(cp *controlplane.ControlPlane) client.WithWatch {
	GinkgoHelper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, corev1alpha2.AddToScheme, k8spluginv1alpha1.AddToScheme} {
		Expect(add(scheme)).To(Succeed())
	}
	c, err := client.NewWithWatch(cp.Config(), client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	return c
}
