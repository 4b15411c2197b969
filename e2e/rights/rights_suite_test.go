package rights

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/e2e/chart"
	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/e2e/installation"
	"github.com/healthscope/healthscope/e2e/suite"
)

// root is the root of the source tree, home the namespace of HealthScope, monitor and controller its ServiceAccounts, and
// hubAccount the ServiceAccount of a hub in its members.
const root = "../.."

const (
	home       = "healthscope-system"
	monitor    = "healthscope-monitor"
	controller = "healthscope-controller"
	hubAccount = "healthscope-hub"
)

var (
	cp  *controlplane.ControlPlane
	k8s client.Client
	// helm has installed the chart.
	helm *chart.Helm
	// streaming is the directory of the programs. The same programs in the directory listing behave as with an API server that
	// cannot stream a list as a watch.
	streaming, listing string
)

func TestRights(t *testing.T) {
	SetDefaultEventuallyTimeout(60 * time.Second)
	SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	suite.Run(t, "Rights")
}

var _ = BeforeSuite(func(ctx context.Context) {
	absolute, err := filepath.Abs(root)
	Expect(err).NotTo(HaveOccurred())
	streaming, err = installation.Build(ctx, absolute)
	Expect(err).NotTo(HaveOccurred())
	listing = GinkgoT().TempDir()
	for _, program := range []string{"healthscope", "aai-simulator"} {
		// Before Kubernetes 1.34 and wherever WatchList is turned off, client-go falls back to lists. This variable makes it do so.
		script := fmt.Sprintf("#!/bin/sh\nKUBE_FEATURE_WatchListClient=false exec %s \"$@\"\n", filepath.Join(streaming, program))
		Expect(os.WriteFile(filepath.Join(listing, program), []byte(script), 0o700)).To(Succeed())
	}

	cp, err = controlplane.Start(ctx, controlplane.Options{Name: "rights", Controllers: true, AuditPolicy: AuditPolicy(home), Log: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(cp.Stop)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, corev1alpha2.AddToScheme, k8spluginv1alpha1.AddToScheme} {
		Expect(add(scheme)).To(Succeed())
	}
	k8s, err = client.New(cp.Config(), client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())

	// The chart is installed as a user does it. A test of the chart checks that the kustomizations in config create the same
	// objects.
	helm, err = chart.New(ctx, root, filepath.Join(GinkgoT().TempDir(), "helm"))
	Expect(err).NotTo(HaveOccurred())
	_, err = helm.Run(ctx, cp.KubeconfigPath(), nil, "install", chart.Release, helm.Chart(), "--namespace", home, "--create-namespace")
	Expect(err).NotTo(HaveOccurred())
}, NodeTimeout(10*time.Minute))

// kubectl runs kubectl as an administrator.
func kubectl(ctx context.Context, args ...string) {
	GinkgoHelper()
	out, err := cp.KubectlCommand(ctx, args...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "kubectl %q: %s", args, out)
}

// start starts HealthScope with the programs of a directory and a configuration. HealthScope is stopped at the end of the spec,
// at the latest.
func start(ctx context.Context, programs, configuration string) *installation.Installation {
	GinkgoHelper()
	return startWith(ctx, installation.Options{Bin: programs, Configuration: configuration})
}

// startRelease does the same for the Deployments of the chart.
func startRelease(ctx context.Context, programs string) *installation.Installation {
	GinkgoHelper()
	return startWith(ctx, installation.Options{Bin: programs, Helm: helm})
}

func startWith(ctx context.Context, options installation.Options) *installation.Installation {
	GinkgoHelper()
	absolute, err := filepath.Abs(root)
	Expect(err).NotTo(HaveOccurred())
	options.Root, options.Dir, options.Log = absolute, GinkgoT().TempDir(), GinkgoWriter
	hs, err := installation.Start(ctx, cp, options)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		if CurrentSpecReport().Failed() {
			_, _ = GinkgoWriter.Write([]byte(hs.LogTails()))
		}
		Expect(hs.Stop()).To(Succeed())
	})
	return hs
}

// audit returns the requests of the accounts since a time.
func audit(since time.Time) Log {
	GinkgoHelper()
	log, err := ReadAudit(cp.AuditLogPath(), since)
	Expect(err).NotTo(HaveOccurred())
	return log
}

// granted returns the rights of accounts. Without accounts, it returns those of monitor and controller.
func granted(ctx context.Context, accounts ...string) []Grant {
	GinkgoHelper()
	var (
		clusterRoles        rbacv1.ClusterRoleList
		roles               rbacv1.RoleList
		clusterRoleBindings rbacv1.ClusterRoleBindingList
		roleBindings        rbacv1.RoleBindingList
	)
	for _, list := range []client.ObjectList{&clusterRoles, &roles, &clusterRoleBindings, &roleBindings} {
		Expect(k8s.List(ctx, list)).To(Succeed())
	}
	policy := Policy{ClusterRoles: clusterRoles.Items, Roles: roles.Items, ClusterRoleBindings: clusterRoleBindings.Items, RoleBindings: roleBindings.Items}
	var all []Grant
	if len(accounts) == 0 {
		accounts = []string{monitor, controller}
	}
	for _, name := range accounts {
		all = append(all, policy.Grants(types.NamespacedName{Namespace: home, Name: name})...)
	}
	return all
}

// of returns the grants of roles.
func of(grants []Grant, roles ...string) []Grant {
	var found []Grant
	for _, g := range grants {
		for _, role := range roles {
			if g.Role == role {
				found = append(found, g)
			}
		}
	}
	return found
}
