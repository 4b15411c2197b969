package enrol_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/enrol"
	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/e2e/suite"
)

// bundleCRD is the path of the CRD of bundles, relative to this folder.
const bundleCRD = "../../config/crd/k8splugin.io_resourcebundlestates.yaml"

var (
	// hubPlane is the hub, and memberPlane the member. The member has controllers: they aggregate roles and delete namespaces.
	hubPlane, memberPlane *controlplane.ControlPlane
	// hub and member are the administrators' clients, without a cache.
	hub, member client.Client
)

func TestSuite(t *testing.T) {
	suite.Run(t, "Enrol")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	SetDefaultEventuallyTimeout(suite.Timeout)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	ctrl.SetLogger(GinkgoLogr)
	klog.SetLogger(logr.Discard())
	hubPlane, hub = suite.Start(ctx, controlplane.Options{Name: "hub"})
	memberPlane, member = suite.Start(ctx, controlplane.Options{Name: "member", Controllers: true, Nodes: 1}, bundleCRD)
	Expect(hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: corev1alpha2.DefaultClustersNamespace}})).To(Succeed())
}, NodeTimeout(8*time.Minute))

// clusters returns both clusters, and a function that returns the reported lines.
func clusters() (enrol.Clusters, func() []string) {
	var lines []string
	c := enrol.Clusters{Hub: hub, Member: member, MemberConfig: memberPlane.Config(), Report: func(change enrol.Change) { lines = append(lines, string(change)) }}
	return c, func() []string { return lines }
}

// enrolment returns the enrolment of the member.
func enrolment(namespaces ...string) enrol.Enrolment {
	config := memberPlane.Config()
	return enrol.Enrolment{Name: "provider+edge01", Server: config.Host, Authority: config.CAData, Namespaces: namespaces, SecretNamespace: corev1alpha2.DefaultClustersNamespace}
}

// add enrols the member, and returns the reported lines.
func add(ctx context.Context, e enrol.Enrolment, now time.Time) []string {
	GinkgoHelper()
	c, lines := clusters()
	Expect(enrol.Add(ctx, c, e, now)).To(Succeed())
	return lines()
}

// removal returns the removal of the member.
func removal() enrol.Removal {
	return enrol.Removal{Cluster: "provider+edge01", SecretNamespace: corev1alpha2.DefaultClustersNamespace}
}

// removeAll removes the member, and all objects that a spec has left.
func removeAll(ctx context.Context) {
	GinkgoHelper()
	Expect(hub.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace(corev1alpha2.DefaultClustersNamespace))).To(Succeed())
	c, _ := clusters()
	r := removal()
	r.Force = true
	Expect(enrol.Remove(ctx, c, r)).To(Succeed())
	Expect(client.IgnoreNotFound(member.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: enrol.MemberNamespace}}))).To(Succeed())
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
	c, err := client.New(config, client.Options{Scheme: suite.Scheme()})
	Expect(err).NotTo(HaveOccurred())
	return c
}
