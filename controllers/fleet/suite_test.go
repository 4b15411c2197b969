package fleet_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/e2e/controlplane"
)

// bundleCRD is the CRD of bundles, seen from this folder.
const bundleCRD = "../../config/crd/k8splugin.io_resourcebundlestates.yaml"

const (
	// patience is how long a suite on a busy machine waits for what must come.
	patience = 20 * time.Second
	// quiet is how long is watched that nothing comes.
	quiet = 500 * time.Millisecond
)

var (
	// plane is an API server without controllers: the specs write status themselves.
	plane *controlplane.ControlPlane
	// api is the administrator's client, without a cache.
	api client.Client
	// edge is the API server of another cluster, and edgeAPI its administrator's client.
	edge    *controlplane.ControlPlane
	edgeAPI client.Client
)

func TestSuite(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Fleet")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	SetDefaultEventuallyTimeout(patience)
	SetDefaultEventuallyPollingInterval(10 * time.Millisecond)
	SetDefaultConsistentlyDuration(quiet)
	ctrl.SetLogger(GinkgoLogr)
	klog.SetLogger(GinkgoLogr)

	var err error
	plane, err = controlplane.Start(ctx, controlplane.Options{Name: "fleet", Log: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return plane.Stop() })
	Expect(plane.InstallManifests(ctx, bundleCRD)).To(Succeed())
	api, err = client.New(plane.Config(), client.Options{Scheme: newScheme()})
	Expect(err).NotTo(HaveOccurred())
	edge, err = controlplane.Start(ctx, controlplane.Options{Name: "edge", Log: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return edge.Stop() })
	Expect(edge.InstallManifests(ctx, bundleCRD)).To(Succeed())
	edgeAPI, err = client.New(edge.Config(), client.Options{Scheme: newScheme()})
	Expect(err).NotTo(HaveOccurred())
}, NodeTimeout(10*time.Minute))

func newScheme() *runtime.Scheme {
	GinkgoHelper()
	scheme := runtime.NewScheme()
	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(k8spluginv1alpha1.AddToScheme(scheme)).To(Succeed())
	return scheme
}

// lasting returns a context that lasts until it is cancelled, or the spec is over. The context of a spec ends before its cleanup.
func lasting() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	DeferCleanup(cancel)
	return ctx, cancel
}

// newNamespace makes a namespace for a spec.
func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "spec-"}}
	Expect(api.Create(ctx, namespace)).To(Succeed())
	return namespace.Name
}

// manifest writes a manifest to a file for InstallManifests.
func manifest(text string) string {
	GinkgoHelper()
	file := filepath.Join(GinkgoT().TempDir(), "manifest.yaml")
	Expect(os.WriteFile(file, []byte(text), 0o600)).To(Succeed())
	return file
}

// meter counts the lists and watches that are asked for through it, by resource.
type meter struct {
	mu    sync.Mutex
	lists map[string]int
	open  map[string]int
	// gates hold requests for a resource back until they are closed.
	gates map[string]chan struct{}
}

func newMeter() *meter {
	return &meter{lists: map[string]int{}, open: map[string]int{}, gates: map[string]chan struct{}{}}
}

// config returns the administrator's configuration, metered.
func (m *meter) config() *rest.Config {
	config := plane.Config()
	config.QPS = -1
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) { return m.roundTrip(next, request) })
	})
	return config
}

func (m *meter) roundTrip(next http.RoundTripper, request *http.Request) (*http.Response, error) {
	resource := path.Base(request.URL.Path)
	isWatch := request.URL.Query().Get("watch") == "true"
	m.mu.Lock()
	gate := m.gates[resource]
	if !isWatch {
		m.lists[resource]++
	}
	m.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-request.Context().Done():
			return nil, request.Context().Err()
		}
	}
	response, err := next.RoundTrip(request)
	if err == nil && isWatch && response.StatusCode == http.StatusOK {
		m.add(resource, 1)
		response.Body = &stream{ReadCloser: response.Body, closed: sync.OnceFunc(func() { m.add(resource, -1) })}
	}
	return response, err
}

func (m *meter) add(resource string, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open[resource] += n
}

// watches returns how many watches of a resource are open.
func (m *meter) watches(resource string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.open[resource]
}

// hold holds requests for a resource back until the returned function is called.
func (m *meter) hold(resource string) (release func()) {
	gate := make(chan struct{})
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gates[resource] = gate
	return sync.OnceFunc(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.gates, resource)
		close(gate)
	})
}

// stream is the body of a watch, which knows when it is closed.
type stream struct {
	io.ReadCloser

	closed func()
}

func (s *stream) Close() error {
	s.closed()
	return s.ReadCloser.Close()
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
