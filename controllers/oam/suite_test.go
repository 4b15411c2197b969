package oam_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/healthscope/healthscope/controllers/oam"
	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/e2e/suite"
)

var (
	// plane is an API server without controllers.
	plane *controlplane.ControlPlane
	// api is the administrator's client, without a cache.
	api client.Client
)

func TestSuite(t *testing.T) {
	suite.Run(t, "OAM")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	suite.Defaults()
	plane, api = suite.Start(ctx, controlplane.Options{Name: "oam"}, "../../config/crd", "../../config/integrations/oam/applicationconfigurations.yaml", "testdata/workloads.yaml")
}, NodeTimeout(5*time.Minute))

// writes counts the write requests of a controller, including those for events.
type writes struct {
	next http.RoundTripper

	mu sync.Mutex
	n  int
}

// RoundTrip implements http.RoundTripper.
func (w *writes) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet {
		w.mu.Lock()
		w.n++
		w.mu.Unlock()
	}
	return w.next.RoundTrip(request)
}

func (w *writes) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.n
}

// run runs the controller until the spec ends, and returns its writes.
func run(o oam.Options) *writes {
	GinkgoHelper()
	w := &writes{}
	config := rest.CopyConfig(plane.Config())
	config.QPS = -1
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		w.next = next
		return w
	})
	mgr, err := ctrl.NewManager(config, suite.ManagerOptions())
	Expect(err).NotTo(HaveOccurred())
	Expect(oam.CheckReadable(context.Background(), mgr.GetAPIReader(), oam.ApplicationConfigurationKind)).To(Succeed())
	ctx, cancel := suite.Lasting()
	Expect(oam.Setup(ctx, mgr, o)).To(Succeed())
	done := make(chan struct{})
	go func() {
		defer GinkgoRecover()
		defer close(done)
		Expect(mgr.Start(ctx)).To(Succeed())
	}()
	DeferCleanup(func() {
		cancel()
		<-done
	})
	return w
}
