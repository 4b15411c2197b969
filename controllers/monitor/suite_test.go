package monitor_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/controllers/monitor"
	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/e2e/suite"
)

// bundleCRD is the path of the CRD of bundles, relative to this folder.
const bundleCRD = "../../config/crd/k8splugin.io_resourcebundlestates.yaml"

var (
	// plane is an API server without controllers: the specs write pods and their status themselves.
	plane *controlplane.ControlPlane
	// api is the administrator's client, without a cache.
	api client.Client
)

func TestSuite(t *testing.T) {
	suite.Run(t, "Monitor")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	suite.Defaults()
	plane, api = suite.Start(ctx, controlplane.Options{Name: "monitor"}, bundleCRD)
}, NodeTimeout(5*time.Minute))

// newNamespace creates a namespace for a spec.
func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	return suite.NewNamespace(ctx, api, &k8spluginv1alpha1.ResourceBundleState{})
}

// newManager returns a manager with a monitor, and the monitor's requests to the API server.
func newManager(config *rest.Config, logger logr.Logger, opts monitor.Options) (ctrl.Manager, *requests) {
	GinkgoHelper()
	seen := &requests{}
	if opts.Registerer == nil {
		opts.Registerer = prometheus.NewRegistry()
	}
	if opts.LeaseDuration == 0 {
		opts.LeaseDuration = 2 * time.Minute // A process that pauses for a while keeps its Lease.
	}
	config.Wrap(seen.wrap)
	options, err := monitor.ManagerOptions(opts)
	Expect(err).NotTo(HaveOccurred())
	options.Logger, options.RetryPeriod = logger, new(time.Second)
	options.Metrics.BindAddress = "0"
	options.Controller.SkipNameValidation = new(true) // One process has many monitors.
	mgr, err := ctrl.NewManager(config, options)
	Expect(err).NotTo(HaveOccurred())
	Expect(monitor.Setup(mgr, opts)).To(Succeed())
	return mgr, seen
}

// running is a monitor in progress.
type running struct {
	*requests

	stop func()
}

// start runs a monitor as administrator until it is stopped or the spec ends.
func start(ctx context.Context, opts monitor.Options) *running {
	GinkgoHelper()
	return startAs(ctx, plane.Config(), GinkgoLogr, opts)
}

// startAs runs a monitor with its own configuration, and returns when it leads.
func startAs(ctx context.Context, config *rest.Config, logger logr.Logger, opts monitor.Options) *running {
	GinkgoHelper()
	config.QPS = -1
	mgr, seen := newManager(config, logger, opts)
	run, cancel := context.WithCancel(context.WithoutCancel(ctx)) // It outlives the step that starts it.
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(run) }()
	r := &running{requests: seen, stop: sync.OnceFunc(func() {
		cancel()
		var err error
		Eventually(ended).Should(Receive(&err), "the monitor ends")
		Expect(err).NotTo(HaveOccurred())
	})}
	DeferCleanup(r.stop)
	Eventually(ctx, mgr.Elected()).Should(BeClosed(), "the monitor gets its Lease")
	return r
}

// requests records the requests of a monitor to the API server.
type requests struct {
	mu   sync.Mutex
	made []string
	// accepted are the Accept headers of the requests, by path.
	accepted map[string][]string
}

// accepts returns the Accept headers of the requests for a path.
func (r *requests) accepts(path string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.accepted[path])
}

// wrap records each request as "METHOD path?query", except those for the Lease and for events.
func (r *requests) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if path := request.URL.Path; !strings.Contains(path, "/leases") && !strings.Contains(path, "/events") {
			r.mu.Lock()
			if r.accepted == nil {
				r.accepted = map[string][]string{}
			}
			r.accepted[path] = append(r.accepted[path], request.Header.Get("Accept"))
			r.made = append(r.made, fmt.Sprintf("%s %s", request.Method, request.URL.RequestURI()))
			r.mu.Unlock()
		}
		return next.RoundTrip(request)
	})
}

// all returns the requests so far.
func (r *requests) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.made...)
}

// writes returns the writes so far.
func (r *requests) writes() []string {
	var writes []string
	for _, request := range r.all() {
		if !strings.HasPrefix(request, http.MethodGet+" ") {
			writes = append(writes, request)
		}
	}
	return writes
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
