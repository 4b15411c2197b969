package fleet_test

import (
	"net/http"
	"path"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/e2e/suite"
)

// bundleCRD is the path of the CRD of bundles, relative to this folder.
const bundleCRD = "../../config/crd/k8splugin.io_resourcebundlestates.yaml"

var (
	// plane is an API server without controllers: the specs write status themselves.
	plane *controlplane.ControlPlane
	// api is the administrator's client, without a cache.
	api client.Client
	// edge is the API server of another cluster. edgeAPI is the client of its administrator.
	edge    *controlplane.ControlPlane
	edgeAPI client.Client
)

func TestSuite(t *testing.T) {
	suite.Run(t, "Fleet")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	suite.Defaults()
	plane, api = suite.Start(ctx, controlplane.Options{Name: "fleet"}, bundleCRD)
	edge, edgeAPI = suite.Start(ctx, controlplane.Options{Name: "edge"}, bundleCRD)
}, NodeTimeout(10*time.Minute))

// meter counts the lists that are requested through it, by resource.
type meter struct {
	suite.Tap

	mu    sync.Mutex
	lists map[string]int
}

func newMeter() *meter {
	m := &meter{lists: map[string]int{}}
	m.Note = func(request *http.Request) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if !suite.IsWatch(request) {
			m.lists[path.Base(request.URL.Path)]++
		}
	}
	return m
}

// config returns the administrator's configuration with a transport that meters.
func (m *meter) config() *rest.Config {
	config := plane.Config()
	config.QPS = -1
	config.Wrap(m.Wrap)
	return config
}
