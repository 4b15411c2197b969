package observed

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"

	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/e2e/installation"
	"github.com/healthscope/healthscope/e2e/suite"
)

// edgeName is the name of the edge in the hub.
const edgeName = "vfw-cluster-provider+edge01"

// unreadable is a kind that the monitor is configured to watch and has no right to read.
const unreadable = "monitor:\n  kinds:\n  - {apiVersion: storage.k8s.io/v1, kind: CSIStorageCapacity}\n"

// The suite's clusters, a hub and an edge with the application of the demo; an etcd for AppContexts; and Prometheus.
var (
	root       string
	hub, edge  *controlplane.ControlPlane
	member     *installation.Member
	hs         *installation.Installation
	etcd       *controlplane.Etcd
	prometheus *Prometheus
)

func TestObserved(t *testing.T) {
	suite.Extended(t)
	Program(t, "prometheus")
	SetDefaultEventuallyTimeout(90 * time.Second)
	SetDefaultEventuallyPollingInterval(200 * time.Millisecond)
	suite.Run(t, "Observed")
}

// reader is Prometheus's ServiceAccount, with the one right that it needs.
const reader = `{apiVersion: v1, kind: ServiceAccount, metadata: {name: prometheus, namespace: default}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: prometheus}, rules: [{nonResourceURLs: [/metrics], verbs: [get]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: prometheus}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: prometheus}, subjects: [{kind: ServiceAccount, name: prometheus, namespace: default}]}
`

// targets returns the targets of Prometheus. It writes the token of Prometheus's ServiceAccount to a file.
func targets(ctx context.Context, file string) []Target {
	GinkgoHelper()
	apply(ctx, hub, reader)
	token, err := hub.KubectlCommand(ctx, "create", "token", "-n", "default", "prometheus").Output()
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(file, token, 0o600)).To(Succeed())
	scrape := map[string]any{"authorization": map[string]string{"credentials_file": file}}
	return []Target{{"healthscope-controller", hs.GuardedMetrics, scrape}, {"healthscope-monitor", hs.GuardedMonitorMetrics, scrape}}
}

// base returns the settings that the suite adds to the configuration of controller and monitor.
func base() string {
	return "policy:\n  notPresentGraceSeconds: 1\n" + unreadable + "appContext:\n  endpoints: [" + etcd.Endpoint() + "]\nrecorder: {}\n"
}

var _ = BeforeSuite(func(ctx context.Context) {
	program, err := Find("prometheus")
	Expect(err).NotTo(HaveOccurred())
	root, err = filepath.Abs(filepath.Join("..", ".."))
	Expect(err).NotTo(HaveOccurred())
	dir := GinkgoT().TempDir()
	var bin string

	By("building the programs, and starting two control planes and an etcd")
	group, starting := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		bin, err = installation.Build(starting, root)
		return err
	})
	group.Go(func() (err error) {
		hub, err = controlplane.Start(starting, controlplane.Options{Name: "hub", Log: GinkgoWriter})
		return err
	})
	group.Go(func() (err error) {
		edge, err = controlplane.Start(starting, controlplane.Options{Name: "edge01", Controllers: true, Log: GinkgoWriter})
		return err
	})
	group.Go(func() (err error) {
		etcd, err = controlplane.StartEtcd(starting, controlplane.EtcdOptions{Log: GinkgoWriter})
		return err
	})
	err = group.Wait()
	DeferCleanup(stopPlanes)
	Expect(err).NotTo(HaveOccurred())

	By("starting HealthScope in both, and Prometheus")
	hs, err = installation.Start(ctx, hub, installation.Options{
		Root: root, Bin: bin, Dir: dir, Log: GinkgoWriter,
		Configuration: base(), Regions: installation.Regions(edgeName), Inventory: "  operationalStatus: true\n",
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(hs.Stop)
	member, err = hs.Join(ctx, edge, edgeName, "edge01")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return member.Stop() })
	rules, err := Hasten(shipped())
	Expect(err).NotTo(HaveOccurred())
	prometheus, err = Start(ctx, program, GinkgoT().TempDir(), rules, targets(ctx, filepath.Join(dir, "prometheus-token"))...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return prometheus.Stop() })
}, NodeTimeout(10*time.Minute))

func stopPlanes() {
	for _, cp := range []*controlplane.ControlPlane{hub, edge} {
		if cp != nil {
			Expect(cp.Stop()).To(Succeed())
		}
	}
	if etcd != nil {
		Expect(etcd.Stop()).To(Succeed())
	}
}

var _ = ReportAfterEach(func(r SpecReport) {
	if r.Failed() && prometheus != nil {
		_, _ = GinkgoWriter.Write([]byte(hs.LogTails() + "\nThe end of the log of Prometheus:\n" + prometheus.Log()))
	}
})

// shipped reads the rules that HealthScope comes with.
func shipped() Rules {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(root, "config", "prometheus", "rules.yaml"))
	Expect(err).NotTo(HaveOccurred())
	rules, err := ReadRules(text)
	Expect(err).NotTo(HaveOccurred())
	return rules
}

// kubectl runs kubectl in a cluster; stdin may be empty.
func kubectl(ctx context.Context, cp *controlplane.ControlPlane, stdin string, args ...string) {
	GinkgoHelper()
	cmd := cp.KubectlCommand(ctx, args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "kubectl %q: %s", args, out)
}

// apply creates or changes objects in a cluster.
func apply(ctx context.Context, cp *controlplane.ControlPlane, manifest string) {
	GinkgoHelper()
	kubectl(ctx, cp, manifest, "apply", "-f", "-")
}
