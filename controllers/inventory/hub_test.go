package inventory_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/healthscope/healthscope/aai/simulator"
	configv1alpha1 "github.com/healthscope/healthscope/apis/config/v1alpha1"
	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	"github.com/healthscope/healthscope/controllers/fleet"
	"github.com/healthscope/healthscope/controllers/inventory"
	"github.com/healthscope/healthscope/controllers/scope"
	"github.com/healthscope/healthscope/e2e/suite"
	"github.com/healthscope/healthscope/healthscope"
)

// The tenant, the VNF and the module in A&AI, and the credentials for it.
const (
	owner, region, tenant = "provider", "edge", "shop"
	vnf, vfModule         = "vnf-1", "module-1"
	user, password        = "canary-u5er", "canary-pa55word"
	prefix                = "healthscope.core.oam.dev/"
	resources             = "/cloud-infrastructure/cloud-regions/cloud-region/" + owner + "/" + region + "/tenants/tenant/" + tenant + "/k8s-resources"
)

// lab is a namespace, its A&AI, and the configuration of a hub between them.
type lab struct {
	*simulator.Simulator

	namespace, dir string
	config         *configv1alpha1.Inventory
	// clock is the clock of scopes; nil means the system clock.
	clock clock.PassiveClock

	mu sync.Mutex
	// intercept may respond to a request in place of A&AI. It reports whether it has responded.
	intercept func(http.ResponseWriter, *http.Request) bool
	// output contains everything that hubs have written to logs, metrics and the list of unsynced objects.
	output bytes.Buffer
	// secrets are the secrets that must not be in the output, in addition to user and password.
	secrets []string
}

// newLab returns a lab whose A&AI has the region, the tenant and a VNF with a module.
func newLab(ctx context.Context) *lab {
	GinkgoHelper()
	l := &lab{namespace: newNamespace(ctx), dir: GinkgoT().TempDir()}
	l.Simulator = simulator.New(simulator.Options{Strict: true, Users: map[string]string{user: password}})
	Expect(l.Seed(
		simulator.CloudRegion(owner, region), simulator.Tenant(owner, region, tenant),
		simulator.GenericVNF(vnf), simulator.VFModule(vnf, vfModule),
	)).To(Succeed())
	server := httptest.NewServer(l)
	DeferCleanup(server.Close)
	l.write("user", user+"\n")
	l.write("password", password+"\n")
	c := &configv1alpha1.Configuration{Inventory: &configv1alpha1.Inventory{
		URL: server.URL, UsernameFile: filepath.Join(l.dir, "user"), PasswordFile: filepath.Join(l.dir, "password"),
		Regions: []configv1alpha1.Region{{Cluster: "local", Namespace: l.namespace, CloudOwner: owner, CloudRegionID: region, TenantID: tenant}},
		Links:   []configv1alpha1.LinkPolicy{{Namespace: l.namespace, GenericVNFIDs: []string{vnf}}},
	}}
	configv1alpha1.SetDefaults(c)
	Expect(configv1alpha1.Validate(c)).To(BeEmpty())
	l.config = c.Inventory
	DeferCleanup(l.checkInvariants)
	return l
}

// ServeHTTP is A&AI, unless intercept responds in its place.
func (l *lab) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	intercept := l.intercept
	l.mu.Unlock()
	if intercept == nil || !intercept(w, r) {
		l.Simulator.ServeHTTP(w, r)
	}
}

// between puts an interceptor between the hub and A&AI; nil for none.
func (l *lab) between(f func(http.ResponseWriter, *http.Request) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.intercept = f
}

// write writes a file that the hub reads.
func (l *lab) write(name, content string) {
	GinkgoHelper()
	Expect(os.WriteFile(filepath.Join(l.dir, name), []byte(content), 0o600)).To(Succeed())
}

// checkInvariants asserts the invariants after every spec: A&AI reports no violations. Every write is in the log with its
// X-TransactionId. User, password and key are not in logs, metrics, the list of unsynced objects, status or events. There are
// requests for modules only if operationalStatus is enabled.
func (l *lab) checkInvariants(ctx SpecContext) {
	Expect(l.Violations()).To(BeEmpty())
	for _, r := range l.Requests() {
		Expect(l.config.OperationalStatus || !strings.Contains(r.Path, "vf-module")).To(BeTrue(), "%s %s", r.Method, r.Path)
	}
	var scopes corev1alpha2.HealthScopeList
	Expect(api.List(ctx, &scopes)).To(Succeed())
	var events eventsv1.EventList
	Expect(api.List(ctx, &events)).To(Succeed())
	l.mu.Lock()
	defer l.mu.Unlock()
	Expect(l.output.String()).To(ContainSubstring("healthscope_aai_requests_total"), "the output of hubs is read")
	for _, r := range l.Requests() {
		Expect(r.Method == http.MethodGet || strings.Contains(l.output.String(), r.Header.Get("X-TransactionId"))).To(BeTrue(), "%s %s is in no log", r.Method, r.Path)
	}
	for _, secret := range append([]string{user, password, base64.StdEncoding.EncodeToString([]byte(user + ":" + password))}, l.secrets...) {
		Expect(l.output.String()).NotTo(ContainSubstring(secret))
		Expect(fmt.Sprintf("%+v %+v", scopes, events)).NotTo(ContainSubstring(secret))
	}
}

// Write stores the output of a hub.
func (l *lab) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.output.Write(line)
	return GinkgoWriter.Write(line)
}

