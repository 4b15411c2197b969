package scope_test

import (
	"io"
	"maps"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/controllers/oam"
	probes "github.com/healthscope/healthscope/controllers/probe"
	"github.com/healthscope/healthscope/controllers/pruning"
	"github.com/healthscope/healthscope/controllers/scope"
	"github.com/healthscope/healthscope/e2e/suite"
	"github.com/healthscope/healthscope/healthscope"
)

// settings are the settings of a controller under test.
type settings struct {
	policy healthscope.Policy
	// alive makes the controller check whether it sees its own cluster.
	alive bool
	// elected enables leader election.
	elected bool
	// held is a resource whose requests wait from the start until they are released.
	held string
	// config is the controller's configuration for requests to the API server.
	config *rest.Config
	// guard detects that the status is pruned.
	guard *pruning.Guard
	// probes enables probes.
	probes bool
	// applicationHealth makes the controller write the health of Applications into them.
	applicationHealth bool
	// clock is the clock of the controller, and fleetClock that of its view of clusters; nil means the system clock.
	clock      clock.PassiveClock
	fleetClock clock.WithTickerAndDelayedExecution
}

// stopClock stops the controller's clock, for specs that count writes and events. On a busy machine a grace period could end
// before the event for which it waits, and each end may cause a write.
func stopClock(s *settings) { s.clock = clocktesting.NewFakePassiveClock(time.Now()) }

// shortenIntervals makes time pass ten times as fast for the controller: ten seconds of its time take one second.
func shortenIntervals(s *settings) {
	fast := suite.NewFastClock(10)
	s.clock, s.fleetClock = fast, fast
}

// controller is a controller under test.
type controller struct {
	*requestRecorder

	registry *scope.Registry
	metrics  *prometheus.Registry
	mgr      ctrl.Manager
	view     *fleet.View
	release  func()
	stop     func()
}

// start runs a controller, as its ServiceAccount, until it is stopped or the spec ends.
func start(change ...func(*settings)) *controller {
	GinkgoHelper()
	s := settings{policy: healthscope.DefaultPolicy(), config: accountConfig()}
	for _, f := range change {
		f(&s)
	}
	c := &controller{requestRecorder: newRequestRecorder(), registry: scope.NewRegistry(), metrics: prometheus.NewRegistry()}
	s.config.Wrap(c.Wrap)
	c.metrics.MustRegister(scope.NewCollector(c.registry))
	c.mgr = newManager(s)
	objects := fleet.NewObjects([]string{"app.oam.dev/component"}, nil)
	objects.FindInterval = 100 * time.Millisecond
	options := fleet.Options{ClusterName: "local", Policy: s.policy, History: scope.ReadHistory(c.mgr.GetClient()), Objects: objects, Clock: s.fleetClock}
	if s.alive {
		options.Liveness = &fleet.Liveness{MonitorNamespace: home, Timeout: 10 * time.Second}
	}
	view, err := fleet.Setup(c.mgr, options)
	Expect(err).NotTo(HaveOccurred())
	c.view = view
	ctx, cancel := suite.Lasting()
	o := scope.Options{View: view, Objects: objects, Registry: c.registry, Policy: s.policy, Guard: s.guard, Clock: s.clock}
	if s.probes {
		prober, err := probes.Setup(c.mgr, probes.Options{Clusters: view})
		Expect(err).NotTo(HaveOccurred())
		c.metrics.MustRegister(prober)
		o.Probes = prober
	}
	Expect(scope.Setup(c.mgr, o)).To(Succeed())
	if s.applicationHealth {
		Expect(oam.SetupApplications(ctx, c.mgr, oam.ApplicationOptions{Metrics: c.metrics})).To(Succeed())
	}
	c.release = c.Hold(s.held)
	DeferCleanup(c.release)
	ended := make(chan error, 1)
	go func() { ended <- c.mgr.Start(ctx) }()
	c.stop = sync.OnceFunc(func() {
		cancel()
		var err error
		Eventually(ended).Should(Receive(&err), "the controller ends")
		Expect(err).NotTo(HaveOccurred())
	})
	DeferCleanup(c.stop)
	return c
}

func newManager(s settings) ctrl.Manager {
	GinkgoHelper()
	options := suite.ManagerOptions()
	options.Cache.DefaultTransform = scope.TransformManagedFields
	if s.applicationHealth {
		options.Cache.ByObject = map[client.Object]cache.ByObject{oam.NewApplication(): {Transform: oam.TransformApplication}}
	}
	options.LeaderElection, options.LeaderElectionReleaseOnCancel = s.elected, true
	options.LeaderElectionID, options.LeaderElectionNamespace = account, home
	options.LeaseDuration, options.RenewDeadline = new(3*time.Minute), new(2*time.Minute) // A leader that pauses on a busy machine stays the leader.
	mgr, err := ctrl.NewManager(s.config, options)
	Expect(err).NotTo(HaveOccurred())
	return mgr
}

