package commands_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/healthscope/healthscope/controllers/commands"
	"github.com/healthscope/healthscope/controllers/enrol"
	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/e2e/suite"
)

// program makes the test binary the healthscope program if it is the first argument.
const program = "healthscope"

// crds is the folder of the CRDs, relative to this one.
const crds = "../../config/crd"

const (
	// grace is how long a process may take to stop.
	grace = 30 * time.Second
)

var (
	// plane is an API server without controllers.
	plane *controlplane.ControlPlane
	// api is the administrator's client, without a cache.
	api client.Client
)

// TestMain lets the test binary run as the program under test, with the exit codes and signals of a process.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == program {
		os.Exit(commands.Main(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func TestSuite(t *testing.T) {
	suite.Run(t, "Commands")
}

// execute runs the program in a directory as a separate process, and returns its exit code and its output. name is the name of the program.
func execute(ctx context.Context, dir, name string, args ...string) (code int, out, errOut string) {
	GinkgoHelper()
	self, err := os.Executable()
	Expect(err).NotTo(HaveOccurred())
	var stdout, stderr bytes.Buffer
	c := exec.CommandContext(ctx, self)
	c.Args = append([]string{name, program}, args...)
	c.Stdout, c.Stderr, c.Dir = &stdout, &stderr, dir
	if err := c.Run(); err != nil {
		Expect(err).To(BeAssignableToTypeOf(&exec.ExitError{}))
	}
	return c.ProcessState.ExitCode(), stdout.String(), stderr.String()
}

// createMonitorLease creates the Lease of a monitor, which must be renewed only after an hour.
func createMonitorLease(ctx context.Context, namespace string) {
	GinkgoHelper()
	Expect(api.Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "healthscope-monitor"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: new("m"), LeaseDurationSeconds: new(int32(3600)), RenewTime: new(metav1.NowMicro())},
	})).To(Succeed())
}

var _ = BeforeSuite(func(ctx SpecContext) {
	SetDefaultEventuallyTimeout(suite.Timeout)
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	plane, api = suite.Start(ctx, controlplane.Options{Name: "commands"}, crds)
	// A controller waits for a while for the monitor of a cluster that is new to it. This is its Lease.
	Expect(api.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: enrol.MemberNamespace}})).To(Succeed())
	createMonitorLease(ctx, enrol.MemberNamespace)
}, NodeTimeout(5*time.Minute))