// states returns the states of our resources in A&AI, by "Kind/name", without those of other owners.
func (l *lab) states() map[string]string {
	all := map[string]string{}
	for _, d := range l.List(resources) {
		if d["data-owner"] == "healthscope-default" {
			all[fmt.Sprintf("%v/%v", d["kind"], d["name"])] = label(d, "status")
		}
	}
	return all
}

// document returns the document of a resource; nil if there is none.
func (l *lab) document(kind, name string) map[string]any {
	for _, d := range l.List(resources) {
		if d["kind"] == kind && d["name"] == name {
			return d
		}
	}
	return nil
}

// label returns one of our labels of a document.
func label(document map[string]any, name string) string {
	labels, _ := document["labels"].([]string)
	for _, l := range labels {
		if value, ok := strings.CutPrefix(l, prefix+name+"="); ok {
			return value
		}
	}
	return ""
}

// links returns the paths of the objects to which a document has relationships.
func links(document map[string]any) []string {
	list, _ := document["relationship-list"].(map[string]any)
	relationships, _ := list["relationship"].([]map[string]any)
	var all []string
	for _, r := range relationships {
		all = append(all, fmt.Sprint(r["related-link"]))
	}
	return all
}

// asked returns the requests to A&AI after the first n, as "METHOD status".
func (l *lab) asked(n int) []string {
	var all []string
	for _, r := range l.Requests()[n:] {
		all = append(all, fmt.Sprintf("%s %d", r.Method, r.Status))
	}
	return all
}

// written returns the writes to A&AI after the first n requests, as "METHOD status".
func (l *lab) written(n int) []string {
	var writes []string
	for _, r := range l.asked(n) {
		if !strings.HasPrefix(r, http.MethodGet) {
			writes = append(writes, r)
		}
	}
	return writes
}

// hub is a running hub.
type hub struct {
	*wiretap
	*inventory.Inventory

	metrics *prometheus.Registry
	stop    func()
}

// start runs a hub until it is stopped or the spec ends.
func (l *lab) start(change ...func(*wiretap)) *hub {
	GinkgoHelper()
	h := &hub{wiretap: &wiretap{gates: map[string]chan struct{}{}}, metrics: prometheus.NewRegistry()}
	for _, f := range change {
		f(h.wiretap)
	}
	mgr := l.newManager(h.wiretap)
	policy := healthscope.DefaultPolicy()
	objects := fleet.NewObjects(nil, nil)
	view, err := fleet.Setup(mgr, fleet.Options{ClusterName: "local", Policy: policy, History: scope.ReadHistory(mgr.GetClient()), Objects: objects})
	Expect(err).NotTo(HaveOccurred())
	registry := scope.NewRegistry()
	i, err := inventory.New(inventory.Options{
		Config: l.config, LabelKeys: []string{"app.kubernetes.io/name"}, View: view, Registry: registry, Metrics: h.metrics,
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(i.Setup(mgr)).To(Succeed())
	h.Inventory = i
	ctx, cancel := suite.Lasting()
	Expect(scope.Setup(mgr, scope.Options{
		View: view, Objects: objects, Registry: registry, Policy: policy, Inventory: i, Clock: l.clock,
	})).To(Succeed())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	h.stop = sync.OnceFunc(func() {
		cancel()
		Eventually(ended).WithTimeout(suite.Timeout/2).Should(Receive(BeNil()), "the hub ends, without an error")
		unsynced, err := json.Marshal(h.Unsynced())
		Expect(err).NotTo(HaveOccurred())
		_, _ = l.Write(append(unsynced, h.exposition()...))
	})
	DeferCleanup(h.stop)
	return h
}

func (l *lab) newManager(wire *wiretap) ctrl.Manager {
	GinkgoHelper()
	config := plane.Config()
	config.Wrap(wire.wrap)
	options := suite.ManagerOptions()
	options.Cache.DefaultTransform = cache.TransformStripManagedFields()
	options.Logger = logr.FromSlogHandler(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.Level(-10)}))
	mgr, err := ctrl.NewManager(config, options)
	Expect(err).NotTo(HaveOccurred())
	return mgr
}

// exposition returns the metrics of the hub in Prometheus' format.
func (h *hub) exposition() string {
	GinkgoHelper()
	answer := httptest.NewRecorder()
	request := &http.Request{Method: http.MethodGet, URL: &url.URL{Path: "/metrics"}}
	promhttp.HandlerFor(h.metrics, promhttp.HandlerOpts{}).ServeHTTP(answer, request)
	Expect(answer.Code).To(Equal(http.StatusOK))
	return answer.Body.String()
}

// wiretap records and holds the requests of a hub to the API server.
type wiretap struct {
	mu     sync.Mutex
	writes int
	gates  map[string]chan struct{}
}

func (w *wiretap) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		resource := path.Base(request.URL.Path)
		w.mu.Lock()
		gate := w.gates[resource]
		if request.Method == http.MethodPatch && resource == "status" {
			w.writes++
		}
		w.mu.Unlock()
		if gate != nil {
			select {
			case <-gate:
			case <-request.Context().Done():
				return nil, request.Context().Err()
			}
		}
		return next.RoundTrip(request)
	})
}

// statusWrites returns how often the status of a scope was written.
func (w *wiretap) statusWrites() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writes
}

// hold returns a function that makes a wiretap hold requests for a resource until release is called.
func hold(resource string) (held func(*wiretap), release func()) {
	gate := make(chan struct{})
	release = sync.OnceFunc(func() { close(gate) })
	return func(w *wiretap) { w.gates[resource] = gate }, release
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

var _ io.Writer = (*lab)(nil)
