package inventory_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1alpha2 "github.com/healthscope/healthscope/apis/core/v1alpha2"
	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
	"github.com/healthscope/healthscope/e2e/controlplane"
	"github.com/healthscope/healthscope/e2e/suite"
)

// crds is the folder of the CRDs, relative to this one.
const crds = "../../config/crd"

var (
	// plane is an API server without controllers: the specs write the status of bundles themselves.
	plane *controlplane.ControlPlane
	// api is the administrator's client, without a cache.
	api client.Client
)

func TestSuite(t *testing.T) {
	suite.Run(t, "Inventory")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	suite.Defaults()
	plane, api = suite.Start(ctx, controlplane.Options{Name: "inventory"}, crds)
}, NodeTimeout(5*time.Minute))

// newNamespace creates a namespace for a spec.
func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	return suite.NewNamespace(ctx, api, &corev1alpha2.HealthScope{}, &k8spluginv1alpha1.ResourceBundleState{})
}
