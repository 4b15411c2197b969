package charted

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/e2e/chart"
	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/e2e/installation"
	"github.com/healthscope/healthscope/e2e/suite"
)

// root is the root of the source tree, plane is the suite's cluster, k8s is its client, and hs is the release in it.
var (
	root  string
	plane *controlplane.ControlPlane
	k8s   client.Client
	hs    *installation.Installation
	// before holds the objects that were in the cluster before the first installation.
	before map[string]bool
)

// withMonitors are the values of the example with A&AI on the chart's page, with ServiceMonitors and therefore an account for Prometheus.
var withMonitors string

// example matches the values in the example, except the URL: the suite uses the URL of its own A&AI.
var example = regexp.MustCompile(`(?s)\$ cat values\.yaml\n(.*\n)    url: https://aai\.onap:8443\n(.*?)\$ helm upgrade`)

func TestCharted(t *testing.T) {
	suite.Defaults()
	SetDefaultEventuallyTimeout(90 * time.Second)
	SetDefaultConsistentlyDuration(2 * time.Second)
	SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	suite.Run(t, "Charted")
}

var _ = BeforeSuite(func(ctx context.Context) {
	var err error
	root, err = filepath.Abs(filepath.Join("..", ".."))
	Expect(err).NotTo(HaveOccurred())
	page, err := os.ReadFile(filepath.Join(root, "charts", "healthscope", "README.md"))
	Expect(err).NotTo(HaveOccurred())
	values := example.FindSubmatch(page)
	Expect(values).NotTo(BeEmpty(), "the chart's page has no example with A&AI")
	withMonitors = string(slices.Concat(values[1], values[2])) + "serviceMonitor: {enabled: true}\n"
	dir := GinkgoT().TempDir()
	var bin string
	var helm *chart.Helm
	group, building := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		helm, err = chart.New(building, root, filepath.Join(dir, "helm"))
		return err
	})
	group.Go(func() (err error) {
		bin, err = installation.Build(building, root)
		return err
	})
	Expect(group.Wait()).To(Succeed())

	plane, k8s = suite.Start(ctx, controlplane.Options{Name: "charted", Controllers: true},
		filepath.Join(root, "e2e", "chart", "testdata", "foreign.yaml"))
	before = objects(ctx)
	hs, err = installation.Start(ctx, plane, installation.Options{Root: root, Bin: bin, Dir: dir, Log: GinkgoWriter, Helm: helm, Values: []string{withMonitors}})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return hs.Stop() })
	applySample(ctx)
	isHealthy(ctx)
}, NodeTimeout(10*time.Minute))

var _ = ReportAfterEach(func(r SpecReport) {
	if r.Failed() && hs != nil {
		_, _ = GinkgoWriter.Write([]byte(hs.LogTails()))
	}
})

// kubectl runs kubectl as an administrator, and returns its output.
func kubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	out, err := plane.KubectlCommand(ctx, args...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "kubectl %q: %s", args, out)
	return string(out)
}

// applySample applies the application of the samples: three bundles with three resources each, and a scope over them.
func applySample(ctx context.Context) {
	GinkgoHelper()
	kubectl(ctx, "apply", "-f", filepath.Join(root, "config", "samples", "vfw"))
}

// sample reads the scope of the application.
func sample(ctx context.Context) (*corev1alpha2.HealthScope, error) {
	scope := &corev1alpha2.HealthScope{}
	return scope, k8s.Get(ctx, client.ObjectKey{Namespace: "default", Name: "vfw"}, scope)
}

// says returns the health, the ready resources and the first culprit of the application's scope in one line.
func says(ctx context.Context) (string, error) {
	scope, err := sample(ctx)
	line := string(scope.Status.Health) + " " + scope.Status.ResourcesReady
	if len(scope.Status.Culprits) > 0 {
		line += " " + scope.Status.Culprits[0].Kind + " " + scope.Status.Culprits[0].Reason
	}
	return line, err
}

// isHealthy waits until the application is healthy in its scope and in A&AI.
func isHealthy(ctx context.Context) {
	GinkgoHelper()
	Eventually(ctx, says).Should(Equal("healthy 9/9"))
	Eventually(ctx, inventory).Should(Equal("Ready"))
}

// inventory returns the state of the sink's Deployment in A&AI.
func inventory(ctx context.Context) (string, error) {
	all, err := hs.Objects(ctx)
	for _, o := range all {
		if o.String() == "Deployment/fw0-sink" {
			return o.Label("healthscope.core.oam.dev/status"), err
		}
	}
	return "", err
}

// logged returns how often the log of a program contains a text.
func logged(program, text string) int {
	GinkgoHelper()
	data, err := os.ReadFile(hs.LogPath(program))
	Expect(err).NotTo(HaveOccurred())
	return strings.Count(string(data), text)
}
