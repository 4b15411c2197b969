package e2e

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/healthscope/healthscope/e2e/chart"
	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/e2e/installation"
	"github.com/healthscope/healthscope/e2e/story"
	"github.com/healthscope/healthscope/e2e/suite"
)

// hs and cp are the suite's environment: hs is HealthScope in the hub, and cp is the hub's control plane. Both edges have joined.
var (
	hs   *installation.Environment
	cp   *controlplane.ControlPlane
	root string
	// k8s, edge01 and edge02 are clients of the hub and the edges, as administrator.
	k8s            client.WithWatch
	edge01, edge02 *edge
)

// edge is an edge of the environment.
type edge struct {
	*installation.Edge
	client client.WithWatch
}

// suiteConfiguration shortens the grace period that these tests wait for. Tests that can set the clock cover the default.
const suiteConfiguration = "policy:\n  notPresentGraceSeconds: 1\n"

func TestEndToEnd(t *testing.T) {
	suite.Defaults()
	SetDefaultEventuallyTimeout(60 * time.Second)
	SetDefaultConsistentlyDuration(2 * time.Second)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	suite.Run(t, "End to end")
}

var _ = BeforeSuite(func(ctx context.Context) {
	var err error
	root, err = filepath.Abs("..")
	Expect(err).NotTo(HaveOccurred())
	dir := GinkgoT().TempDir()
	options := installation.Options{Root: root, Dir: dir, Log: GinkgoWriter, Configuration: suiteConfiguration}
	group, building := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		options.Bin, err = installation.Build(building, root)
		return err
	})
	group.Go(func() (err error) {
		options.Helm, err = chart.New(building, root, filepath.Join(dir, "helm"))
		return err
	})
	Expect(group.Wait()).To(Succeed())

	hs, err = installation.StartEnvironment(ctx, options, "")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return hs.Stop() })
	DeferCleanup(func(ctx context.Context) {
		violations, err := hs.Violations(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(violations).To(BeEmpty(), "what A&AI found fault with in the whole suite")
	})
	cp = hs.Hub
	k8s = newClient(cp)
	edge01, edge02 = &edge{hs.Edges[0], newClient(hs.Edges[0].Plane)}, &edge{hs.Edges[1], newClient(hs.Edges[1].Plane)}
	for _, e := range hs.Edges {
		Expect(hs.Join(ctx, e)).To(Succeed())
	}
}, NodeTimeout(10*time.Minute))

var _ = It("The story of the demo is true", Serial, func(ctx context.Context) {
	Expect(story.New(hs, root, GinkgoWriter).Tell(ctx)).To(Succeed())
}, SpecTimeout(5*time.Minute))

var _ = ReportAfterEach(func(r SpecReport) {
	if r.Failed() && hs != nil {
		_, _ = GinkgoWriter.Write([]byte(hs.LogTails()))
	}
})

// newClient returns an administrator's client for a control plane.
func newClient(plane *controlplane.ControlPlane) client.WithWatch {
	GinkgoHelper()
	c, err := client.NewWithWatch(plane.Config(), client.Options{Scheme: suite.Scheme()})
	Expect(err).NotTo(HaveOccurred())
	return c
}
