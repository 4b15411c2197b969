package recorder_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	clientv3 "go.etcd.io/etcd/client/v3"
	"sigs.k8s.io/controller-runtime/pkg/client"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/e2e/suite"
)

// bundleCRD and scopeCRD are the files of the CRDs of bundles and scopes, relative to this folder.
const (
	bundleCRD = "../../config/crd/k8splugin.io_resourcebundlestates.yaml"
	scopeCRD  = "../../config/crd/core.oam.dev_healthscopes.yaml"
)

var (
	// plane is an API server without controllers: the specs write status themselves.
	plane *controlplane.ControlPlane
	// api is the administrator's client, without a cache.
	api client.Client
	// etcd holds the AppContexts, and raw is a client for its keys and values.
	etcd *controlplane.Etcd
	raw  *clientv3.Client
)

func TestSuite(t *testing.T) {
	suite.Run(t, "Recorder")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	suite.Defaults()
	var err error
	etcd, err = controlplane.StartEtcd(ctx, controlplane.EtcdOptions{Log: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return etcd.Stop() })
	raw = newRaw(etcd.Endpoint())
	plane, api = suite.Start(ctx, controlplane.Options{Name: "recorder"}, bundleCRD, scopeCRD)
}, NodeTimeout(10*time.Minute))

// newNamespace creates a namespace for a spec.
func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	return suite.NewNamespace(ctx, api, &k8spluginv1alpha1.ResourceBundleState{})
}