// sample is the value of a gauge or counter.
type sample struct {
	name   string
	labels map[string]string
	value  float64
}

// samples returns all gauges and counters of the controller.
func (c *controller) samples() (all []sample) {
	GinkgoHelper()
	families, err := c.metrics.Gather()
	Expect(err).NotTo(HaveOccurred())
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			s := sample{family.GetName(), map[string]string{}, metric.GetGauge().GetValue() + metric.GetCounter().GetValue()}
			for _, pair := range metric.GetLabel() {
				s.labels[pair.GetName()] = pair.GetValue()
			}
			all = append(all, s)
		}
	}
	return all
}

// series returns the values of the series of a scope, by "<metric> <app> <state or health>".
func (c *controller) series(namespace, name string) map[string]float64 {
	GinkgoHelper()
	all := map[string]float64{}
	for _, s := range c.samples() {
		if s.labels["namespace"] == namespace && s.labels["scope"] == name {
			short := strings.TrimPrefix(s.name, "healthscope_scope_")
			all[strings.Join(strings.Fields(short+" "+s.labels["app"]+" "+s.labels["state"]+" "+s.labels["health"]), " ")] = s.value
		}
	}
	return all
}

// counter returns the value of a counter for a value of its only label.
func (c *controller) counter(name, label string) float64 {
	GinkgoHelper()
	for _, s := range c.samples() {
		if s.name == name && slices.Contains(slices.Collect(maps.Values(s.labels)), label) {
			return s.value
		}
	}
	return 0
}

// requestRecorder records all requests of a controller.
type requestRecorder struct {
	suite.Tap

	mu sync.Mutex
	// writes are the statuses that were written, by namespace/name.
	writes map[string][]string
	used   map[string]struct{}
}

func newRequestRecorder() *requestRecorder {
	w := &requestRecorder{writes: map[string][]string{}, used: map[string]struct{}{}}
	w.Note = w.note
	return w
}

// statusPath matches the path of the status of a scope.
var statusPath = regexp.MustCompile(`^/apis/core\.oam\.dev/v1alpha2/namespaces/([^/]+)/healthscopes/([^/]+)/status$`)

func (w *requestRecorder) note(request *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if right := rightOf(request); right != "" {
		w.used[right] = struct{}{}
	}
	if m := statusPath.FindStringSubmatch(request.URL.Path); m != nil {
		w.writes[m[1]+"/"+m[2]] = append(w.writes[m[1]+"/"+m[2]], bodyOf(request))
	}
}

// bodyOf returns the body of a request that is about to be sent.
func bodyOf(request *http.Request) string {
	if request.GetBody == nil {
		return ""
	}
	body, err := request.GetBody()
	if err != nil {
		return err.Error()
	}
	data, err := io.ReadAll(body)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// apiPath matches the path of a request for objects: group, resource, name and subresource.
var apiPath = regexp.MustCompile(`^/(?:api|apis/([^/]+))/[^/]+/(?:namespaces/[^/]+/)?([^/]+)(?:/([^/]+))?(?:/([^/]+))?$`)

// rightOf returns the right that a request needs, as "verb group/resource"; empty for requests without a resource, which need no
// right.
func rightOf(request *http.Request) string {
	m := apiPath.FindStringSubmatch(request.URL.Path)
	if m == nil {
		return ""
	}
	verb := map[string]string{http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete"}[request.Method]
	switch {
	case verb != "":
	case suite.IsWatch(request):
		verb = "watch"
	case m[3] == "":
		verb = "list"
	default:
		verb = "get"
	}
	return verb + " " + m[1] + "/" + path.Join(m[2], m[4])
}

// rights returns the rights that the controller has used.
func (w *requestRecorder) rights() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.used))
}

// written returns a function that returns how often the status of a scope was written.
func (w *requestRecorder) written(namespace, name string) func() int {
	return func() int {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.writes[namespace+"/"+name])
	}
}

// statuses returns the bodies of the writes of the status of a scope, in their order.
func (w *requestRecorder) statuses(namespace, name string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.writes[namespace+"/"+name])
}

// watches returns a function that returns the number of open watches of a resource.
func (w *requestRecorder) watches(resource string) func() int {
	return func() int { return w.Watches(resource) }
}
